"""FNO's Burgers pairs, ``burgers_data_R10.mat``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "FNO Burgers pairs (.mat)"


def recognise(path: Path) -> bool:
    """``a`` and ``u``, both (samples, points)."""
    found = mat.shapes(path)
    return [len(found.get(name, ())) for name in "au"] == [2, 2]


def read(path: Path) -> FieldFile:
    """Two records: the initial condition ``a`` at t = 0 and ``u`` at t = 1."""
    with reading(path, NAME):
        arrays, handle = mat.load(path, "a", "u")
        u = np.stack([mat.whole(arrays["a"]), mat.whole(arrays["u"])], axis=1)
        if handle is not None:
            handle.close()
        return ArrayFile(
            path,
            read,
            fields=[Field(u, "ntx", ["u"])],
            axes=[nodes(u.shape[2], periodic=True)],
            times=[0.0, 1.0],
            domain=Domain.unit(1),
            equation="burgers",
        )
