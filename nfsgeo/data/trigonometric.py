"""Values of periodic grid functions between the grid points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.errors import UserError

__all__ = ["TrigonometricInterpolation", "periodic_weights"]

Doubles = NDArray[np.float64]

WORK_BYTES = 2**26


def periodic_weights(num: int, phase: Doubles) -> Doubles:
    r"""Weight of each of ``num`` equispaced values in the trigonometric interpolant.

    The Dirichlet kernel, whose highest mode is a cosine where ``num`` is even. The
    interpolant is exact for every function with frequencies below ``num / 2``.

    Args:
        num: Grid points in a period, at phases ``0, 1/num, ...``.
        phase: Where to interpolate, in periods, ``[n]``.

    Returns:
        Weights, ``[n, num]``; each row sums to 1.
    """
    distance = phase[:, None] - np.arange(num) / num
    distance -= np.round(distance)
    angle = np.pi * distance
    close = np.abs(distance) < 1e-12
    ratio = np.tan(angle) if num % 2 == 0 else np.sin(angle)
    return np.where(
        close, 1.0, np.sin(num * angle) / (num * np.where(close, 1.0, ratio))
    )


class TrigonometricInterpolation:
    """Interpolates a file's grid fields to points between its grid points.

    Trigonometric along periodic axes, exact there for band-limited fields. Along a
    bounded axis nothing is interpolated: the points must sit at grid coordinates.

    Args:
        file: Fields on a grid.
        pos: Points in the domain, ``[n, d]``.

    Raises:
        UserError: The file has no grid, a periodic axis is not equispaced over its
            whole period, or a point lies between the coordinates of a bounded axis.
    """

    def __init__(self, file: FieldFile, pos: Doubles) -> None:
        if file.axes is None or file.shape is None:
            raise UserError(
                f"points off the grid of {file.path}",
                "a file of fields on a grid",
                "use a subset of the file's own points",
            )
        self._shape = file.shape
        self._weights = [_axis_weights(file, i, pos[:, i]) for i in range(pos.shape[1])]

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Interpolates ``[prod(S), ...]`` to ``[n, ...]``, computing in float64."""
        rest = values.shape[1:]
        field = values.reshape(*self._shape, int(np.prod(rest)))
        field = np.moveaxis(field, -1, 0).astype(np.float64)
        num = len(self._weights[0])
        result = np.empty((num, field.shape[0]), np.float32)
        widest = max(1, 8 * int(np.prod(field.shape[:-1])))
        step = max(1, WORK_BYTES // widest)
        for start in range(0, num, step):
            rows = slice(start, start + step)
            part = field @ self._weights[-1][rows].T
            for weights in reversed(self._weights[:-1]):
                part = np.einsum("...ip,pi->...p", part, weights[rows])
            result[rows] = part.T
        return result.reshape(num, *rest)


def _axis_weights(file: FieldFile, i: int, x: Doubles) -> Doubles:
    assert file.axes is not None
    axis, length = file.axes[i], file.domain.upper[i] - file.domain.lower[i]
    num = len(axis)
    if file.domain.periodic[i]:
        spacing = length / num
        if not np.allclose(np.diff(axis), spacing, rtol=1e-6):
            raise UserError(
                f"axis {i} of {file.path}",
                f"{num} equispaced points over its period of {length:g}",
                "use a subset of the file's own points",
            )
        return periodic_weights(num, (x - axis[0]) / length)
    nearest = np.abs(x[:, None] - axis).argmin(axis=1)
    if not np.allclose(axis[nearest], x, rtol=0, atol=1e-9 * length):
        raise UserError(
            f"points between the grid coordinates of axis {i} of {file.path}",
            "grid coordinates, since the axis is not periodic",
            "use a subset of the file's own points",
        )
    return np.eye(num)[nearest]
