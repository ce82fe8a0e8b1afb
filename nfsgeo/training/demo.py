"""The data of the demonstration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nfsgeo.data.generation import generate

__all__ = ["demo_file"]

EQUATION = "navier-stokes"
SAMPLES = 360
RESOLUTION = 64
RECORDS = 20
SEED = 0


def demo_file(progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Navier-Stokes on a coarse grid, made once and kept in the user's cache.

    Viscosity 1e-3, a record every 0.25 time units. The cache is
    ``$XDG_CACHE_HOME/nfsgeo``, or ``~/.cache/nfsgeo``.

    Args:
        progress: As :func:`nfsgeo.data.generation.generate` takes it.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"{EQUATION}-{RESOLUTION}-{RECORDS}-{SAMPLES}-seed{SEED}.h5"
    path = caches / "nfsgeo" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(
            EQUATION,
            path,
            samples=SAMPLES,
            resolution=RESOLUTION,
            records=RECORDS,
            seed=SEED,
            device="cpu",
            workers=os.cpu_count() or 1,
            options={},
            progress=progress,
        )
    return path
