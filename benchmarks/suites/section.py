"""What the page about a suite says about one problem."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nfsgeo.data.equations import find_equation
from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.report.numbers import bytes_text, count_text, seconds_text
from nfsgeo.report.style import Picture, styled
from nfsgeo.training import RunPaths
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.paper import Printed
from nfsgeo_benchmarks.suites.fields import field_figures
from nfsgeo_benchmarks.suites.figures import (
    error_against_cost,
    error_against_setting,
    learning_curves,
)
from nfsgeo_benchmarks.suites.invariance import error_against_mesh
from nfsgeo_benchmarks.suites.results import memory_column
from nfsgeo_benchmarks.suites.state_figures import state_figures
from nfsgeo_benchmarks.suites.suite import Suite
from nfsgeo_benchmarks.suites.table import Cell, best_of

__all__ = ["measure_title", "mesh_picture", "problem_section"]

TITLES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "rel_l2": "relative L2",
    "diff_begin_0": "Diff before blocks, untrained",
    "diff_begin": "trained",
    "diff_end_0": "Diff after blocks, untrained",
    "diff_end": "trained",
}
Row = Mapping[str, Any]


def problem_section(
    problem: str,
    suite: Suite,
    cells: Mapping[tuple[str, str], Cell],
    rows: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed],
) -> dict[str, Any]:
    """The table of a problem and its pictures, as the template takes them.

    Args:
        problem: Its name.
        suite: That it belongs to.
        cells: Of the suite.
        rows: Of all runs of the suite.
        folder: Of the suite.
        paper: What the paper prints, by variant and problem.
    """
    here = {name: cell for (name, where), cell in cells.items() if where == problem}
    best = {m: best_of(cells, problem, m, suite.rivals) for m in suite.measures}
    first = [row for row in rows if row["problem"] == problem and row["seed"] == 0]
    with styled():
        pictures = [
            _shown(caption, figure)
            for caption, figure in _figures(problem, suite, cells, first, folder)
        ]
    return {
        "name": problem,
        "about": _about(here),
        "rows": [
            _row(name, cell, best)
            | {
                "paper": _printed(paper.get((name, problem))),
                "reference": bool(suite.rivals) and name in suite.references,
            }
            for name, cell in here.items()
        ],
        "paper": any(where == problem for _, where in paper),
        "pictures": pictures,
    }


def measure_title(measure: str) -> str:
    """Head of a column of errors."""
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


def _figures(
    problem: str,
    suite: Suite,
    cells: Mapping[tuple[str, str], Cell],
    rows: Sequence[Row],
    folder: Path,
) -> Iterator[tuple[str, Figure]]:
    """Captions and figures of the first seed's runs, and errors over all seeds."""
    leading = next(iter(suite.variants))
    if suite.against:
        label, values = suite.against.label, suite.abscissae
        if along := error_against_setting(cells, problem, values, label):
            yield f"Error on test samples against {label}; dashed: not set.", along
    if cost := error_against_cost(cells, problem, leading):
        yield "Error on test samples against the time that training took.", cost
    histories = {
        row["variant"]: read_history(RunPaths(folder / row["folder"]).metrics)
        for row in rows
    }
    if curves := learning_curves(histories, leading):
        yield "Error on validation samples after each epoch, first seed.", curves
    if suite.states:
        yield from state_figures(folder, rows)
    rivals = [row for row in rows if row["variant"] in suite.rivals]
    yield from field_figures(folder, rivals or rows)


def _about(here: Mapping[str, Cell]) -> str | None:
    first = next((cell.first for cell in here.values() if cell.values), None)
    if first is None:
        return None
    points = f"{count_text(first['n_s'])} points"
    if find_equation(first["equation"]).records == 1:
        return f"{points}, the solution from the coefficient"
    many = "records" if first["n_t"] > 1 else "record"
    return f"{points}, {first['n_t']} {many} in and {first['n_t_out']} out"


def _row(variant: str, cell: Cell, best: Mapping[str, float]) -> dict[str, Any]:
    errors = []
    for measure, smallest in best.items():
        value = cell.values.get(measure)
        spread = cell.spread.get(measure, math.nan)
        errors.append(
            {
                "text": cell.status if value is None else f"{value:.2e}",
                "spread": "" if math.isnan(spread) else f"{spread:.0e}",
                "best": value == smallest,
            }
        )
    known = cell.first
    return {
        "name": variant,
        "errors": errors,
        "epochs": count_text(known["epochs"]),
        "parameters": count_text(known["parameters"]),
        "time": seconds_text(known["seconds_per_epoch"]),
        "memory": bytes_text(known["peak_memory_bytes"]),
        "parts": [
            bytes_text(known[column])
            for column in map(memory_column, PARTS)
            if column in known
        ],
    }


def _printed(cell: Printed | None) -> str:
    """A cell of the paper; in brackets what cannot be right."""
    if cell is None:
        return ""
    text = "OOM" if cell.value is None else f"{cell.value:.2e}"
    return f"({text})" if cell.doubt else text


def mesh_picture(
    suite: Suite, cells: Mapping[tuple[str, str], Cell]
) -> dict[str, str] | None:
    """The picture of errors against meshes, of a suite that has meshes."""
    if not suite.meshes:
        return None
    caption = (
        "Error against the mesh that test samples are observed on, a panel for each "
        "problem: at the observed points (filled) and at others (open), mean and "
        "standard deviation over seeds."
    )
    with styled():
        figure = error_against_mesh(cells, suite.meshes)
        return None if figure is None else _shown(caption, figure)


def _shown(caption: str, figure: Figure) -> dict[str, str]:
    png = Picture("", "errors", caption, figure).png()
    source = "data:image/png;base64," + base64.b64encode(png).decode()
    return {"caption": caption, "source": source}
