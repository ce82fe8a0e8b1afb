"""FNO's Darcy flow, ``piececonst_r421_N1024_smooth1.mat``."""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "FNO Darcy (.mat)"


def recognise(path: Path) -> bool:
    """``coeff`` and ``sol``, both (samples, x, y)."""
    found = mat.shapes(path)
    return [len(found.get(name, ())) for name in ("coeff", "sol")] == [3, 3]


def read(path: Path) -> FieldFile:
    """Coefficient and solution at nodes that include the boundary of [0, 1]^2."""
    with reading(path, NAME):
        arrays, handle = mat.load(path, "coeff", "sol")
        u, a = arrays["sol"], arrays["coeff"]
        return ArrayFile(
            path,
            read,
            fields=[Field(u, "nxy", ["u"])],
            static=[Field(a, "nxy", ["a"])],
            static_role="coefficient",
            axes=[nodes(size, periodic=False) for size in u.shape[1:]],
            times=[0.0],
            domain=Domain.unit(2, periodic=False),
            equation="darcy",
            handle=handle,
        )
