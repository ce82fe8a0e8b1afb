"""Pictures of states on the grid, and of how alike they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nfsgeo.evaluation.convergence import GridStates
from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo_benchmarks.paper import printed
from nfsgeo_benchmarks.suites.convergence import (
    PLACES,
    common_states,
    diff_history,
)
from nfsgeo_benchmarks.suites.figures import SIZE

__all__ = ["state_figures"]

NAMES = {"begin": "before the blocks", "end": "after the blocks"}


def state_figures(
    folder: Path, rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Figure]]:
    """Diff over training and the states of two variants, with captions.

    Args:
        folder: Of the suite.
        rows: Of one problem and seed.

    Returns:
        None of them without two finished runs that kept states.
    """
    done = [row for row in rows if row["status"] == "ok"]
    folders = [folder / row["folder"] for row in done]
    if len(folders) < 2 or not common_states(folders):
        return []
    names = [row["variant"] for row in done[:2]]
    captions = (
        f"Diff of the states of {len(done)} networks for one test sample, mean over "
        f"all pairs. {_of_the_paper()}",
        "One channel of the states for one test sample, in the last record: that in "
        f"which they vary most, of {names[0]} and {names[1]}, and their difference.",
    )
    figures = (_curves(diff_history(folders)), _maps(folders[:2], names))
    return list(zip(captions, figures, strict=True))


def _of_the_paper() -> str:
    """What it prints, in a sentence."""
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
        texts.append(f"from {first} to {last} {NAMES[place]}")
    return f"The paper's falls over 500 epochs {' and '.join(texts)}."


def _curves(history: Sequence[Mapping[str, float]]) -> Figure:
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    epochs = [row["epoch"] for row in history]
    for place, colour in zip(PLACES, ("model", "second"), strict=True):
        values = [row[place] for row in history]
        ax.plot(epochs, values, "o-", ms=3, color=COLOURS[colour], label=NAMES[place])
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
        line[0].set_ylabel(f"{NAMES[place]}\nafter {epoch} epochs")
    return figure


def _plane(state: NDArray[Any]) -> NDArray[Any]:
    """The last record of a field on the plane; a line is shown over its records."""
    return state[..., -1] if state.ndim == 3 else state
