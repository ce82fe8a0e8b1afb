"""Errors that others printed: in the paper, and on public data sets.

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

from functools import cache
from pathlib import Path

import pandas as pd


def printed(
    equation: str, *, n_s: int, n_t: int, n_t_out: int, grid: bool
) -> dict[str, str]:
    """The MAE that the paper prints for a problem, as text by variant.

    ``OOM`` where a model ran out of memory; in brackets where it cannot be right.

    Args:
        equation: Its name.
        n_s: Number of points.
        n_t: Input time steps, 0 where a coefficient is the input.
        n_t_out: Predicted time steps.
        grid: Whether the points are equispaced.
    """
    table = _read("paper")
    of = ["equation", "n_s", "n_t", "n_t_out", "points", "mesh_factor", "measure"]
    points = "grid" if grid else "irregular"
    key = [*map(str, (equation, n_s, n_t, n_t_out)), points, "1", "mae"]
    found = {}
    for row in table[(table[of] == key).all(axis=1)].itertuples():
        text = "OOM" if row.value == "OOM" else f"{float(row.value):.2e}"
        found[row.variant] = f"({text})" if row.doubt else text
    return found


def published(problem: str) -> pd.DataFrame:
    """What was published on a problem, in the order of the file, all of it text."""
    table = _read("published")
    return table[table.problem == problem]


@cache
def _read(name: str) -> pd.DataFrame:
    path = Path(__file__).with_name(f"{name}.csv")
    return pd.read_csv(path, dtype=str, keep_default_na=False)
