"""`nfsgeo calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.generated import generated
from nfsgeo_cli.terminal import error_table, option, report, verb


@verb
@click.argument("run", type=Path)
@option("--data", Path, "Samples with known results.", required=True)
@generated("nfsgeo.evaluation.evaluate_run", "device")
def calibrate(run: Path, data: Path, as_json: bool, **options: Any) -> None:
    """Fit the error bands of a run to samples of your own.

    They replace those of the run and hold for further samples like these. n samples
    serve for levels up to n / (n + 1).

    Example:
      nfsgeo calibrate runs/x --data measured.nc
    """
    from nfsgeo.evaluation import evaluate_run

    summary = evaluate_run(run, data=data, calibrate=True, **options)
    num = summary["bands"]["samples"]
    line = f"bands   {run}, of {num} samples: levels up to {num / (num + 1):.3g}"
    report(as_json, summary, error_table(summary), line)
