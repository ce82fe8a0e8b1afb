"""`nfsgeo plot`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo_cli.terminal import option, report, verb


@verb
@click.argument("source", metavar="RUN|FILE", type=Path)
@option("--out", Path, "Folder for a file's pictures.  [FILE-figures]")
@option(
    "--animate",
    Path,
    "Only make a .gif or .mp4 file of a run's first test sample over time.",
)
def plot(source: Path, out: Path | None, animate: Path | None, as_json: bool) -> None:
    """Draw the report of a run, or the fields of a file.

    Examples:
      nfsgeo plot runs/x
      nfsgeo plot runs/x --animate waves.gif
      nfsgeo plot ns.nc --out pictures
    """
    import nfsgeo.data
    from nfsgeo.data.opening import is_source
    from nfsgeo.report import plot_file, write_animation, write_report

    of_run = source.is_dir() and not is_source(source)
    if out is not None and (of_run or animate is not None):
        raise click.UsageError(
            "--out is for the pictures of a file; a run keeps its own in its folder"
        )
    if animate is not None:
        written = [write_animation(source, animate)]
    elif of_run:
        page = write_report(source)
        written = [*sorted((source / "figures").glob("*.png")), page]
    else:
        with nfsgeo.data.open(source) as file:
            folder = out or source.with_name(f"{source.stem}-figures")
            written = plot_file(file, folder)
    names = [str(path) for path in written]
    report(as_json, {"written": names}, *(f"written  {name}" for name in names))
