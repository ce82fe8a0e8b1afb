"""Points along the axes of a file's grid and between them, and values there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import diric

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.domains import is_at, is_equispaced
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes.mesh import Mesh
from nfsgeo.data.streams import Stream, philox
from nfsgeo.errors import UserError

__all__ = [
    "TrigonometricInterpolation",
    "check_flat",
    "grid_axes",
    "has_ends",
    "jittered",
    "is_band_limited",
    "off_grid",
    "periodic_weights",
    "sub_grid",
    "sub_grid_sizes",
]

WORK_BYTES = 2**26

# Root mean square of the upper third of the frequencies over that of all: of smooth
# fields, interpolation then loses less than a thousandth.
TAIL = 3e-3
SNAPSHOTS = 8


def check_flat(file: Fields, what: str) -> None:
    """Raises a UserError if a file is of a sphere, without points of ``what``."""
    if file.domain.curved:
        raise UserError(
            f"{what} points of {file.path}, which lie on a sphere",
            "all of its points, a random subset or a coarser grid",
            "choose --mesh all, random-subset or grid",
        )


def sub_grid(
    file: Fields, resolution: int | Sequence[int], seed: int = 0, sample: int = 0
) -> Mesh:
    """A grid of the ``resolution`` among the points of the file's, of each axis or all.

    Of the arguments of all samplers, ``seed`` and ``sample`` are not used.

    Raises:
        UserError: The file has no grid, or the resolution does not divide it.
    """
    axes = grid_axes(file)
    wanted = [resolution] * len(axes) if isinstance(resolution, int) else resolution
    coarse = []
    for i, (axis, num) in enumerate(zip(axes, wanted, strict=True)):
        # A grid that has both ends keeps both; any other divides evenly.
        one = has_ends(file, i)
        if num <= one or num > len(axis) or (len(axis) - one) % (num - one):
            rule = "whose predecessor divides" if one else "that divides"
            raise UserError(
                f"resolution {num} on axis {i} of {file.path}, which has {len(axis)}",
                f"a number {rule} {len(axis) - one}",
                "choose such a resolution",
            )
        stride = (len(axis) - one) // (num - one)
        first = 0 if one or file.domain.periodic[i] else (stride - 1) // 2
        coarse.append(np.arange(first, len(axis), stride))
    numbers = np.meshgrid(*coarse, indexing="ij")
    index = np.ravel_multi_index(tuple(numbers), file.shape or ()).ravel()
    return Mesh(file.coordinates()[index], index, numbers[0].shape)


def sub_grid_sizes(file: Fields) -> list[int]:
    """Points along each axis, as many on every one, of the file's sub-grids.

    Increasing; none where the axes have no common one.

    Raises:
        UserError: The file has no grid.
    """
    axes = [(len(axis), has_ends(file, i)) for i, axis in enumerate(grid_axes(file))]
    return [
        n
        for n in range(1, 1 + min(num for num, _ in axes))
        if all(n > one and (num - one) % (n - one) == 0 for num, one in axes)
    ]


def off_grid(
    file: Fields,
    num_points: int,
    seed: int,
    sample: int = 0,
    stream: Stream = Stream.OFF_GRID,
) -> Mesh:
    """``num_points``, uniformly between the grid points of periodic axes of the file.

    Along a bounded axis they keep to the grid's coordinates, for there is no exact
    interpolation.

    Args:
        file: Fields whose points are drawn.
        num_points: Number of points.
        seed: Seed of the draw.
        sample: Number of the sample; each has another draw.
        stream: Purpose of the draw.

    Raises:
        UserError: The file has no grid or no periodic axis, or is of a sphere.
    """
    axes, domain = grid_axes(file), file.domain
    check_flat(file, "off-grid")
    if not any(domain.periodic):
        raise UserError(
            f"points off the grid of {file.path}",
            "at least one periodic axis",
            "draw a random subset",
        )
    columns = []
    random = philox(seed, stream, sample).random((num_points, len(axes)))
    for i, drawn in enumerate(random.T):
        low, high = domain.lower[i], domain.upper[i]
        at = low + (high - low) * drawn
        if domain.periodic[i]:  # never on its upper end
            columns.append(np.where(at < high, at, low))
        else:
            columns.append(axes[i][(drawn * len(axes[i])).astype(np.int64)])
    return Mesh(np.stack(columns, axis=1), None)


def jittered(
    file: Fields, resolution: int | Sequence[int], seed: int, sample: int = 0
) -> Mesh:
    """A grid as of :func:`sub_grid`, each point moved at random by up to 0.4 spacings.

    Along a bounded axis a point moves to one of the file's coordinates in its cell.

    Args:
        file: Fields whose points are drawn.
        resolution: Points along each axis, or along all.
        seed: Seed of the draw.
        sample: Number of the sample; each has another draw.

    Raises:
        UserError: As for :func:`sub_grid`, or the file is of a sphere.
    """
    check_flat(file, "jittered")
    coarse, domain = sub_grid(file, resolution), file.domain
    start = np.stack(np.unravel_index(np.asarray(coarse.index), file.shape or ()))
    moved = philox(seed, Stream.JITTERED, sample).random(start.shape)
    pos = coarse.pos.T.copy()
    for i, axis in enumerate(grid_axes(file)):
        places = np.unique(start[i])
        stride = places[1] - places[0] if len(places) > 1 else len(axis)
        first = start[i] - (stride - 1) // 2  # of the cell, beyond the axis at an end
        start[i] = (first + (moved[i] * stride).astype(np.int64)).clip(0, len(axis) - 1)
        low, high, length = domain.lower[i], domain.upper[i], domain.lengths[i]
        shift = 0.8 * length * stride / len(axis) * (moved[i] - 0.5)
        at = low + (pos[i] + shift - low) % length
        pos[i] = np.where(at < high, at, low) if domain.periodic[i] else axis[start[i]]
    on_file = np.ravel_multi_index(tuple(start), file.shape or ())
    return Mesh(pos.T, None if any(domain.periodic) else on_file)


def has_ends(file: Fields, i: int) -> int:
    """1 where an axis of the grid reaches both ends of the domain, else 0."""
    axis, domain = grid_axes(file)[i], file.domain
    if domain.periodic[i]:
        return 0
    return int(is_at(axis, 0, domain.lower[i]) and is_at(axis, -1, domain.upper[i]))


def grid_axes(file: Fields) -> tuple[Doubles, ...]:
    """Coordinates along each axis of the grid that a file has to have."""
    if file.axes is None:
        raise UserError(
            f"the point cloud {file.path}",
            "fields on a grid",
            "choose another --mesh, or a --model that takes any points, such as nfs",
        )
    return file.axes


def is_band_limited(file: Fields, samples: Sequence[int] | Indices) -> bool:
    """Whether values between the grid points of a file follow from those at them.

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
        """Interpolates ``[prod(S), ...]`` to ``[n, ...]``, computing in float64."""
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
