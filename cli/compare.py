"""`nfsgeo compare`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo_cli.terminal import as_json, report


@click.command(
    short_help="Compare runs on one page.",
    epilog="""\b
    Examples:
      nfsgeo compare runs/a runs/b
      nfsgeo compare runs/* --out comparison.html
    """,
)
@click.argument("runs", metavar="RUN...", type=Path, nargs=-1, required=True)
@click.option(
    "--out",
    type=Path,
    default=Path("comparison.html"),
    show_default=True,
    help="Page to make.",
)
@as_json
def compare(runs: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write a page with the errors and curves of runs, and the settings that differ."""
    from nfsgeo.report import write_comparison

    write_comparison(runs, out)
    report(as_json, {"output": str(out)}, f"written  {out}")
