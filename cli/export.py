"""`nfsgeo export`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from nfsgeo_cli.terminal import option, report, verb


@verb
@click.argument("run", metavar="RUN|NAME", type=Path)
@option("--out", Path, "File to make.", required=True)
@option(
    "--format",
    ["torch-export", "onnx"],
    "Kind of program.",
    default="torch-export",
)
def export(
    run: Path, out: Path, format: Literal["torch-export", "onnx"], as_json: bool
) -> None:
    """Export a run as a torch.export or ONNX program.

    The program is for one sample on any mesh. That of nfs or one of its variants runs
    without nfsgeo. Graphs are arguments: nfsgeo.evaluation.program_inputs makes them.

    Examples:
      nfsgeo export runs/x --out x.pt2
      nfsgeo export runs/mixer --out mixer.onnx --format onnx
    """
    from nfsgeo.evaluation import export_run

    export_run(run, out, format=format)
    report(as_json, {"output": str(out), "format": format}, f"written  {out}")
