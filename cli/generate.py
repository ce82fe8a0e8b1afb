"""`nfsgeo generate`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from nfsgeo_cli.terminal import as_json, print_json, progress_bar, show

__all__ = ["generate"]


@click.command(
    epilog="""\b
    Example:
      nfsgeo generate navier-stokes --out ns.h5 --samples 1200 --seed 0
    """
)
@click.argument("equation", metavar="burgers|kdv|darcy|navier-stokes")
@click.option("--out", type=Path, required=True, help="File to make.")
@click.option("--samples", type=int, help="How many.  [1200]")
@click.option("--resolution", type=int, help="Points along each axis.")
@click.option("--records", type=int, help="Records to store.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the initial fields."
)
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option(
    "--workers", type=int, default=os.cpu_count() or 1, help="Processes.  [all cores]"
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of the equation; `nfsgeo datasets` lists them.",
)
@as_json
def generate(
    equation: str,
    out: Path,
    samples: int | None,
    resolution: int | None,
    records: int | None,
    seed: int,
    device: str,
    workers: int,
    options: tuple[str, ...],
    as_json: bool,
) -> None:
    """Solve an equation from random initial conditions and keep the fields.

    A generation that was stopped goes on where it was when the command is repeated.
    """
    from nfsgeo.data.generation import generate as generate_file
    from nfsgeo.training import parse_settings

    with progress_bar() as progress:
        path = generate_file(
            equation,
            out,
            samples=samples,
            resolution=resolution,
            records=records,
            seed=seed,
            device=device,
            workers=workers,
            options=parse_settings(options),
            progress=lambda done, total: progress("samples", done, total),
        )
    if as_json:
        print_json({"output": str(path)})
    else:
        show(f"written  {path}")
