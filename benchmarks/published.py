"""Errors that others published on public data sets, from ``published.csv``.

Columns of the file: ``problem`` (of the suite ``foreign``), ``method``, ``measure`` (a
column of ``results.csv``), ``value``, ``highest`` (where the source gives a range, its
upper end) and ``source``. Where sources contradict each other, each has its row. None
of these methods was run here.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Published:
    """A figure that others published.

    Attributes:
        method: Name of the method.
        measure: Which error.
        value: The error.
        highest: Upper end, where the source gives a range.
        source: Who published it.
    """

    method: str
    measure: str
    value: float
    highest: float | None
    source: str


def published(problem: str) -> tuple[Published, ...]:
    """What was published on a problem, in the order of the file."""
    return tuple(entry for name, entry in _entries() if name == problem)


@cache
def _entries() -> tuple[tuple[str, Published], ...]:
    with open(Path(__file__).parent / "published.csv", newline="") as file:
        return tuple(
            (
                row["problem"],
                Published(
                    row["method"],
                    row["measure"],
                    float(row["value"]),
                    float(row["highest"]) if row["highest"] else None,
                    row["source"],
                ),
            )
            for row in csv.DictReader(file)
        )
