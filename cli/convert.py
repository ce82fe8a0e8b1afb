"""`nfsgeo convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, print_json, progress_bar, show

if TYPE_CHECKING:
    from nfsgeo.geometry import Domain

__all__ = ["convert"]


@click.command(
    epilog="""\b
    Examples:
      nfsgeo convert NavierStokes_V1e-3_N5000_T50.mat --out ns.h5
      nfsgeo convert fields.npz --out f.h5 --axis 0:360:periodic --axis -90:90
      nfsgeo convert ns.h5 --out ns.npz
    """
)
@click.argument("sources", metavar="SOURCE...", type=Path, nargs=-1, required=True)
@click.option("--out", type=Path, required=True, help="File to make: native, or .npz.")
@click.option(
    "--series",
    type=click.Choice(["samples", "records"]),
    default="samples",
    show_default=True,
    help="What several sources are.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="LOW:HIGH[:periodic]",
    help="The domain, axis by axis, in place of the format's.",
)
@click.option("--equation", help="Name of the equation.")
@as_json
def convert(
    sources: tuple[Path, ...],
    out: Path,
    series: str,
    axes: tuple[str, ...],
    equation: str | None,
    as_json: bool,
) -> None:
    """Turn files of other programs into nfsgeo's own, or gridded ones into .npz.

    Formats are recognised by their content, see `nfsgeo datasets`.
    """
    from nfsgeo.data import convert as convert_files
    from nfsgeo.data import export
    from nfsgeo.data.convert import open_sources

    exporting = out.suffix == ".npz"
    if exporting and (axes or equation):
        raise UserError(
            f"--{'axis' if axes else 'equation'} with --out {out}",
            "a native file, .h5",
            "convert to one first",
        )
    with progress_bar() as progress:
        if exporting:
            with open_sources(sources, series=series) as file:
                export(file, out, progress=progress)
        else:
            convert_files(
                sources,
                out,
                series=series,
                domain=_domain(axes) if axes else None,
                equation=equation,
                progress=progress,
            )
    if as_json:
        print_json({"output": str(out)})
    else:
        show(f"written  {out}")


def _domain(axes: tuple[str, ...]) -> Domain:
    from nfsgeo.geometry import Domain

    lower, upper, periodic = [], [], []
    for axis in axes:
        low, _, rest = axis.partition(":")
        high, _, kind = rest.partition(":")
        try:
            lower.append(float(low))
            upper.append(float(high))
            if kind not in ("", "periodic") or not lower[-1] < upper[-1]:
                raise ValueError
        except ValueError:
            raise UserError(
                f"--axis {axis}", "LOW:HIGH or LOW:HIGH:periodic", "for example 0:1"
            ) from None
        periodic.append(kind == "periodic")
    return Domain(tuple(lower), tuple(upper), tuple(periodic))
