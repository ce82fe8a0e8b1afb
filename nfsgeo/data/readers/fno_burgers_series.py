"""FNO's Burgers trajectories, ``burgers_v100_t100...mat`` and the like."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "FNO Burgers trajectories (.mat)"


def recognise(path: Path) -> bool:
    """``input`` (samples, points) and ``output`` (samples, records, points)."""
    found = mat.shapes(path)
    return [len(found.get(name, ())) for name in ("input", "output")] == [2, 3]


def read(path: Path) -> FieldFile:
    """Trajectories that begin with ``input``; the first of ``output`` is unreliable.

    The file holds neither viscosity nor times; they are taken from its name:
    ``v100`` stands for 1/100, ``t200`` for 200 steps from t = 0 to 1.
    """
    with reading(path, NAME):
        arrays, handle = mat.load(path, "input", "output")
        u, first = (mat.whole(arrays[name]) for name in ("output", "input"))
        if handle is not None:
            handle.close()
        if first.shape != (u.shape[0], u.shape[2]):
            raise ValueError(f"input {first.shape} does not fit output {u.shape}")
        u[:, 0] = first
        named = re.search(r"v(\d+)", path.name)
        viscosity = {"viscosity": 1 / int(named[1])} if named else {}
        steps = re.search(rf"(?<![A-Za-z])t{u.shape[1] - 1}(?!\d)", path.name)
        return ArrayFile(
            path,
            read,
            fields=[Field(u, "ntx", ["u"])],
            axes=[nodes(u.shape[2], periodic=True)],
            times=np.linspace(0, 1, u.shape[1]) if steps else None,
            domain=Domain.unit(1),
            equation="burgers",
            provenance={"parameters": viscosity},
        )
