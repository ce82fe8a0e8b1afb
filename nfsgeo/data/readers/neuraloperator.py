"""The neuraloperator library's tensors, ``darcy_train_16.pt`` and the like."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers.graphs import is_graphs
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["NEURALOPERATOR"]

NAME = "neuraloperator (.pt)"
EXPECTED = f"{NAME}: a dict of tensors x and y, no other objects"
SNAPSHOTS, STEP = 17, 0.06  # of burgers_lowres.pt
LEGACY = bytes.fromhex("80028a0a6cfc9c46f920")


def _is_torch(path: Path) -> bool:
    """A file of ``torch.save``, new or legacy; what is in it is checked on reading."""
    with path.open("rb") as stream:
        if stream.read(len(LEGACY)) == LEGACY:
            return True
    with zipfile.ZipFile(path) as archive:
        return not is_graphs(path) and any(
            name.endswith("/data.pkl") for name in archive.namelist()
        )


def _neuraloperator(path: Path) -> FieldFile:
    """Fields of a dict with tensors ``x`` and ``y``, on the unit box.

    - ``x`` of two values, ``y`` (samples, x, y): Darcy flow, coefficient to solution,
      bounded.
    - ``x`` float of the shape of ``y``: forcing to vorticity, periodic.
    - ``y`` with one axis more, (samples, time steps, x): trajectories that begin at
      ``x``, periodic; ``visc`` becomes a parameter. The file tells no times. The
      library's own has 17 snapshots, every sixth of 101 from t = 0 to 1; the times of
      any other have to be given.

    The tensors were thinned out from a finer grid, which leaves nodes at i/n even on
    bounded axes.
    """
    tensors = _load(path)
    x, y = tensors["x"].numpy(), tensors["y"].numpy()
    steady = x.ndim == y.ndim
    darcy = steady and len(np.unique(x[:8])) <= 2
    dim = x.ndim - 1
    letters = "xyz"[:dim]
    times: Any = [0.0] if steady else None
    if y.ndim == 3 and y.shape[1] == SNAPSHOTS and not steady:
        times = STEP * np.arange(SNAPSHOTS)
    parameters = {}
    if "visc" in tensors:
        parameters["viscosity"] = float(tensors["visc"].flatten()[0])
    return ArrayFile(
        path,
        fields=[Field(y, "n" + ("" if steady else "t") + letters, ["u"])],
        static=[Field(x, "n" + letters, ["a"])],
        static_role="coefficient" if steady else "initial condition",
        axes=[nodes(size, periodic=True) for size in x.shape[1:]],
        times=times,
        domain=Domain.unit(dim, periodic=not darcy),
        equation="darcy" if darcy else "navier-stokes" if steady else "burgers",
        provenance={"parameters": parameters},
    )


def _load(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file, by name; says what else it holds."""
    todo = (
        "save what it holds as arrays: numpy.savez('data.npz', coords=points, "
        "u=fields, t=times), see nfsgeo.data.readers.npz"
    )
    try:
        found = torch.load(
            path,
            map_location="cpu",
            weights_only=True,
            mmap=zipfile.is_zipfile(path),
        )
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL (\S+)", str(error))
        if named is None:
            raise
        given = f"{path}, which holds objects of {named[1]}"
        raise UserError(given, EXPECTED, todo) from None
    if not isinstance(found, dict):
        raise UserError(f"{path}, which holds a {_kind(found)}", EXPECTED, todo)
    for name in ("x", "y"):
        if not isinstance(found.get(name), torch.Tensor):
            kinds = [f"{key} ({_kind(value)})" for key, value in found.items()]
            given = f"{path}, a dict of {', '.join(kinds[:6]) or 'nothing'}"
            raise UserError(given, EXPECTED, todo)
    return found


def _kind(value: object) -> str:
    return type(value).__name__.lower()


NEURALOPERATOR = Reader(NAME, _is_torch, _neuraloperator, EXPECTED)
