"""Steady advection-diffusion in potential flow around the unit circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.pde.bodies import Flow

__all__ = ["RoundSolution", "clustered", "cyclic_solve", "solve_around_circle"]

# A function of the coordinate s and the angle.
Function = Callable[[Doubles, Doubles], Doubles]
# Sixth-order central differences for the first and the second derivative.
FIRST = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
REACH = len(FIRST) // 2
# Clustering of the angles around the wake, and of the radii at the wall.
AROUND, OUTWARDS = 0.6, 2.0


@dataclass(frozen=True)
class RoundSolution:
    """A temperature around the unit circle.

    Args:
        values: Temperatures ``[N, M]``.
        flow: The potential flow.
        peclet: Peclet number of the radius and the free-stream speed.
        s: Logarithms of the radii ``[M]``, from 0.
        slope: Matrix of the derivative by s, at a constant angle from the wake.
    """

    values: Doubles
    flow: Flow
    peclet: float
    s: Doubles
    slope: Doubles

    def at(self, angle: Doubles, s: Doubles) -> Doubles:
        """Return temperatures at angles from the wake ``[m, n]`` on circles ``[m]``."""
        size = len(self.s) - 1
        gap = 1 - 2 * _even(s / self.s[-1])[:, None] - _chebyshev(size)
        weights = (-1.0) ** np.arange(size + 1)
        weights[[0, -1]] /= 2
        same = np.abs(gap) < 1e-13
        rows = np.where(
            same.any(axis=1, keepdims=True), same, weights / np.where(same, 1, gap)
        )
        circles = (rows / rows.sum(axis=1, keepdims=True)) @ self.values.T
        return _around(angle, circles)

    def wall_gradient(self, angle: Doubles) -> Doubles:
        """Return the derivative by s at the wall, at angles from the wake ``[n]``."""
        return _around(angle, self.values @ self.slope[0])

    def wall_heat(self) -> float:
        """Return the heat that leaves the wall per unit of time."""
        return -self._integral(self.values @ self.slope[0])

    def far_heat(self) -> float:
        """Return the heat carried and conducted through the far boundary."""
        far, values, size = self.s[-1:], self.values[:, -1], len(self.values)
        angle = clustered(_even_angles(size), AROUND)
        modes = 1j * np.fft.fftfreq(size, 1 / size)
        around = np.fft.ifft(modes * np.fft.fft(values)).real * _density(angle)[0]
        wake_slope = self.slope[-1] @ self.flow.wake(self.s)
        conducted = self.values @ self.slope[-1] - wake_slope * around
        speed = self.flow.gradient(far, self.flow.wake(far) + angle)[0]
        return self._integral(self.peclet * speed * values - conducted)

    def _integral(self, values: Doubles) -> float:
        """Integrate a function over all angles."""
        angle = clustered(_even_angles(len(values)), AROUND)
        return float((values / _density(angle)[0]).mean()) * 2 * np.pi


def solve_around_circle(
    peclet: float,
    flow: Flow,
    depth: float,
    wall: Callable[[Doubles], Doubles],
    *,
    num_angles: int,
    num_radii: int,
    source: Function | None = None,
    far: Callable[[Doubles], Doubles] | None = None,
) -> RoundSolution:
    r"""Solve :math:`\nabla^2 T - \mathrm{Pe}\,\nabla\varphi\cdot\nabla T = f`.

    The coordinates are s and theta, the logarithm of the radius and the angle, from
    the circle at s = 0 to s = ``depth``. The equation has this form in any conformal
    image; only f changes. T is given at the wall and, at the far boundary, where fluid
    enters; its derivative by s is given where fluid leaves.

    Lines of constant angle from the wake's centre follow the wake. Along them, the
    method is Chebyshev collocation in a coordinate that is stretched at the wall, and
    between them sixth-order central differences in a coordinate that clusters lines at
    the wake. A direct solver eliminates one block of lines after another.

    Args:
        peclet: Peclet number of the circle's radius and the free-stream speed.
        flow: The potential flow.
        depth: Logarithm of the outer radius.
        wall: Wall temperature as a function of theta ``[N]``.
        num_angles: Number N of lines, a multiple of 3 and at least 9.
        num_radii: Points on each line, both ends included.
        source: The right-hand side f of s and theta; 0 without it.
        far: Data at the far boundary as a function of theta; 0 without it.

    Returns:
        The solution, which interpolates between its points.
    """
    nodes, slope = _chebyshev(num_radii - 1), _chebyshev_slope(num_radii - 1)
    part, grown = (1 - nodes) / 2, np.expm1(OUTWARDS)
    s = depth * np.expm1(OUTWARDS * part) / grown
    slope = slope * (-2 * grown / (depth * OUTWARDS * np.exp(OUTWARDS * part)))[:, None]
    wake = flow.wake(s)
    wake_slope = slope @ wake
    angle = clustered(_even_angles(num_angles), AROUND)
    density, change = (derivative[:, None] for derivative in _density(angle))
    theta = wake + angle[:, None]
    along, across = flow.gradient(s, theta)
    step = 2 * np.pi / num_angles
    identity = np.eye(num_radii)

    # Row j of line i couples to all points of the lines i - 3 to i + 3: [N, 7, M, M].
    second = density**2 * (1 + wake_slope**2)
    first = change * (1 + wake_slope**2) - density * (
        slope @ wake_slope + peclet * (across - along * wake_slope)
    )
    mixed = -2 * density * wake_slope
    system = np.einsum("ij,k,jl->ikjl", first, FIRST / step, identity)
    system += np.einsum("ij,k,jl->ikjl", second, SECOND / step**2, identity)
    system += np.einsum("ij,k,jl->ikjl", mixed, FIRST / step, slope)
    system[:, REACH] += slope @ slope - peclet * along[..., None] * slope
    enters = along[:, -1] < 0
    leaves = -density[:, 0] * wake_slope[-1] * ~enters
    system[:, :, -1] = np.einsum("i,k,l->ikl", leaves, FIRST / step, identity[-1])
    system[:, REACH, -1] += np.where(enters[:, None], identity[-1], slope[-1])

    right = source(s, theta) if source else np.zeros_like(theta)
    right[:, -1] = far(theta[:, -1]) if far else 0
    at_wall = wall(theta[:, 0])
    for k in range(len(FIRST)):
        right -= system[:, k, :, 0] * np.roll(at_wall, REACH - k)[:, None]
    inside = cyclic_solve(system[:, :, 1:, 1:], right[:, 1:])
    values = np.concatenate([at_wall[:, None], inside], axis=1)
    return RoundSolution(values, flow, peclet, s, slope)


def cyclic_solve(bands: Doubles, right: Doubles) -> Doubles:
    """Solve a periodic block-banded system by block elimination.

    Args:
        bands: Block ``[i, k]`` couples block i to block ``i + k - r`` modulo N, where
            K = 2 r + 1: ``[N, K, m, m]``. N is a multiple of r, at least 3 r.
        right: Right-hand sides ``[N, m]``.

    Returns:
        The solution ``[N, m]``.
    """
    num, width, size, _ = bands.shape
    reach = width // 2
    wide, many = reach * size, num // reach
    # Blocks of r lines couple to the blocks before and after them only.
    triple = np.zeros((3, many, reach, size, reach, size))
    for p in range(reach):
        for k in range(width):
            block, q = divmod(p + k - reach, reach)
            triple[block + 1, :, p, :, q] += bands[p::reach, k]
    before, diagonal, after = triple.reshape(3, many, wide, wide)
    # Columns: the right-hand side, the last block, which is eliminated at the end, and
    # the next block.
    columns = np.zeros((many - 1, wide, 1 + 2 * wide))
    columns[:, :, 0] = right.reshape(many, wide)[:-1]
    columns[0, :, 1 : 1 + wide] = before[0]
    columns[-1, :, 1 : 1 + wide] = after[-2]
    columns[:-1, :, 1 + wide :] = after[:-2]
    for i, column in enumerate(columns):
        pivot = diagonal[i]
        if i:
            pivot = pivot - before[i] @ columns[i - 1, :, 1 + wide :]
            column[:, : 1 + wide] -= before[i] @ columns[i - 1, :, : 1 + wide]
        column[:] = lu_solve(lu_factor(pivot, check_finite=False), column)
    for i in range(many - 3, -1, -1):
        after_it = columns[i + 1, :, : 1 + wide]
        columns[i, :, : 1 + wide] -= columns[i, :, 1 + wide :] @ after_it
    ends = before[-1] @ columns[-1] + after[-1] @ columns[0]
    schur = diagonal[-1] - ends[:, 1 : 1 + wide]
    last = np.linalg.solve(schur, right.reshape(many, wide)[-1] - ends[:, 0])
    others = columns[:, :, 0] - columns[:, :, 1 : 1 + wide] @ last
    return np.concatenate([others, last[None]]).reshape(num, size)


def clustered(x: Doubles, amount: float | Doubles) -> Doubles:
    r"""Cluster angles ``[N]`` from -pi to pi around 0.

    This is :math:`\tan(\vartheta/2) = \frac{1-a}{1+a} \tan(x/2)` for the amount a
    between -1 and 1, which multiplies spacings around 0 by (1 - a)/(1 + a). The
    negative amount gives the inverse.
    """
    up, across = (1 - amount) * np.sin(x / 2), (1 + amount) * np.cos(x / 2)
    return np.asarray(2 * np.arctan2(up, across))


def _density(angle: Doubles) -> tuple[Doubles, Doubles]:
    """Return the derivatives of x by the angle in :func:`clustered`."""
    below = 1 - 2 * AROUND * np.cos(angle) + AROUND**2
    density = (1 - AROUND**2) / below
    return density, -density * 2 * AROUND * np.sin(angle) / below


def _around(angle: Doubles, values: Doubles) -> Doubles:
    """Interpolate ``[..., N]`` trigonometrically to angles from the wake ``[..., n]``.

    The interpolant is periodic in the coordinate in which the N angles are even.
    """
    size = values.shape[-1]
    spectrum = np.fft.rfft(values) / size
    spectrum[..., 1:] *= 2
    away = clustered(angle, -AROUND) - _even_angles(size)[0]
    waves = np.exp(1j * away[..., None] * np.arange(size // 2 + 1))
    if not size % 2:
        spectrum[..., -1] /= 2
    return np.asarray((waves @ spectrum[..., None])[..., 0].real)


def _even_angles(num: int) -> Doubles:
    """Return equispaced angles between -pi and pi, half a spacing away from 0."""
    return -np.pi + 2 * np.pi * (np.arange(num) + 0.5) / num


def _even(part: Doubles) -> Doubles:
    """Invert the stretching of the coordinate s, from 0 to 1."""
    return np.log1p(part * np.expm1(OUTWARDS)) / OUTWARDS


def _chebyshev(degree: int) -> Doubles:
    """Return the Chebyshev points ``[degree + 1]``, from 1 to -1."""
    return np.cos(np.pi * np.arange(degree + 1) / degree)


def _chebyshev_slope(degree: int) -> Doubles:
    """Return the Chebyshev differentiation matrix (Trefethen, 2000)."""
    x, ends = _chebyshev(degree), np.ones(degree + 1)
    ends[[0, -1]] = 2
    signed = ends * (-1.0) ** np.arange(degree + 1)
    matrix = np.outer(signed, 1 / signed)
    matrix /= x[:, None] - x + np.eye(degree + 1)
    return matrix - np.diag(matrix.sum(axis=1))
