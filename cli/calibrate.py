"""`nfsgeo calibrate`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo_cli.terminal import DEVICE, error_table, option, report, verb


@verb
@click.argument("run", type=Path)
@option("--data", Path, "Samples with known results.", required=True)
@DEVICE
def calibrate(run: Path, data: Path, device: str | None, as_json: bool) -> None:
    """Fit the error bands of a run to samples of your own.

    They replace those of the run and hold for further samples like these. n samples
    serve for levels up to n / (n + 1).

    Example:
      nfsgeo calibrate runs/x --data measured.nc
    """
    from nfsgeo.evaluation import evaluate_run

    summary = evaluate_run(run, data=data, calibrate=True, device=device)
    num = summary["bands"]["samples"]
    line = f"bands   {run}, of {num} samples: levels up to {num / (num + 1):.3g}"
    report(as_json, summary, error_table(summary), line)
