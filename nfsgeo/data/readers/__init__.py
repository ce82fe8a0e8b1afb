"""Readers of foreign formats, one file a format.

Each module has a ``NAME``, ``recognise(path)``, which looks at the content and never
raises, and ``read(path)``, which returns a :class:`~nfsgeo.data.fields.FieldFile` or
raises a :class:`~nfsgeo.errors.UserError`. ``READERS`` lists them in the order in
which they are asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers import (
    fno_burgers,
    fno_burgers_series,
    fno_darcy,
    fno_navier_stokes,
    mp_pde,
    neuraloperator,
    nfs_pickle,
    npz,
    npz_grid,
    pdebench_burgers,
    pdebench_darcy,
    pdebench_navier_stokes,
    table,
    the_well,
    vtk,
    vtk_series,
)

__all__ = ["READERS", "Reader"]


class Reader(Protocol):
    """What a reader's module provides."""

    NAME: str

    def recognise(self, path: Path) -> bool: ...

    def read(self, path: Path) -> FieldFile: ...


READERS: tuple[Reader, ...] = (
    fno_burgers,
    fno_burgers_series,
    fno_navier_stokes,
    fno_darcy,
    mp_pde,
    pdebench_burgers,
    pdebench_darcy,
    pdebench_navier_stokes,
    the_well,
    neuraloperator,
    nfs_pickle,
    npz,
    npz_grid,
    vtk,
    vtk_series,
    table,
)
