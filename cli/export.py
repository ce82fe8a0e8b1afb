"""`nfsgeo export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.terminal import as_json, report


@click.command(
    epilog="""\b
    Examples:
      nfsgeo export runs/x --out x.pt2
      nfsgeo export runs/mixer --out mixer.onnx --format onnx
    """
)
@click.argument("run", metavar="RUN|NAME", type=Path)
@click.option("--out", type=Path, required=True, help="File to make.")
@click.option(
    "--format",
    type=click.Choice(["torch-export", "onnx"]),
    default="torch-export",
    show_default=True,
    help="For torch.export.load, or for ONNX where it has the operators.",
)
@as_json
def export(run: Path, out: Path, format: Any, as_json: bool) -> None:
    """Export a run as a torch.export or ONNX program.

    The program is for one sample on any mesh. That of nfs or one of its variants runs
    without nfsgeo. Graphs are arguments: nfsgeo.evaluation.program_inputs makes them.
    """
    from nfsgeo.evaluation import export_run

    export_run(run, out, format=format)
    report(as_json, {"output": str(out), "format": format}, f"written  {out}")
