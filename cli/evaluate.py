"""`nfsgeo evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.terminal import (
    as_json,
    device,
    error_table,
    numbers,
    progress_bar,
    report,
    table,
)

# Time steps of a rollout that are shown; the last ones, beside the very last.
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500)


@click.command(
    epilog="""\b
    Examples:
      nfsgeo evaluate runs/x --unseen 2 --unseen 4 --repeats 100
      nfsgeo evaluate runs/x --data other.nc
      nfsgeo evaluate runs/x --steps 100
    """
)
@click.argument("run", type=Path)
@click.option("--data", type=Path, help="Another file, at all of its points.")
@click.option(
    "--part", type=click.Choice(["all", "test"]), help="Samples of --data.  [all]"
)
@click.option(
    "--unseen",
    "factors",
    type=float,
    multiple=True,
    metavar="K",
    help="Also on meshes that contain the training mesh, K times as large; repeatable.",
)
@click.option(
    "--repeats", type=click.IntRange(1), default=5, help="Meshes of each size.  [5]"
)
@click.option(
    "--unseen-at",
    type=click.Choice(["off-grid", "file"]),
    help="Whether further points lie between those of the file's grid, the default "
    "where it resolves the fields, or are its points that training has not seen.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Also so many time steps ahead, by an autoregressive rollout.",
)
@device
@as_json
def evaluate(run: Path, as_json: bool, **options: Any) -> None:
    """Errors of a run and of the baselines.

    They are in the units of the data. Without --data these are errors on the test
    samples of the run, at its points.
    """
    from nfsgeo.evaluation import evaluate_run
    from nfsgeo.report import write_report

    with progress_bar() as progress:
        summary = evaluate_run(run, progress=progress, **options)
    if options["data"] is None:
        write_report(run)
    lines = [error_table(summary)]
    if options["steps"]:
        lines.append(rollout_table(summary["rollout"]))
    if options["factors"]:
        points = summary["unseen_points"]
        where = {
            "file": "among the others",
            "off-grid": "between the points of the file",
        }
        lines += [
            unseen_table(summary),
            f"Training has seen {points['trained']} of the file's {points['points']} "
            f"points; unseen points lie {where[points['at']]}.",
        ]
    report(as_json, summary, *lines)


def rollout_table(rollout: dict[str, Any]) -> str:
    """MAE at some of the time steps of a rollout, by method."""
    import numpy as np

    last = len(rollout["times"])
    # As many as 80 columns hold.
    shown = [*(step for step in SHOWN if step < last), last][-5:]
    rows = {
        name.replace("_", " "): {str(step): np.mean(mae[step - 1]) for step in shown}
        for name, mae in rollout["mae_by_step"].items()
    }
    return numbers("MAE at time step", rows)


def unseen_table(summary: dict[str, Any]) -> str:
    """Mean and standard deviation of the MAE on larger meshes."""
    rows = [["1 x points", f"{summary['test']['mae']:.3e}", "", ""]]
    for factor, errors in summary["unseen"].items():
        each = (errors[name] for name in ("mae", "mae_seen", "mae_unseen"))
        cells = (f"{of['mean']:.3e} ± {of['std']:.0e}" for of in each)
        rows.append([f"{factor} x points", *cells])
    heads = ["MAE, unseen meshes", "all points", "seen points", "unseen points"]
    return table(heads, rows)
