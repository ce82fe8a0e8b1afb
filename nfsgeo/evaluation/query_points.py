"""Query points from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.checks import as_real
from nfsgeo.data.formats.columns import ROLES, bare_name
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["read_points"]


def read_points(path: Path, domain: Domain) -> NDArray[np.float64]:
    """Coordinates ``[M, d]`` from ``.npy``, ``.npz`` (its only array, or ``pos``) or
    ``.csv`` (one column per axis, in any order if the first line names them).

    Points that are up to one period outside along a periodic axis are brought back.

    Args:
        path: The file.
        domain: The box and the region that must contain the points.

    Raises:
        UserError: The file cannot be read, or a point is not finite or lies outside
            the domain.
    """
    if not path.is_file():
        raise UserError(f"{path}", "an existing file", "check the name")
    readers = {".npy": _numpy, ".npz": _numpy, ".csv": _csv}
    if path.suffix not in readers:
        raise UserError(
            f"{path}", "a .npy, .npz or .csv file", "save the points as one"
        )
    try:
        points = as_real(readers[path.suffix](path), str(path)).astype(np.float64)
    except UserError:
        raise
    except Exception as error:  # whatever breaks in a damaged file
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{path} ({reason})", "an array of points", "correct the file"
        ) from None
    if points.ndim != 2 or points.shape[1] != domain.dim or not len(points):
        raise UserError(
            f"{path} with an array of shape {points.shape}",
            f"one row of {domain.dim} coordinates for each point",
            "reshape the array",
        )
    points = domain.wrap_near(torch.from_numpy(points)).numpy()
    inside = replace(domain, region=None).contains(torch.from_numpy(points)).numpy()
    if not inside.all():
        first = int(np.argmin(inside))
        raise UserError(
            f"{path} with point {first} at {points[first].tolist()}",
            f"points in the domain, {domain.lower} to {domain.upper}, or up to one "
            "period beside it on periodic axes",
            "move or leave out the points outside",
        )
    domain.check_region(torch.from_numpy(points), f"{path} with ")
    return points


def _numpy(path: Path) -> NDArray[np.float64]:
    arrays = np.load(path, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        return arrays
    with arrays:
        names = list(arrays)
        if "pos" not in names and len(names) != 1:
            raise KeyError(f"arrays {names}, none of them named pos")
        return arrays["pos" if "pos" in names else names[0]]


def _csv(path: Path) -> NDArray[np.float64]:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    names: list[str] = []
    try:
        [float(cell) for cell in lines[0].split(",")]
    except (ValueError, IndexError):
        names = [name.strip() for name in "".join(lines[:1]).lstrip("#").split(",")]
        lines = lines[1:]
    if not lines:
        raise ValueError("no rows of numbers")
    rows = np.loadtxt(lines, delimiter=",", ndmin=2)
    if not names:
        return rows
    order: list[int] = []
    for number, axis in enumerate("xyz"):
        fitting = [i for i, name in enumerate(names) if bare_name(name) in ROLES[axis]]
        if len(fitting) > 1:
            raise ValueError(f"columns {names}, of which several may be {axis}")
        if fitting and len(order) < number:
            raise ValueError(f"columns {names}, {axis} without those before it")
        order += fitting
    if len(order) < len(names):
        raise ValueError(f"columns {names}, not x, y and z alone")
    return rows[:, order]
