"""FNO's Navier-Stokes trajectories, ``NavierStokes_V1e-3_N5000_T50.mat``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "FNO Navier-Stokes (.mat)"


def recognise(path: Path) -> bool:
    """``a`` (samples, x, y) and ``u`` (samples, x, y, records)."""
    found = mat.shapes(path)
    return [len(found.get(name, ())) for name in "au"] == [3, 4]


def read(path: Path) -> FieldFile:
    """Vorticity on the unit torus at the file's own ``t``.

    Without it, times are t = 1, 2, ..., T where the name ends in ``_T50`` or the like.
    """
    with reading(path, NAME):
        arrays, handle = mat.load(path, "a", "u", "t")
        u, a = arrays["u"], arrays["a"]
        times = None
        if "t" in arrays:
            times = mat.whole(arrays["t"]).ravel()
        elif re.search(rf"_T{u.shape[3]}(?!\d)", path.name):
            times = np.arange(1.0, 1 + u.shape[3])
        return ArrayFile(
            path,
            read,
            fields=[Field(u, "nxyt", ["w"])],
            static=[Field(a, "nxy", ["w0"])],
            static_role="initial condition",
            axes=[nodes(size, periodic=True) for size in u.shape[1:3]],
            times=times,
            domain=Domain.unit(2),
            equation="navier-stokes",
            handle=handle,
        )
