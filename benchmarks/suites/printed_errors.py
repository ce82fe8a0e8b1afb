"""Errors from publications: from the paper, and on public data sets.

``paper.csv``: ``table`` (a name for it), ``equation``, ``n_s``, ``n_t`` (0 where a
coefficient is the input), ``n_t_out``, ``points`` (``grid`` or ``irregular``),
``variant``, ``mesh_factor`` (points of the mesh of evaluation over those of training),
``measure``, ``value`` (errors in the units of the fields, seconds, bytes; ``OOM``),
``spread`` (standard deviation, where printed) and ``doubt`` (why it cannot be right).

``published.csv``: ``problem`` (of the suite ``foreign``), ``method``, ``measure`` (a
column of ``results.csv``), ``value``, ``highest`` (where the source gives a range, its
upper end) and ``source``. Where sources contradict each other, each has its row. None
of these methods was run here.
"""

from __future__ import annotations

import pandas as pd

from nfsgeo.data.pde import find_equation
from nfsgeo.report.text import error_text
from nfsgeo_benchmarks import FOLDER
from nfsgeo_benchmarks.suites.data import DataSet
from nfsgeo_benchmarks.suites.runs import runs_of
from nfsgeo_benchmarks.suites.suite import Suite


def paper_values(suite: Suite) -> dict[tuple[str, str], str]:
    """The MAE that the paper prints, as text by problem and variant of a suite.

    ``OOM`` where a model ran out of memory; in brackets where it cannot be right. None
    for other equations than the paper's, such as those of another viscosity.
    """
    texts: dict[tuple[str, str], str] = {}
    runs = runs_of(suite, "paper") if "paper" in suite.scales else []
    keys = ["equation", "n_s", "n_t", "n_t_out", "points", "mesh_factor", "measure"]
    table = _read("paper").set_index(keys)
    for run in {run.problem: run for run in runs}.values():
        if not isinstance(run.data, DataSet) or run.data.options:
            continue
        equation, side = find_equation(run.data.equation), run.settings.get("data.grid")
        points = (
            side**equation.domain.dim if side else run.settings.get("data.points", 0)
        )
        steps = [run.settings.get(f"data.{key}", 10) for key in ("n_in", "n_out")]
        steps = [0, 1] if equation.num_steps == 1 else steps
        kind = "grid" if side else "irregular"
        key = (equation.name, *map(str, (points, *steps)), kind, "1", "mae")
        for row in table[table.index == key].itertuples():
            text = "OOM" if row.value == "OOM" else error_text(float(row.value))
            texts[run.problem, row.variant] = f"({text})" if row.doubt else text
    return texts


def published(problem: str) -> pd.DataFrame:
    """Published errors on a problem, in the order of the file, as text."""
    table = _read("published")
    return table[table.problem == problem]


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False)
