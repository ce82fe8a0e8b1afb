"""`nfsgeo plot` and `nfsgeo compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import (
    opened,
    opening_options,
    option,
    prose,
    report,
    table,
    verb,
)


@verb
@click.argument("sources", metavar="RUN|FILE...", type=Path, nargs=-1, required=True)
@opening_options
@option("--out", Path, "Folder for a file's pictures.  [default: FILE-figures]")
@option(
    "--animate",
    Path,
    "Only make a .gif or .mp4 file of a run's first test sample over time.",
)
def plot(
    sources: tuple[Path, ...],
    out: Path | None,
    animate: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw the report of a run, or the fields of data files.

    Examples:
      nfsgeo plot runs/x
      nfsgeo plot runs/x --animate waves.gif
      nfsgeo plot ns.nc --out pictures
    """
    from nfsgeo.data.io.opening import matches
    from nfsgeo.report import plot_file, write_animation, write_report

    source, file = sources[0], opened(sources, options)
    if out is not None and (file is None or animate is not None):
        raise click.UsageError(
            "--out is for the pictures of a file; a run keeps its own in its folder"
        )
    if animate is not None and file is not None:
        given, todo = f"--animate with {source}", "leave out --animate to draw the file"
        with file:
            raise UserError(given, "the folder of a run", todo)
    if animate is not None:
        written = [write_animation(source, animate)]
    elif file is None:
        page = write_report(source)
        written = [*sorted((source / "figures").glob("*.png")), page]
    else:
        with file:
            (first, *_) = matches(source)
            folder = out or first.parent / f"{first.stem}-figures"
            written = plot_file(file, folder)
    names = [str(path) for path in written]
    report(as_json, {"written": names}, *(f"written  {name}" for name in names))


@verb
@click.argument("runs", metavar="RUN...", type=Path, nargs=-1, required=True)
@option("--out", Path, "Page to make.", default=Path("comparison.html"))
def compare(runs: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Compare runs on one page.

    It has their errors and curves, and the settings that differ. The terminal shows
    the test errors.

    Examples:
      nfsgeo compare runs/a runs/b
      nfsgeo compare runs/* --out comparison.html
    """
    from nfsgeo.evaluation.scores import POOLED
    from nfsgeo.report import write_comparison

    errors = write_comparison(runs, out)
    shown = [table("test errors", errors), ""] if errors.size else []
    if any(name.endswith("(pooled)") for name in errors.index):
        shown[1:1] = [prose(POOLED)]
    report(as_json, {"output": str(out)}, *shown, f"written  {out}")
