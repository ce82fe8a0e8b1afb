"""`nfsgeo compare`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo_cli.terminal import option, report, verb


@verb
@click.argument("runs", metavar="RUN...", type=Path, nargs=-1, required=True)
@option("--out", Path, "Page to make.", default=Path("comparison.html"))
def compare(runs: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Compare runs on one page.

    It has their errors and curves, and the settings that differ.

    Examples:
      nfsgeo compare runs/a runs/b
      nfsgeo compare runs/* --out comparison.html
    """
    from nfsgeo.report import write_comparison

    write_comparison(runs, out)
    report(as_json, {"output": str(out)}, f"written  {out}")
