"""`nfsgeo plot`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo_cli.terminal import as_json, report


@click.command(
    short_help="Draw a run's figures and report, or a file's fields.",
    epilog="""\b
    Examples:
      nfsgeo plot runs/x
      nfsgeo plot runs/x --animate waves.gif
      nfsgeo plot ns.nc --out pictures
    """,
)
@click.argument("source", metavar="RUN|FILE", type=Path)
@click.option("--out", type=Path, help="Folder for a file's pictures.  [FILE-figures]")
@click.option(
    "--animate",
    type=Path,
    help="Only make a .gif or .mp4 file of a run's first test sample over time.",
)
@as_json
def plot(source: Path, out: Path | None, animate: Path | None, as_json: bool) -> None:
    """Draw the figures and the report of a run, or the fields of a file."""
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
        import nfsgeo.data

        with nfsgeo.data.open(source) as file:
            folder = out or source.with_name(f"{source.stem}-figures")
            written = plot_file(file, folder)
    names = [str(path) for path in written]
    report(as_json, {"written": names}, *(f"written  {name}" for name in names))
