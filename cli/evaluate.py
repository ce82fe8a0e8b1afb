"""`nfsgeo evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from nfsgeo_cli.terminal import (
    as_json,
    device,
    error_table,
    print_json,
    progress_bar,
    show,
    table,
)

__all__ = ["evaluate"]


@click.command(
    short_help="Errors of a run beside the baselines'.",
    epilog="""\b
    Examples:
      nfsgeo evaluate runs/x --unseen 2 --unseen 4 --repeats 100
      nfsgeo evaluate runs/x --data other.h5
    """,
)
@click.argument("run", type=Path)
@click.option(
    "--data", type=Path, help="Score another file, all of its samples and points."
)
@click.option(
    "--part",
    type=click.Choice(["all", "test"]),
    help="Samples of --data to score.  [all]",
)
@click.option(
    "--unseen",
    "factors",
    type=float,
    multiple=True,
    metavar="K",
    help="Also on meshes of K times the points, around the training mesh.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Meshes to draw for each K.",
)
@device
@as_json
def evaluate(
    run: Path,
    data: Path | None,
    part: Literal["all", "test"] | None,
    factors: tuple[float, ...],
    repeats: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Errors of a run beside the baselines', in the units of the data.

    Without --data on the test samples of the run, at the points that it observes.
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
            device=device,
            progress=progress,
        )
    if data is None:
        write_report(run)
    if as_json:
        print_json(summary)
        return
    show(error_table(summary))
    if factors:
        show(_unseen_table(summary))


def _unseen_table(summary: dict[str, Any]) -> Any:
    """Mean and spread of the MAE on larger meshes, by how much larger."""
    rows = [["1 x points", f"{summary['test']['mae']:.3e}", "", ""]]
    for factor, errors in summary["unseen"].items():
        cells = [
            f"{errors[name]['mean']:.3e} ± {errors[name]['std']:.0e}"
            for name in ("mae", "mae_seen", "mae_unseen")
        ]
        rows.append([f"{factor} x points", *cells])
    heads = ["MAE, unseen meshes", "all points", "seen points", "unseen points"]
    return table(heads, rows)
