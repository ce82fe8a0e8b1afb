"""`nfsgeo evaluate` and `nfsgeo calibrate`."""

from __future__ import annotations

from collections.abc import Mapping
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

# Time steps of a rollout that are shown, the last ones of them with the very last.
SHOWN_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
SHOWN_COLUMNS = 5  # as many as 80 columns hold
UNSEEN = {"all": "mae", "seen": "mae_seen", "unseen": "mae_unseen"}
PLACES = {"file": "among the others", "off-grid": "between the points of the file"}


@verb
@click.argument("run", type=Path)
@option("--data", Path, "Another file to score, or the data of the run at a new place.")
@option("--part", ["all", "test"], "Score all samples of that file, or its test part.")
@option(
    "--unseen factors",
    float,
    "Also evaluate on unseen meshes with this many times as many points; repeatable.",
    multiple=True,
)
@option("--repeats", click.IntRange(1), "Meshes to draw for each factor.", default=5)
@option(
    "--unseen-at", ["off-grid", "file"], "Where the additional points of meshes lie."
)
@option(
    "--steps",
    click.IntRange(1),
    "Also evaluate this many time steps ahead, by an autoregressive rollout.",
)
@DEVICE
def evaluate(run: Path, as_json: bool, **options: Any) -> None:
    """Compute the errors of a run and of the baselines.

    Errors are in the units of the data. Without --data they are over the test samples
    of the run, at its points. With --data they are over all samples of that file; if it
    holds the data of the run, over its test samples, unless --part all is given.

    Examples:
      nfsgeo evaluate runs/x --unseen 2 --unseen 4 --repeats 100
      nfsgeo evaluate runs/x --data other.nc
      nfsgeo evaluate runs/x --steps 100
    """
    from nfsgeo.evaluation import evaluate_run
    from nfsgeo.report import write_report

    with progress_bar() as progress:
        summary = evaluate_run(run, progress=progress, **options)
    if "dataset" in summary:  # the run's own data, whose results are in its folder
        write_report(run)
    lines = [error_table(summary)]
    if options["steps"]:
        lines += ["", rollout_table(summary["rollout"], summary)]
    if options["factors"]:
        points = summary["unseen_points"]
        seen = f"{points['trained']} of the {points['points']} points of a sample"
        text = f"Training has seen {seen}; unseen points lie {PLACES[points['at']]}."
        lines += ["", unseen_table(summary), prose(text)]
    report(as_json, summary, *lines)


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
    num, scored = summary["bands"]["samples"], summary["scored"]
    noun = "windows" if "windows" in scored else "samples"
    line = f"bands   {run}, of {num} {noun}: levels up to {num / (num + 1):.3g}"
    own = scored.get("data_of_run") and scored["part"] == "test"
    used = "the run's test part" if own else f"these {noun}"
    text = f"The new bands replace the earlier ones and are fitted to {used}, "
    text += f"whose coverage is {'no longer' if own else 'not'} a test."
    report(as_json, summary, error_table(summary), line, prose(text))


def rollout_table(
    rollout: Mapping[str, Any], summary: Mapping[str, Any] | None = None
) -> str:
    """Format the MAE at some time steps of a rollout, and its errors over all of them.

    Args:
        rollout: The entry of that name of ``summary.json``.
        summary: The whole, by which components are pooled and rows named as in the
            table of test errors.
    """
    import numpy as np
    import pandas as pd

    from nfsgeo.report.tables import error_table

    summary = summary or {}
    components = (summary.get("components") or {}).values()
    std = np.array([component["std"] for component in components])
    unit = f" ({summary['units']})" if summary.get("units") else ""
    unit = ", pooled*" if components else unit
    whole = summary.get("scored", {}).get("part") == "all"
    names = {"mean": "mean of these samples" if whole else "training mean"}
    names["model"] = summary.get("model", "model")

    def pooled(mae: Any) -> float:
        if std.any():
            mae = (np.array(mae) / std.clip(1e-300))[std > 0]
        return float(pd.Series(mae).mean())

    last = len(rollout["times"])
    steps = [*(step for step in SHOWN_STEPS if step < last), last][-SHOWN_COLUMNS:]
    rows = {
        name: [pooled(mae[step - 1]) for step in steps]
        for name, mae in rollout["mae_by_step"].items()
    }
    by_step = pd.DataFrame.from_dict(rows, orient="index", columns=steps)
    parts = {f"MAE at time step{unit}": by_step}
    if errors := rollout.get("errors"):
        parts[f"errors over {last} time steps{unit}"] = error_table(errors)
    named = {
        title: frame.rename(lambda name: names.get(name, name.replace("_", " ")))
        for title, frame in parts.items()
    }
    return "\n\n".join(f"{title}\n{table('', named[title])}" for title in named)


def unseen_table(summary: dict[str, Any]) -> str:
    """Format the mean and standard deviation of the MAE on larger meshes."""
    import pandas as pd

    rows = {"1 x points": {"all points": f"{summary['test']['mae']:.3e}"}}
    for factor, errors in summary["unseen"].items():
        rows[f"{factor} x points"] = {
            f"{points} points": f"{errors[key]['mean']:.3e}"
            + f" ± {errors[key]['std']:.0e}" * (errors[key]["std"] > 0)
            for points, key in UNSEEN.items()
        }
    return table("MAE, unseen meshes", pd.DataFrame(rows).T.fillna(""))
