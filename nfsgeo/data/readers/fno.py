"""The MATLAB files of the FNO paper: Burgers, Darcy and Navier-Stokes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.data.readers.reader import Reader
from nfsgeo.geometry import Domain

__all__ = ["BURGERS", "BURGERS_SERIES", "DARCY", "NAVIER_STOKES"]


def _ranks(path: Path, *names: str) -> list[int]:
    found = mat.shapes(path)
    return [len(found.get(name, ())) for name in names]


def _is_burgers(path: Path) -> bool:
    return _ranks(path, "a", "u") == [2, 2]


def _burgers(path: Path) -> FieldFile:
    """``burgers_data_R10.mat``: ``a`` and ``u`` (samples, points).

    Two time steps: the initial condition ``a`` at t = 0 and ``u`` at t = 1.
    """
    arrays, _ = mat.load(path, "a", "u")
    u = np.stack([np.asarray(arrays["a"]), np.asarray(arrays["u"])], axis=1)
    return ArrayFile(
        path,
        fields=[Field(u, "ntx", ["u"])],
        axes=[nodes(u.shape[2], periodic=True)],
        times=[0.0, 1.0],
        domain=Domain.unit(1),
        equation="burgers",
    )


def _is_burgers_series(path: Path) -> bool:
    return _ranks(path, "input", "output") == [2, 3]


def _burgers_series(path: Path) -> FieldFile:
    """``burgers_v100_t100...mat``: ``input`` (samples, points), ``output`` (samples,
    time steps, points), whose first time step is unreliable and replaced by ``input``.

    The file holds neither viscosity nor times; they are taken from its name:
    ``v100`` means 1/100, ``t200`` for 200 steps from t = 0 to 1.
    """
    arrays, _ = mat.load(path, "input", "output")
    u, first = (np.asarray(arrays[name]) for name in ("output", "input"))
    if first.shape != (u.shape[0], u.shape[2]):
        raise ValueError(f"input {first.shape} does not fit output {u.shape}")
    u[:, 0] = first
    named = re.search(r"v(\d+)", path.name)
    steps = re.search(rf"(?<![A-Za-z])t{u.shape[1] - 1}(?!\d)", path.name)
    return ArrayFile(
        path,
        fields=[Field(u, "ntx", ["u"])],
        axes=[nodes(u.shape[2], periodic=True)],
        times=np.linspace(0, 1, u.shape[1]) if steps else None,
        domain=Domain.unit(1),
        equation="burgers",
        provenance={"parameters": {"viscosity": 1 / int(named[1])} if named else {}},
    )


def _is_navier_stokes(path: Path) -> bool:
    return _ranks(path, "a", "u") == [3, 4]


def _navier_stokes(path: Path) -> FieldFile:
    """``NavierStokes_V1e-3_N5000_T50.mat``: ``a`` (samples, x, y), ``u`` (samples, x,
    y, time steps), vorticity on the unit torus at the file's own ``t``.

    Without it, times are t = 1, 2, ..., T where the name ends in ``_T50`` or the like.
    """
    arrays, handle = mat.load(path, "a", "u", "t")
    u, times = arrays["u"], None
    if "t" in arrays:
        times = np.asarray(arrays["t"]).ravel()
    elif re.search(rf"_T{u.shape[3]}(?!\d)", path.name):
        times = np.arange(1.0, 1 + u.shape[3])
    return ArrayFile(
        path,
        fields=[Field(u, "nxyt", ["w"])],
        static=[Field(arrays["a"], "nxy", ["w0"])],
        static_role="initial condition",
        axes=[nodes(size, periodic=True) for size in u.shape[1:3]],
        times=times,
        domain=Domain.unit(2),
        equation="navier-stokes",
        handle=handle,
    )


def _is_darcy(path: Path) -> bool:
    return _ranks(path, "coeff", "sol") == [3, 3]


def _darcy(path: Path) -> FieldFile:
    """``piececonst_r421_N1024_smooth1.mat``: ``coeff`` and ``sol`` (samples, x, y) at
    nodes that include the boundary of the unit square.
    """
    arrays, handle = mat.load(path, "coeff", "sol")
    u = arrays["sol"]
    return ArrayFile(
        path,
        fields=[Field(u, "nxy", ["u"])],
        static=[Field(arrays["coeff"], "nxy", ["a"])],
        static_role="coefficient",
        axes=[nodes(size, periodic=False) for size in u.shape[1:]],
        times=[0.0],
        domain=Domain.unit(2, periodic=False),
        equation="darcy",
        handle=handle,
    )


BURGERS = Reader("FNO Burgers pairs (.mat)", _is_burgers, _burgers)
BURGERS_SERIES = Reader(
    "FNO Burgers trajectories (.mat)", _is_burgers_series, _burgers_series
)
NAVIER_STOKES = Reader("FNO Navier-Stokes (.mat)", _is_navier_stokes, _navier_stokes)
DARCY = Reader("FNO Darcy (.mat)", _is_darcy, _darcy)
