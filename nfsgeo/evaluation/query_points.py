"""Query points from a file."""

from __future__ import annotations

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
        domain: Must contain the points.

    Raises:
        UserError: The file cannot be read, or a point is not finite or lies outside
            the domain.
    """
    readers = {".npy": _numpy, ".npz": _numpy, ".csv": _csv}
    if path.suffix not in readers or not path.is_file():
        raise UserError(
            f"{path}", "an existing .npy, .npz or .csv file", "check the name"
        )
    try:
        points = as_real(readers[path.suffix](path), str(path)).astype(np.float64)
        if points.ndim != 2 or points.shape[1] != domain.dim or not len(points):
            raise ValueError(f"an array of shape {points.shape}")
    except UserError:
        raise
    except Exception as error:  # whatever breaks in a damaged file
        reason = (str(error) or type(error).__name__).splitlines()[0]
        each = f"an array of points, one row of {domain.dim} coordinates for each"
        raise UserError(f"{path} ({reason})", each, "correct the file") from None
    points = domain.wrap_near(torch.from_numpy(points)).numpy()
    inside = ((points >= domain.lower) & (points <= domain.upper)).all(axis=1)
    if not inside.all():
        first = int(np.argmin(inside))
        raise UserError(
            f"{path} with point {first} at {points[first].tolist()}",
            f"points in the domain, {domain.lower} to {domain.upper}",
            "move or leave out the points outside",
        )
    domain.check_region(torch.from_numpy(points), f"{path} with ")
    return points


def _numpy(path: Path) -> NDArray[np.float64]:
    arrays = np.load(path, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        return arrays
    with arrays:
        return arrays["pos" if "pos" in arrays or len(arrays) > 1 else arrays.files[0]]


def _csv(path: Path) -> NDArray[np.float64]:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    first = lines[0].split(",")
    try:
        list(map(float, first))
        return np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError:
        names = [bare_name(name.strip(" #")) for name in first]
    axes = [[i for i, n in enumerate(names) if n in ROLES[axis]] for axis in "xyz"]
    if [len(each) for each in axes] != [1] * len(names) + [0] * (3 - len(names)):
        raise ValueError(f"columns {names}, not one each of x, y and z, in this order")
    return np.loadtxt(lines[1:], delimiter=",", ndmin=2)[:, sum(axes, [])]
