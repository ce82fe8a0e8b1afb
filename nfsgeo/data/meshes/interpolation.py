"""Trigonometric interpolation of fields on grids, and where it is exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import diric

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.domains import is_equispaced
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes.on_grids import grid_axes
from nfsgeo.errors import UserError

__all__ = ["TrigonometricInterpolation", "is_band_limited", "periodic_weights"]

WORK_BYTES = 2**26

# Root mean square of the upper third of the frequencies over that of all: of smooth
# fields, interpolation then loses less than a thousandth.
TAIL = 3e-3
SNAPSHOTS = 8


def is_band_limited(file: Fields, samples: Sequence[int] | Indices) -> bool:
    """Return whether values between the grid points follow from those at them.

    That is so where at least one axis is periodic and, along every periodic axis, the
    points are equispaced and the upper third of the frequencies holds at most 0.3 %
    of each component's standard deviation, at up to eight snapshots of the samples.
    """
    if file.axes is None or file.shape is None or not any(file.domain.periodic):
        return False
    axes = [i for i, wraps in enumerate(file.domain.periodic) if wraps]
    if not all(is_equispaced(file.axes[i], file.domain.lengths[i]) for i in axes):
        return False
    steps = slice(None, None, -(-len(file.times) // SNAPSHOTS))
    for sample in map(int, samples):
        static = file.read_static(sample)[:, None]
        for field in (file.read_all(sample, steps), static):
            grid = field.reshape(*file.shape, *field.shape[1:]).astype(np.float64)
            # The tail of a field that is not known everywhere is NaN, and not small.
            if not all(_tail(grid, i) <= TAIL for i in axes):
                return False
    return True


def _tail(field: Doubles, i: int) -> float:
    """The largest relative size of the upper third of frequencies of ``[*S, T, C]``."""
    space, num = tuple(range(field.ndim - 2)), field.shape[i]
    field = field - field.mean(axis=space, keepdims=True)
    power = np.abs(np.fft.fft(field, axis=i)) ** 2
    high = np.abs(np.fft.fftfreq(num, 1 / num)) > num // 3
    rest = tuple(range(field.ndim - 1))
    total = power.sum(axis=rest)
    above = np.compress(high, power, axis=i).sum(axis=rest)
    fractions = above / np.where(total > 0, total, 1.0)
    return float(np.sqrt(fractions.max(initial=0.0)))


def periodic_weights(num: int, phase: Doubles) -> Doubles:
    r"""Weight of each of ``num`` equispaced values in the trigonometric interpolant.

    The Dirichlet kernel, whose highest mode is a cosine where ``num`` is even. The
    interpolant is exact for every function with frequencies below ``num / 2``. At a
    ``phase [n]`` in periods, the weights are ``[n, num]``, and each row sums to 1.
    """
    angle = 2 * np.pi * (phase[:, None] - np.arange(num) / num)
    kernel = np.asarray(diric(angle, num))
    return kernel * np.cos(angle / 2) if num % 2 == 0 else kernel


class TrigonometricInterpolation:
    """Interpolates fields on the grid of a ``file`` to points ``pos [n, d]``.

    Trigonometric along periodic axes, exact there for band-limited fields. Along a
    bounded axis nothing is interpolated: the points must sit at grid coordinates.

    Raises:
        UserError: The file has no grid, a periodic axis is not equispaced over its
            whole period, or a point lies between the coordinates of a bounded axis.
    """

    def __init__(self, file: Fields, pos: Doubles) -> None:
        self._weights = []
        for i, (axis, x) in enumerate(zip(grid_axes(file), pos.T, strict=True)):
            length, num = file.domain.lengths[i], len(axis)
            nearest = np.abs(x[:, None] - axis).argmin(axis=1)
            if file.domain.periodic[i]:
                expected = f"{num} equispaced points over its period of {length:g}"
                fits = is_equispaced(axis, length)
                weights = periodic_weights(num, (x - axis[0]) / length)
            else:
                expected = "points at its grid coordinates, since it is not periodic"
                fits = np.abs(axis[nearest] - x).max(initial=0) <= 1e-9 * length
                weights = np.eye(num)[nearest]
            if not fits:
                raise UserError(
                    f"points between those of axis {i} of {file.path}",
                    expected,
                    "use a subset of the file's own points",
                )
            self._weights.append(weights)

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Interpolate ``[prod(S), ...]`` to ``[n, ...]``, computing in float64."""
        shape, rest = [w.shape[1] for w in self._weights], values.shape[1:]
        field = values.reshape(*shape, int(np.prod(rest)))
        field = np.moveaxis(field, -1, 0).astype(np.float64)
        num = len(self._weights[0])
        result = np.empty((num, field.shape[0]), np.float32)
        step = max(1, WORK_BYTES // max(1, 8 * int(np.prod(field.shape[:-1]))))
        for start in range(0, num, step):
            rows = slice(start, start + step)
            part = field @ self._weights[-1][rows].T
            for weights in reversed(self._weights[:-1]):
                part = np.einsum("...ip,pi->...p", part, weights[rows])
            result[rows] = part.T
        return result.reshape(num, *rest)
