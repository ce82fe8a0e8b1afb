"""Geo-FNO's steady problems on deformed meshes: elasticity, pipe and airfoil.

A set is several ``.npy`` files beside each other, which hold nothing but numbers and
are recognised by their names. It is opened by the file of its fields. The input is the
mesh itself: its coordinates are the coefficient. The first 1000 samples are for
training and 200 for the test, as published; 100 of the others are for validation.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.clouds import LazyCloudFile
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.splits import published_split
from nfsgeo.errors import UserError

__all__ = ["AIRFOIL", "ELASTICITY", "PIPE"]

TRAIN, VALID, TEST = 1000, 100, 200
MAGIC = b"\x93NUMPY"
STRESS, POINTS = "Random_UnitCell_sigma_10.npy", "Random_UnitCell_XY_10.npy"


def _is_one_of(names: tuple[str, ...], path: Path) -> bool:
    with path.open("rb") as stream:
        return path.name in names and stream.read(len(MAGIC)) == MAGIC


def _elasticity(path: Path) -> FieldFile:
    """``Random_UnitCell_sigma_10.npy`` (points, samples), the stress, and
    ``Random_UnitCell_XY_10.npy`` (points, 2, samples). Test samples are the last.
    """
    stress, points = _load(path, STRESS), _load(path, STRESS, POINTS)
    if stress.ndim != 2 or points.shape != (len(stress), 2, stress.shape[1]):
        raise ValueError(f"stress of shape {stress.shape}, points {points.shape}")
    split = published_split(stress.shape[1], TRAIN, VALID, TEST)
    return _steady(path, "stress", stress.T, list(points.transpose(1, 2, 0)), split)


def _pipe(path: Path) -> FieldFile:
    """``Pipe_Q.npy`` (samples, channels, i, j), whose first channel, the horizontal
    velocity, is predicted, and ``Pipe_X.npy`` and ``Pipe_Y.npy`` (samples, i, j),
    coordinates of its curved grid. The test samples follow those of training.
    """
    return _on_grid(path, "Pipe", 0, "velocity_x")


def _airfoil(path: Path) -> FieldFile:
    """``NACA_Cylinder_Q.npy`` (samples, 5 channels, i, j), whose last channel, the Mach
    number, is predicted, and ``NACA_Cylinder_X.npy`` and ``NACA_Cylinder_Y.npy``
    (samples, i, j), coordinates of its curved grid. The test samples follow those of
    training.
    """
    return _on_grid(path, "NACA_Cylinder", 4, "mach")


def _on_grid(path: Path, name: str, channel: int, component: str) -> FieldFile:
    """One channel of ``NAME_Q.npy`` on the grid of ``NAME_X.npy``, ``NAME_Y.npy``."""
    fields = _load(path, f"{name}_Q.npy")
    axes = [_load(path, f"{name}_Q.npy", f"{name}_{axis}.npy") for axis in "XY"]
    shapes = ", ".join(str(array.shape) for array in (fields, *axes))
    if fields.ndim != 4 or fields.shape[1] <= channel:
        raise ValueError(f"Q, X and Y of shape {shapes}, expected channel {channel}")
    num_samples, _, *grid = fields.shape
    if any(axis.shape != (num_samples, *grid) for axis in axes):
        raise ValueError(f"Q, X and Y of shape {shapes}")
    split = published_split(num_samples, TRAIN, VALID, TEST, test_last=False)
    return _steady(path, component, fields[:, channel], axes, split)


def _steady(
    path: Path,
    component: str,
    fields: NDArray,
    axes: list[NDArray],
    split: dict[str, NDArray[np.int64]],
) -> FieldFile:
    """A component, and each coordinate, of arrays (samples, ...points)."""

    def points(sample: int) -> NDArray:
        return np.stack([axis[sample].ravel() for axis in axes], axis=-1)

    return LazyCloudFile(
        path,
        num_samples=len(fields),
        num_points=fields[0].size,
        points=points,
        shared=False,
        fields=lambda sample, steps: fields[sample].reshape(-1, 1, 1)[:, steps],
        times=np.zeros(1),
        component_names=[component],
        split=split,
        coefficient=points,
        static_names=["x", "y"],
    )


def _load(path: Path, main: str, name: str | None = None) -> NDArray:
    """The array in a file of a set, which is opened by its main file."""
    if path.name != main:
        raise UserError(
            f"{path}, which belongs to {main}",
            f"the set by its {main}",
            f"give {path.with_name(main)} alone",
        )
    beside = path.with_name(name or main)
    if not beside.exists():
        raise UserError(
            f"{path} without {beside.name}", "both in one folder", "put it there"
        )
    with reading(beside, "an undamaged array (.npy)"):
        array = np.load(beside, mmap_mode="r", allow_pickle=False)
        if not array.size:
            raise ValueError(f"shape {array.shape}")
        return array


ELASTICITY = Reader(
    "Geo-FNO elasticity (.npy)",
    partial(_is_one_of, (STRESS, POINTS)),
    _elasticity,
    f"Geo-FNO elasticity: {STRESS} (points, samples), {POINTS} (points, 2, samples)",
)
PIPE = Reader(
    "Geo-FNO pipe (.npy)",
    partial(_is_one_of, ("Pipe_Q.npy", "Pipe_X.npy", "Pipe_Y.npy")),
    _pipe,
    "Geo-FNO pipe: Pipe_Q.npy (samples, channels, i, j), Pipe_X.npy and Pipe_Y.npy "
    "(samples, i, j)",
)
AIRFOIL = Reader(
    "Geo-FNO airfoil (.npy)",
    partial(_is_one_of, tuple(f"NACA_Cylinder_{each}.npy" for each in "QXY")),
    _airfoil,
    "Geo-FNO airfoil: NACA_Cylinder_Q.npy (samples, 5 channels, i, j), "
    "NACA_Cylinder_X.npy and NACA_Cylinder_Y.npy (samples, i, j)",
)
