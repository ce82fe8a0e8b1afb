"""A fixed piece of work, to compare machines by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

__all__ = ["calibration"]

# Of a pass on the core on which the costs in entries.py were measured.
PASS_SECONDS = 2.8e-4


def calibration(folder: Path, *, seconds: float) -> Callable[[], object]:
    """Work that took so long, on one thread, where the costs were measured.

    Fourier transforms of four fields on 128 x 128 points in double precision, there
    and back, with products in between: what the solvers spend their time on.

    Args:
        folder: Unused.
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
