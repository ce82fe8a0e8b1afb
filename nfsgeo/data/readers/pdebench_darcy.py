"""PDEBench's Darcy flow, ``2D_DarcyFlow_beta...hdf5``."""

from __future__ import annotations

from pathlib import Path

import h5py

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.gridded import ArrayFile, Field, even_axis
from nfsgeo.data.readers.hdf5 import ranks
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "PDEBench Darcy (.hdf5)"


def recognise(path: Path) -> bool:
    """``tensor`` (samples, 1, x, y), ``nu`` (samples, x, y) and two coordinates."""
    found = ranks(path, "tensor", "nu", "x-coordinate", "y-coordinate")
    return found == [4, 3, 1, 1]


def read(path: Path) -> FieldFile:
    """Coefficient and solution at the centres of cells of a bounded box."""
    with reading(path, NAME):
        file = h5py.File(path, "r")
        ends = [even_axis(file[f"{name}-coordinate"][:], centred=True) for name in "xy"]
        beta = file.attrs.get("beta")
        return ArrayFile(
            path,
            read,
            fields=[Field(file["tensor"], "ntxy", ["u"])],
            static=[Field(file["nu"], "nxy", ["a"])],
            static_role="coefficient",
            axes=[end[0] for end in ends],
            times=[0.0],
            domain=Domain(
                tuple(end[1] for end in ends),
                tuple(end[2] for end in ends),
                (False, False),
            ),
            equation="darcy",
            provenance={"parameters": {} if beta is None else {"beta": float(beta)}},
            handle=file,
        )
