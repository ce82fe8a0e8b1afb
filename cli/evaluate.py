"""`nfsgeo evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.terminal import (
    DEVICE,
    error_table,
    option,
    progress_bar,
    prose,
    report,
    table,
    verb,
)

# Time steps of a rollout that are shown; the last ones, beside the very last.
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500)
UNSEEN = {"all": "mae", "seen": "mae_seen", "unseen": "mae_unseen"}
WHERE = {"file": "among the others", "off-grid": "between the points of the file"}


@verb
@click.argument("run", type=Path)
@option("--data", Path, "Another file to score.")
@option("--part", ["all", "test"], "All samples of that file, or its test part.")
@option(
    "--unseen factors",
    float,
    "Also evaluate on unseen meshes with so many times as many points; repeatable.",
    multiple=True,
)
@option("--repeats", click.IntRange(1), "Meshes to draw for each factor.", default=5)
@option(
    "--unseen-at",
    ["off-grid", "file"],
    "Where the further points of these meshes lie.",
)
@option(
    "--steps",
    click.IntRange(1),
    "Also evaluate so many time steps ahead, by an autoregressive rollout.",
)
@DEVICE
def evaluate(run: Path, as_json: bool, **options: Any) -> None:
    """Errors of a run and of the baselines.

    They are in the units of the data. Without --data these are errors on the test
    samples of the run, at its points.

    Examples:
      nfsgeo evaluate runs/x --unseen 2 --unseen 4 --repeats 100
      nfsgeo evaluate runs/x --data other.nc
      nfsgeo evaluate runs/x --steps 100
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
        seen = f"{points['trained']} of the file's {points['points']} points"
        text = f"Training has seen {seen}; unseen points lie {WHERE[points['at']]}."
        lines += [unseen_table(summary), prose(text)]
    report(as_json, summary, *lines)


def rollout_table(rollout: dict[str, Any]) -> str:
    """MAE at some of the time steps of a rollout, by method."""
    import numpy as np
    import pandas as pd

    last = len(rollout["times"])
    # As many as 80 columns hold.
    shown = [*(step for step in SHOWN if step < last), last][-5:]
    rows = {
        name.replace("_", " "): [np.mean(mae[step - 1]) for step in shown]
        for name, mae in rollout["mae_by_step"].items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=shown)
    return table("MAE at time step", frame)


def unseen_table(summary: dict[str, Any]) -> str:
    """Mean and standard deviation of the MAE on larger meshes."""
    import pandas as pd

    rows = {"1 x points": {"all points": f"{summary['test']['mae']:.3e}"}}
    for factor, errors in summary["unseen"].items():
        rows[f"{factor} x points"] = {
            f"{points} points": f"{errors[of]['mean']:.3e} ± {errors[of]['std']:.0e}"
            for points, of in UNSEEN.items()
        }
    return table("MAE, unseen meshes", pd.DataFrame(rows).T.fillna(""))
