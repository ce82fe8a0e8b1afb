"""How far the states of variants are from each other, over training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nfsgeo.evaluation.convergence import GridStates, deviation, kept_states
from nfsgeo_benchmarks.suites.runner import RUNS, is_finished
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.suite import DEVIATIONS
from nfsgeo_benchmarks.suites.worker import STATES

__all__ = ["PLACES", "common_states", "deviations", "diff_history"]

PLACES = ("begin", "end")


def deviations(run: Run, runs: Sequence[Run], folder: Path) -> dict[str, float | None]:
    """The columns :data:`DEVIATIONS` of a run, its mean over the other variants.

    Args:
        run: Whose states.
        runs: Of the suite; the finished ones of its problem and seed are the others.
        folder: Of the suite.
    """
    alike = [
        other
        for other in runs
        if (other.problem, other.seed) == (run.problem, run.seed)
        and other.variant != run.variant
        and is_finished(other, folder)
    ]
    found: dict[str, float | None] = dict.fromkeys(DEVIATIONS)
    if not alike or not is_finished(run, folder):
        return found
    kept = common_states([folder / RUNS / each.name for each in (run, *alike)])
    for when, epoch in (("_0", min(kept)), ("", max(kept))):
        own, *others = map(GridStates.read, kept[epoch])
        for place in PLACES:
            found[f"diff_{place}{when}"] = deviation(
                getattr(own, place), [getattr(other, place) for other in others]
            )
    return found


def diff_history(folders: Sequence[Path]) -> list[dict[str, float]]:
    """The paper's Diff over training: its mean over all pairs of runs.

    Args:
        folders: Of runs that kept their states, all of one sample.

    Returns:
        ``epoch``, ``begin`` and ``end`` for the epochs that all of them have.
    """
    rows = []
    for epoch, paths in common_states(folders).items():
        states = [GridStates.read(path) for path in paths]
        row = {"epoch": float(epoch)}
        for place in PLACES:
            fields = [getattr(each, place) for each in states]
            pairs = [
                deviation(field, fields[:number] + fields[number + 1 :])
                for number, field in enumerate(fields)
            ]
            row[place] = sum(pairs) / len(pairs)
        rows.append(row)
    return rows


def common_states(folders: Sequence[Path]) -> dict[int, list[Path]]:
    """The files of states of several runs, by the epochs that all of them have."""
    kept = [kept_states(folder / STATES) for folder in folders]
    epochs = [epoch for epoch in kept[0] if all(epoch in each for each in kept)]
    return {epoch: [each[epoch] for each in kept] for epoch in epochs}
