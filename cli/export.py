"""`nfsgeo export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.generated import generated
from nfsgeo_cli.terminal import option, report, verb


@verb
@click.argument("run", metavar="RUN|NAME", type=Path)
@option("--out", Path, "File to make.", required=True)
@generated("nfsgeo.evaluation.export_run", "format")
def export(run: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Export a run as a torch.export or ONNX program.

    The program is for one sample on any mesh. That of nfs or one of its variants runs
    without nfsgeo. Graphs are arguments: nfsgeo.evaluation.program_inputs makes them.

    Examples:
      nfsgeo export runs/x --out x.pt2
      nfsgeo export runs/mixer --out mixer.onnx --format onnx
    """
    from nfsgeo.evaluation import export_run

    export_run(run, out, **options)
    report(as_json, {"output": str(out), **options}, f"written  {out}")
