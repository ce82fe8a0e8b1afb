"""PDEBench's files: trajectories in one dimension, Darcy flow, Navier-Stokes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import h5py
import numpy as np

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers.gridded import ArrayFile, Field, cell_centres, even_axis
from nfsgeo.data.readers.reader import Reader
from nfsgeo.geometry import Domain

__all__ = ["BURGERS", "DARCY", "NAVIER_STOKES"]


def _ranks(path: Path, *names: str) -> list[int]:
    """Number of axes of each data set; fails where one is not there."""
    with h5py.File(path, "r") as file:
        return [file[name].ndim for name in names]


def _is_burgers(path: Path) -> bool:
    return _ranks(path, "tensor", "x-coordinate", "t-coordinate") == [3, 1, 1]


def _burgers(path: Path) -> FieldFile:
    """``tensor`` (samples, time steps, points): periodic trajectories at cell centres.

    ``t-coordinate`` has one entry too many. PDEBench's viscosity is Nu/pi, with Nu an
    attribute or in the file's name. Advection and reaction-diffusion look the same.
    """
    file = h5py.File(path, "r")
    u = file["tensor"]
    axis, lower, upper = even_axis(file["x-coordinate"][:], centred=True)
    named = re.search(r"Nu([0-9.]+\d)", path.name)
    nu = file.attrs.get("Nu", named and named[1])
    burgers = "burgers" in path.name.lower()
    viscosity = {"viscosity": float(nu) / math.pi} if burgers and nu else {}
    return ArrayFile(
        path,
        fields=[Field(u, "ntx", ["u"])],
        axes=[axis],
        times=file["t-coordinate"][: u.shape[1]],
        domain=Domain((lower,), (upper,), (True,)),
        equation="burgers" if burgers else "",
        provenance={"parameters": viscosity},
        handle=file,
    )


def _is_darcy(path: Path) -> bool:
    names = ("tensor", "nu", "x-coordinate", "y-coordinate")
    return _ranks(path, *names) == [4, 3, 1, 1]


def _darcy(path: Path) -> FieldFile:
    """``tensor`` (samples, 1, x, y) and the coefficient ``nu`` (samples, x, y) at the
    centres of cells of a bounded box.
    """
    file = h5py.File(path, "r")
    ends = [even_axis(file[f"{name}-coordinate"][:], centred=True) for name in "xy"]
    axes, lower, upper = zip(*ends, strict=True)
    beta = file.attrs.get("beta")
    return ArrayFile(
        path,
        fields=[Field(file["tensor"], "ntxy", ["u"])],
        static=[Field(file["nu"], "nxy", ["a"])],
        static_role="coefficient",
        axes=axes,
        times=[0.0],
        domain=Domain(lower, upper, (False, False)),
        equation="darcy",
        provenance={"parameters": {} if beta is None else {"beta": float(beta)}},
        handle=file,
    )


def _is_navier_stokes(path: Path) -> bool:
    return _ranks(path, "velocity", "particles", "force", "t") == [5, 5, 4, 2]


def _navier_stokes(path: Path) -> FieldFile:
    """``ns_incom_inhom_2d_512-...h5``: velocity and particle density at cell centres of
    the bounded unit square, all samples at the same times.
    """
    file = h5py.File(path, "r")
    times = file["t"][:]
    if not np.allclose(times, times[0]):
        raise ValueError("samples stored at different times")
    u = file["velocity"]
    return ArrayFile(
        path,
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


BURGERS = Reader("PDEBench Burgers (.hdf5)", _is_burgers, _burgers)
DARCY = Reader("PDEBench Darcy (.hdf5)", _is_darcy, _darcy)
NAVIER_STOKES = Reader(
    "PDEBench Navier-Stokes (.h5)", _is_navier_stokes, _navier_stokes
)
