"""The data of the demonstration."""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.generation import cached_file
from nfsgeo.progress import Progress, silent

__all__ = ["demo_file"]


def demo_file(progress: Progress = silent) -> Path:
    """Navier-Stokes on a coarse grid, made once and kept in the user's cache.

    Viscosity 1e-3, a snapshot every 0.25 time units.

    Args:
        progress: As :func:`nfsgeo.data.generation.generate` takes it.
    """
    return cached_file(
        "navier-stokes", samples=360, resolution=64, records=20, progress=progress
    )
