"""One self-contained page about a suite."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

import nfsgeo.report
from nfsgeo.report.numbers import bytes_text, count_text, error_text, seconds_text
from nfsgeo.report.style import Picture, styled
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.training.history import read_history
from nfsgeo.version import __version__
from nfsgeo_benchmarks.paper import Printed
from nfsgeo_benchmarks.suites.figures import error_against_cost, learning_curves
from nfsgeo_benchmarks.suites.suite import Scale, Suite
from nfsgeo_benchmarks.suites.table import Cell, best_of, cells_of, judge

__all__ = ["write_suite_report"]

TITLES = {"mae": "MAE", "rmse": "RMSE", "rel_l2": "relative L2"}
Row = Mapping[str, Any]


def write_suite_report(
    suite: Suite,
    scale: Scale,
    command: str,
    rows: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed] | None = None,
) -> Path:
    """Writes ``report.html`` from whatever runs there are.

    Args:
        suite: What is compared.
        scale: At which sizes.
        command: That makes it again.
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        folder: Of the suite.
        paper: What the paper prints, by variant and problem.

    Returns:
        The path of the page, which loads nothing and runs no script.
    """
    cells = cells_of(rows)
    done = sum(row["status"] == "ok" for row in rows)
    page = _template().render(
        title=suite.title,
        scale=scale.title,
        command=command,
        version=__version__,
        done=done,
        total=len(rows),
        references=suite.references,
        measures=[_title(measure) for measure in suite.measures],
        sections=[
            _section(problem, suite, cells, rows, folder, paper or {})
            for problem in dict.fromkeys(row["problem"] for row in rows)
        ],
        claims=[
            {
                "title": verdict.claim.title,
                "problem": verdict.problem,
                "ratio": error_text(verdict.ratio),
                "at_most": f"{verdict.claim.at_most:g}",
                "text": verdict.text,
            }
            for verdict in judge(suite.claims, cells)
        ],
        failures=[row for row in rows if row["message"]],
    )
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def _section(
    problem: str,
    suite: Suite,
    cells: Mapping[tuple[str, str], Cell],
    rows: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed],
) -> dict[str, Any]:
    """The table of a problem and its pictures."""
    leading = next(iter(suite.variants))
    here = {name: cell for (name, where), cell in cells.items() if where == problem}
    histories = {
        row["variant"]: read_history(RunPaths(folder / row["folder"]).metrics)
        for row in rows
        if row["problem"] == problem and row["seed"] == 0
    }
    captions = {
        "cost": "Error on test samples against the time that training took.",
        "curves": "Error on validation samples after each epoch, first seed.",
    }
    with styled():
        drawn = {
            "cost": error_against_cost(cells, problem, leading),
            "curves": learning_curves(histories, leading),
        }
    first = next((cell.first for cell in here.values() if cell.values), None)
    about = None
    if first is not None:
        about = (
            f"{count_text(first['n_s'])} points, {first['n_t']} records in and "
            f"{first['n_t_out']} out"
        )
    best = {m: best_of(cells, problem, m, suite.rivals) for m in suite.measures}
    return {
        "name": problem,
        "about": about,
        "rows": [
            _row(name, cell, best)
            | {
                "paper": _printed(paper.get((name, problem))),
                "reference": name in suite.references,
            }
            for name, cell in here.items()
        ],
        "paper": any(where == problem for _, where in paper),
        "pictures": [
            _shown(Picture(name, "errors", captions[name], figure))
            for name, figure in drawn.items()
            if figure is not None
        ],
    }


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
    }


def _title(measure: str) -> str:
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


def _printed(cell: Printed | None) -> str:
    """A cell of the paper; in brackets what cannot be right."""
    if cell is None:
        return ""
    text = "OOM" if cell.value is None else f"{cell.value:.2e}"
    return f"({text})" if cell.doubt else text


def _shown(picture: Picture) -> dict[str, str]:
    source = "data:image/png;base64," + base64.b64encode(picture.png()).decode()
    return {"caption": picture.caption, "source": source}


def _template() -> jinja2.Template:
    styles = Path(nfsgeo.report.__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(__file__).parent, styles]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("suite.html.j2")
