"""PDEBench's one-dimensional trajectories: Burgers, advection, reaction-diffusion."""

from __future__ import annotations

import math
import re
from pathlib import Path

import h5py

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.gridded import ArrayFile, Field, even_axis
from nfsgeo.data.readers.hdf5 import ranks
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "PDEBench Burgers (.hdf5)"


def recognise(path: Path) -> bool:
    """``tensor`` (samples, records, points) with ``x-`` and ``t-coordinate``."""
    found = ranks(path, "tensor", "x-coordinate", "t-coordinate")
    return found == [3, 1, 1]


def read(path: Path) -> FieldFile:
    """Periodic trajectories at cell centres; ``t-coordinate`` has one entry too many.

    PDEBench's viscosity is Nu/pi, with Nu an attribute or in the file's name.
    """
    with reading(path, NAME):
        file = h5py.File(path, "r")
        u = file["tensor"]
        axis, lower, upper = even_axis(file["x-coordinate"][:], centred=True)
        named = re.search(r"Nu([0-9.]+\d)", path.name)
        nu = file.attrs.get("Nu", named and named[1])
        burgers = "burgers" in path.name.lower()
        viscosity = {"viscosity": float(nu) / math.pi} if burgers and nu else {}
        return ArrayFile(
            path,
            read,
            fields=[Field(u, "ntx", ["u"])],
            axes=[axis],
            times=file["t-coordinate"][: u.shape[1]],
            domain=Domain((lower,), (upper,), (True,)),
            equation="burgers" if burgers else "",
            provenance={"parameters": viscosity},
            handle=file,
        )
