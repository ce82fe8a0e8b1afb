"""States of networks on the grid: how far apart they are, over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nfsgeo.evaluation.convergence import GridStates, deviation, kept_states
from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo_benchmarks.paper import printed
from nfsgeo_benchmarks.suites.earlier import RUNS, has_folder
from nfsgeo_benchmarks.suites.figures import SIZE
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.suite import DIFFERENCES
from nfsgeo_benchmarks.suites.worker import STATES

PLACES = {"begin": "before the blocks", "end": "after the blocks"}


def differences(run: Run, runs: Sequence[Run], folder: Path) -> dict[str, float | None]:
    """The columns :data:`DIFFERENCES` of a run.

    Its states are compared with those of the finished runs of other variants on the
    same problem and seed.
    """
    alike = [
        other
        for other in runs
        if (other.problem, other.seed) == (run.problem, run.seed)
        and other.variant != run.variant
        and has_folder(other, folder)
    ]
    found: dict[str, float | None] = dict.fromkeys(DIFFERENCES)
    if not alike or not has_folder(run, folder):
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
    """The paper's Diff during training, the mean over all pairs of runs.

    Args:
        folders: Runs that saved their states for the same sample.

    Returns:
        ``epoch``, ``begin`` and ``end`` for the epochs that all runs have in common.
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
    """The saved states of several runs, by the epochs that all of them have."""
    kept = [kept_states(folder / STATES) for folder in folders]
    epochs = [epoch for epoch in kept[0] if all(epoch in each for each in kept)]
    return {epoch: [each[epoch] for each in kept] for epoch in epochs}


def state_figures(
    folder: Path, rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Figure]]:
    """Captions and figures: Diff during training, and the states of two variants.

    Args:
        folder: Folder of the suite.
        rows: Results of one problem and seed.

    Returns:
        An empty list without two finished runs that saved their states.
    """
    done = [row for row in rows if row["status"] == "ok"]
    folders = [folder / row["folder"] for row in done]
    if len(folders) < 2 or not common_states(folders):
        return []
    names = [row["variant"] for row in done[:2]]
    captions = (
        f"Diff of the states of {len(done)} networks for one test sample, mean over "
        f"all pairs. {_of_the_paper()}",
        "States for one test sample at the last time step, of the channel with the "
        f"largest variance: {names[0]}, {names[1]} and their difference.",
    )
    figures = (_curves(diff_history(folders)), _maps(folders[:2], names))
    return list(zip(captions, figures, strict=True))


def _of_the_paper() -> str:
    """The paper's values, in a sentence."""
    texts = []
    for place in PLACES:
        first, last = (
            printed(
                "navier-stokes",
                n_s=4096,
                n_t=10,
                n_t_out=40,
                grid=False,
                measure=f"diff_{place}_epoch_{epoch}",
            )["nfs"].value
            for epoch in (0, 500)
        )
        texts.append(f"from {first} to {last} {PLACES[place]}")
    return f"The paper's falls over 500 epochs {' and '.join(texts)}."


def _curves(history: Sequence[Mapping[str, float]]) -> Figure:
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    epochs = [row["epoch"] for row in history]
    for place, colour in zip(PLACES, ("model", "second"), strict=True):
        values = [row[place] for row in history]
        ax.plot(epochs, values, "o-", ms=3, color=COLOURS[colour], label=PLACES[place])
    ax.set(xlabel="epochs trained", ylabel="Diff")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.grid(True)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _maps(folders: Sequence[Path], names: Sequence[str]) -> Figure:
    kept = common_states(folders)
    figure = Figure((WIDTH, 7.4), layout="compressed")
    axes = figure.subplots(4, 3)
    titles, palettes = (*names, "difference"), ("RdBu_r", "RdBu_r", "PuOr_r")
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title)
    looks = [(place, epoch) for place in PLACES for epoch in (min(kept), max(kept))]
    for line, (place, epoch) in zip(axes, looks, strict=True):
        one, other = (getattr(GridStates.read(path), place) for path in kept[epoch])
        channel = int(np.argmax(one.reshape(len(one), -1).std(axis=1)))
        fields = [_plane(state[channel]) for state in (one, other)]
        top = float(np.abs(fields).max()) or 1.0
        shown = [*fields, fields[0] - fields[1]]
        for ax, field, colours in zip(line, shown, palettes, strict=True):
            ax.imshow(field.T, origin="lower", vmin=-top, vmax=top, cmap=colours)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
        line[0].set_ylabel(f"{PLACES[place]}\nafter {epoch} epochs")
    return figure


def _plane(state: NDArray[Any]) -> NDArray[Any]:
    """The last time step of a 2-D field; a 1-D field over its time steps."""
    return state[..., -1] if state.ndim == 3 else state
