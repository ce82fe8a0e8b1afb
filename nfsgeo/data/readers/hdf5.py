"""A look into an HDF5 file, to recognise formats by their data sets."""

from __future__ import annotations

from pathlib import Path

import h5py

__all__ = ["ranks"]


def ranks(path: Path, *names: str) -> list[int | None]:
    """Number of axes of each data set, None for one that is not there."""
    try:
        with h5py.File(path, "r") as file:
            return [file[name].ndim if name in file else None for name in names]
    except Exception:  # a damaged file is not recognised, whatever breaks in it
        return [None] * len(names)
