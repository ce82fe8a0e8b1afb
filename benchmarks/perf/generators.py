"""Cost of the data sets' instances, and a fixed piece of work to give it in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from nfsgeo.data.batches import Task, batch_size_for, solve_batches
from nfsgeo.data.equations import find_equation


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
        equation: Its name.
        samples: Instances of the batch.
        resolution: Points on each axis; the equation's own if None.
        records: Number of time steps; the equation's own if None.
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


# Of a pass on the core on which the costs in entries.py were measured.
PASS_SECONDS = 2.8e-4


def calibration(folder: Path, *, seconds: float) -> Callable[[], object]:
    """Work that took so long, on one thread, where the costs were measured.

    Fourier transforms of four fields on 128 x 128 points in double precision, there
    and back, with products in between: what the solvers spend their time on.

    Args:
        seconds: CPU seconds on that core.
    """
    if not seconds > 0:
        raise ValueError(f"{seconds} seconds: expected a positive number")
    random = torch.Generator().manual_seed(0)
    field = torch.randn(4, 128, 128, dtype=torch.float64, generator=random)
    filtering = torch.rand(128, 65, dtype=torch.float64, generator=random)
    passes = max(1, round(seconds / PASS_SECONDS))

    def run() -> torch.Tensor:
        modes = torch.fft.rfft2(field)
        for _ in range(passes):
            modes = torch.fft.rfft2(torch.fft.irfft2(modes) * field) * filtering
        return modes

    return run
