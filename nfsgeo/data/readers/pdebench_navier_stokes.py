"""PDEBench's incompressible Navier-Stokes, ``ns_incom_inhom_2d_512-...h5``."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.gridded import ArrayFile, Field, cell_centres
from nfsgeo.data.readers.hdf5 import ranks
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "PDEBench Navier-Stokes (.h5)"


def recognise(path: Path) -> bool:
    """``velocity``, ``particles``, ``force`` and ``t``."""
    return ranks(path, "velocity", "particles", "force", "t") == [5, 5, 4, 2]


def read(path: Path) -> FieldFile:
    """Velocity and particle density at cell centres of the bounded unit square.

    Raises:
        UserError: Also when samples were recorded at different times.
    """
    with reading(path, NAME):
        file = h5py.File(path, "r")
        times = file["t"][:]
        if not np.allclose(times, times[0]):
            raise ValueError("samples recorded at different times")
        u = file["velocity"]
        return ArrayFile(
            path,
            read,
            fields=[
                Field(u, "ntxyc", ["u", "v"]),
                Field(file["particles"], "ntxyc", ["particles"]),
            ],
            static=[Field(file["force"], "nxyc", ["force_x", "force_y"])],
            static_role="coefficient",
            axes=[cell_centres(size) for size in u.shape[2:4]],
            times=times[0],
            domain=Domain.unit(2, periodic=False),
            equation="navier-stokes",
            handle=file,
        )
