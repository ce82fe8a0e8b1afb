"""Generated files that are made once and kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nfsgeo.data.equations import find_equation
from nfsgeo.data.generation import generate

__all__ = ["cached_file"]


def cached_file(
    equation: str,
    *,
    samples: int | None = None,
    resolution: int | None = None,
    records: int | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """A data set of one equation in the user's cache, made where it is not there yet.

    The cache is ``$XDG_CACHE_HOME/nfsgeo``, or ``~/.cache/nfsgeo``. All cores work.

    Args:
        equation: As for :func:`~nfsgeo.data.generation.generate`.
        samples: As there.
        resolution: As there.
        records: As there.
        seed: As there.
        progress: As there.

    Raises:
        UserError: As there.
    """
    found = find_equation(equation)
    solver = found.solver()
    samples = found.samples if samples is None else samples
    resolution = solver.default_resolution() if resolution is None else resolution
    records = solver.default_records() if records is None else records
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"{found.name}-{resolution}-{records}-{samples}-seed{seed}.h5"
    path = caches / "nfsgeo" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(
            found.name,
            path,
            samples=samples,
            resolution=resolution,
            records=records,
            seed=seed,
            workers=os.cpu_count() or 1,
            progress=progress,
        )
    return path
