"""Errors on meshes of every kind: the table and the picture of a suite."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo_benchmarks.suites.table import Means, SeedMean

COLUMNS = (
    "pde",
    "n_t",
    "variant",
    "mesh",
    "seed",
    "mae_observed",
    "mae_unobserved",
    "mae",
    "n_s",
    "num_points",
    "n_t_out",
    "problem",
    "folder",
)
# A variant of this name is the one before it, trained on a grid of as many points.
GRID = "-equispaced"
# Time steps at the end of a problem's name; they have columns of their own.
TIME_STEPS = re.compile(r"-\d+-to-\d+$")


def errors_on_meshes(paths: RunPaths) -> dict[str, float]:
    """Columns of ``results.csv`` from what a run found on its meshes.

    ``mae_MESH`` at the observed points of each, ``mae_unobserved_MESH`` at others that
    no point set of training contains, see
    :func:`~nfsgeo.evaluation.evaluate_meshes`. Meshes that a run left out are missing.

    Args:
        paths: Of the run.
    """
    found = {}
    for row in _meshes_of(paths):
        found[f"mae_{row['mesh']}"] = float(row["mae_observed"])
        found[f"mae_unobserved_{row['mesh']}"] = float(row["mae_unobserved"])
    return found


def write_invariance(
    rows: Sequence[Mapping[str, Any]], meshes: Sequence[str], folder: Path
) -> Path:
    """Writes ``invariance.csv``, a row for each mesh of each finished run.

    ``pde`` is the problem, without the time steps in its name; a run on a grid counts
    as its variant on the mesh ``equispaced``. Problems and variants come in the order
    of ``rows``, meshes in that of ``meshes``.

    Args:
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        meshes: Of the suite.
        folder: Of the suite.
    """
    table: list[dict[str, Any]] = []
    for row in rows:
        if row["status"] == "ok":
            same = {name: row[name] for name in COLUMNS if name in row}
            same["pde"] = TIME_STEPS.sub("", row["problem"])
            same["variant"] = row["variant"].removesuffix(GRID)
            for found in _meshes_of(RunPaths(folder / row["folder"])):
                table.append(same | found)
    orders = [
        list(dict.fromkeys(row["problem"] for row in rows)),
        list(dict.fromkeys(row["variant"].removesuffix(GRID) for row in rows)),
        ["equispaced", *meshes],
    ]
    path = folder / "invariance.csv"
    write_rows(path, COLUMNS, sorted(table, key=partial(_place, orders)))
    return path


def _meshes_of(paths: RunPaths) -> Iterator[dict[str, str]]:
    with open(paths.meshes, newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _place(orders: Sequence[Sequence[str]], row: Mapping[str, Any]) -> tuple[int, ...]:
    """Where a row belongs in the table."""
    names = (row["problem"], row["variant"], row["mesh"])
    places = [order.index(name) for order, name in zip(orders, names, strict=True)]
    return (*places, row["seed"])


def error_against_mesh(means: Means, meshes: Sequence[str]) -> Figure | None:
    """Errors of all variants on every mesh, one panel per problem.

    None without a finished run.
    """
    problems = list(dict.fromkeys(where for (_, where), mean in means.items()))
    variants = list(dict.fromkeys(name.removesuffix(GRID) for name, _ in means))
    on_grids = any(name.endswith(GRID) for name, _ in means)
    columns = [*(["equispaced"] if on_grids else []), *meshes]
    if not any(mean.values for mean in means.values()):
        return None
    figure = Figure((2 * WIDTH, 2.1 * len(problems) + 0.6), layout="constrained")
    panels = figure.subplots(len(problems), 1, squeeze=False, sharex=True)[:, 0]
    for panel, problem in zip(panels, problems, strict=True):
        for number, variant in enumerate(variants):
            shift = 0.5 * (number + 0.5) / len(variants) - 0.25
            found = [
                means.get((variant + (GRID if mesh == "equispaced" else ""), problem))
                for mesh in columns
            ]
            _errors(panel, found, columns, shift, number, variant)
        panel.set(yscale="log", ylabel="MAE", title=problem)
        panel.grid(True, axis="y")
    panels[-1].set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    panels[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _errors(
    panel: Axes,
    means: Sequence[SeedMean | None],
    columns: Sequence[str],
    shift: float,
    number: int,
    variant: str,
) -> None:
    """Errors of one variant: filled at observed points, open at unobserved ones."""
    colours = ["model", "second", "third", "muted", "pale", "ink"]
    colour = COLOURS[colours[number % len(colours)]]
    for prefix, filled in (("mae_", True), ("mae_unobserved_", False)):
        places, values, spreads = [], [], []
        for place, (mean, mesh) in enumerate(zip(means, columns, strict=True)):
            value = mean.values.get(prefix + mesh) if mean else None
            if mean is not None and value is not None:
                spread = mean.spread[prefix + mesh]
                places.append(place + shift + (0 if filled else 0.06))
                values.append(value)
                spreads.append(0.0 if math.isnan(spread) else spread)
        panel.errorbar(
            places,
            values,
            spreads,
            fmt="o",
            ms=4,
            color=colour,
            mfc=colour if filled else "white",
            elinewidth=0.8,
            label=variant if filled else None,
        )
