"""Cost of the data sets' instances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nfsgeo.data.batches import Task, batch_size_for, solve_batches
from nfsgeo.data.equations import find_equation

__all__ = ["batch_of", "instances"]


def batch_of(equation: str) -> int:
    """Instances that `nfsgeo generate` solves together on the CPU."""
    found = find_equation(equation)
    return batch_size_for(found.resolution**found.dim, found.records, "cpu")


def instances(
    folder: Path,
    *,
    equation: str,
    samples: int,
    resolution: int | None = None,
    records: int | None = None,
) -> Callable[[], object]:
    """Solves a batch of an equation, checks it and rounds it as for the file.

    Args:
        folder: Unused.
        equation: Its name.
        samples: Instances of the batch.
        resolution: Points on each axis; the equation's own when None.
        records: Number of records; the equation's own when None.
    """
    solver = find_equation(equation)
    task = Task(
        solver,
        0,
        range(samples),
        resolution or solver.resolution,
        records or solver.records,
        "cpu",
    )
    return lambda: list(solve_batches([task], 1))
