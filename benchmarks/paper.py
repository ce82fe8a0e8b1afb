"""The numbers that the paper prints, from ``paper.csv``.

Columns of the file: ``table`` (a name for it), ``equation``, ``n_s``, ``n_t`` (0 where
a coefficient is the input), ``n_t_out``, ``points`` (``grid`` or ``irregular``),
``variant``, ``mesh_factor`` (points of the mesh of evaluation over those of training),
``measure``, ``value`` (errors in the units of the fields, seconds, bytes; ``OOM``),
``spread`` (standard deviation, where printed) and ``doubt`` (why it cannot be right).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


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
    return _values().get(key, {})


@cache
def _values() -> dict[tuple[object, ...], dict[str, Printed]]:
    values: dict[tuple[object, ...], dict[str, Printed]] = {}
    with open(Path(__file__).parent / "paper.csv", newline="") as file:
        for row in csv.DictReader(file):
            numbers = (int(row[name]) for name in ("n_s", "n_t", "n_t_out"))
            where = (row["points"], int(row["mesh_factor"]), row["measure"])
            entry = Printed(
                None if row["value"] == "OOM" else float(row["value"]),
                float(row["spread"]) if row["spread"] else None,
                row["doubt"],
            )
            # What several tables repeat has its spread in the first.
            here = values.setdefault((row["equation"], *numbers, *where), {})
            here.setdefault(row["variant"], entry)
    return values
