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

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Printed:
    """A value in a table of the paper.

    Attributes:
        value: None where the model ran out of memory.
        spread: Standard deviation over seeds; None where none is printed.
        doubt: Why it cannot be right, empty for a sound value.
    """

    value: float | None
    spread: float | None
    doubt: str


def printed(
    equation: str,
    *,
    n_s: int,
    n_t: int,
    n_t_out: int,
    grid: bool,
    measure: str = "mae",
    mesh_factor: int = 1,
) -> dict[str, Printed]:
    """What the paper prints for a problem, by variant; empty where it prints nothing.

    Args:
        equation: Its name.
        n_s: Number of points.
        n_t: Input time steps, 0 where a coefficient is the input.
        n_t_out: Predicted time steps.
        grid: Whether the points are equispaced.
        measure: As in the file.
        mesh_factor: As in the file.
    """
    points = "grid" if grid else "irregular"
    key = (equation, n_s, n_t, n_t_out, points, mesh_factor, measure)
    table = _read("paper")
    of = ["equation", "n_s", "n_t", "n_t_out", "points", "mesh_factor", "measure"]
    rows = table[(table[of] == list(map(str, key))).all(axis=1)]
    # What several tables repeat has its spread in the first.
    return {
        row.variant: Printed(
            None if row.value == "OOM" else float(row.value),
            float(row.spread) if row.spread else None,
            row.doubt,
        )
        for row in rows.drop_duplicates("variant").itertuples()
    }


def published(problem: str) -> pd.DataFrame:
    """What was published on a problem, in the order of the file, all of it text."""
    table = _read("published")
    return table[table.problem == problem]


@cache
def _read(name: str) -> pd.DataFrame:
    path = Path(__file__).with_name(f"{name}.csv")
    return pd.read_csv(path, dtype=str, keep_default_na=False)
