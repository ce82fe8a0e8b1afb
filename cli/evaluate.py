"""`nfsgeo evaluate`."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import click

from nfsgeo_cli.terminal import (
    as_json,
    device,
    error_table,
    progress_bar,
    report,
    table,
)


@click.command(
    short_help="Errors of a run and of the baselines.",
    epilog="""\b
    Examples:
      nfsgeo evaluate runs/x --unseen 2 --unseen 4 --repeats 100
      nfsgeo evaluate runs/x --data other.nc
      nfsgeo evaluate runs/x --steps 100
    """,
)
@click.argument("run", type=Path)
@click.option(
    "--data", type=Path, help="Another file to evaluate on, at all of its points."
)
@click.option(
    "--part",
    type=click.Choice(["all", "test"]),
    help="Samples of --data to evaluate on.  [all]",
)
@click.option(
    "--unseen",
    "factors",
    type=float,
    multiple=True,
    metavar="K",
    help="Also evaluate on meshes that contain the training mesh, K times as large; "
    "repeatable.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Meshes to draw for each K.",
)
@click.option(
    "--unseen-at",
    type=click.Choice(["off-grid", "file"]),
    help="Where the additional points lie: between those of the file's grid, the "
    "default where the grid resolves the fields, or among the file's points that "
    "training has not seen.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Also evaluate so many time steps ahead, by an autoregressive rollout.",
)
@device
@as_json
def evaluate(
    run: Path,
    data: Path | None,
    part: Literal["all", "test"] | None,
    factors: tuple[float, ...],
    repeats: int,
    unseen_at: Literal["off-grid", "file"] | None,
    steps: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Errors of a run and of the baselines, in the units of the data.

    Without --data these are errors on the test samples of the run, at its points.
    """
    from nfsgeo.evaluation import evaluate_run
    from nfsgeo.report import write_report

    with progress_bar() as progress:
        summary = evaluate_run(
            run,
            data=data,
            part=part,
            factors=factors,
            repeats=repeats,
            unseen_at=unseen_at,
            steps=steps,
            device=device,
            progress=progress,
        )
    if data is None:
        write_report(run)
    unseen = (_unseen_table(summary), _where_unseen(summary)) if factors else ()
    ahead = (rollout_table(summary["rollout"]),) if steps else ()
    report(as_json, summary, error_table(summary), *ahead, *unseen)


def rollout_table(rollout: dict[str, Any]) -> Any:
    """MAE at some of the time steps of a rollout, by method."""
    total = len(rollout["times"])
    shown = sorted(
        {step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if step < total}
    )
    shown = [*shown, total][-5:]  # as many as 80 columns hold
    rows = []
    for name, errors in rollout["mae_by_step"].items():
        means = [fmean(e) if isinstance(e, list) else e for e in errors]
        cells = [f"{means[step - 1]:.2e}" for step in shown]
        rows.append([name.replace("_", " "), *cells])
    return table(["MAE at time step", *map(str, shown)], rows)


def _where_unseen(summary: dict[str, Any]) -> str:
    """What training has seen of the file, and where unseen points were drawn."""
    points = summary["unseen_points"]
    seen = f"Training has seen {points['trained']} of the file's {points['points']}"
    if points["at"] == "file":
        return f"{seen} points; unseen points are among the others."
    return f"{seen} points; unseen points lie between the points of the file."


def _unseen_table(summary: dict[str, Any]) -> Any:
    """Mean and standard deviation of the MAE on larger meshes, by their size."""
    rows = [["1 x points", f"{summary['test']['mae']:.3e}", "", ""]]
    for factor, errors in summary["unseen"].items():
        cells = [
            f"{errors[name]['mean']:.3e} ± {errors[name]['std']:.0e}"
            for name in ("mae", "mae_seen", "mae_unseen")
        ]
        rows.append([f"{factor} x points", *cells])
    heads = ["MAE, unseen meshes", "all points", "seen points", "unseen points"]
    return table(heads, rows)
