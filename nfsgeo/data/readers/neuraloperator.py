"""The neuraloperator library's tensors, ``darcy_train_16.pt`` and the like."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.geometry import Domain

__all__ = ["NAME", "read", "recognise"]

NAME = "neuraloperator (.pt)"
LEGACY = bytes.fromhex("80028a0a6cfc9c46f920")


def recognise(path: Path) -> bool:
    """A file of ``torch.save``, new or legacy; what is in it is checked on reading."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(LEGACY)) == LEGACY:
                return True
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except Exception:  # a damaged file is not recognised, whatever breaks in it
        return False


def read(path: Path) -> FieldFile:
    """Fields of a dict with tensors ``x`` and ``y``, on the unit box.

    - ``x`` bool, ``y`` (samples, x, y): Darcy flow, coefficient to solution, bounded.
    - ``x`` float of the shape of ``y``: forcing to vorticity, periodic.
    - ``y`` with one axis more, (samples, records, x): trajectories from t = 0 to 1
      that begin at ``x``, periodic; ``visc`` becomes a parameter.

    The tensors were thinned out from a finer grid, which leaves nodes at i/n even on
    bounded axes.
    """
    with reading(path, f"{NAME}: a dict of tensors x and y, no other objects"):
        tensors = torch.load(
            path,
            map_location="cpu",
            weights_only=True,
            mmap=zipfile.is_zipfile(path),
        )
        x, y = tensors["x"].numpy(), tensors["y"].numpy()
        steady = x.ndim == y.ndim
        darcy = x.dtype == np.bool_
        dim = x.ndim - 1
        letters = "xyz"[:dim]
        parameters = {}
        if "visc" in tensors:
            parameters["viscosity"] = float(tensors["visc"].flatten()[0])
        return ArrayFile(
            path,
            read,
            fields=[Field(y, "n" + ("" if steady else "t") + letters, ["u"])],
            static=[Field(x, "n" + letters, ["a"])],
            static_role="coefficient" if steady else "initial condition",
            axes=[nodes(size, periodic=True) for size in x.shape[1:]],
            times=[0.0] if steady else np.linspace(0, 1, y.shape[1]),
            domain=Domain.unit(dim, periodic=not darcy),
            equation="darcy" if darcy else "navier-stokes" if steady else "burgers",
            provenance={"parameters": parameters},
        )
