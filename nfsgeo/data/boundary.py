"""Distance and direction to the boundary of a sample's own mesh, as static inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from xarray import Variable

from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import DERIVED, NODE_TYPE, SPACE, STATIC, Floats, Indices
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import Key, deferred, stacked
from nfsgeo.geometry import Domain
from nfsgeo.geometry.cells import (
    boundary_sides,
    cell_edges,
    way_to_points,
    way_to_segments,
)

__all__ = ["boundary_at", "boundary_kinds", "boundary_names", "interior_of"]
__all__ += ["types_of", "with_boundary"]

# Largest distance of points on a boundary over the diagonal of the domain, above the
# rounding of single precision, and the part of the way to the nearest other point at
# which their direction is taken.
ON, INWARD = 1e-6, 0.1
# Meanings of the type of points that are on no boundary; else its number is 0.
INTERIOR = ("interior", "normal", "fluid", "internal", "inner", "inside")


def interior_of(file: Fields) -> int:
    """The node type of points on no boundary of a ``file``, by meaning, or else 0."""
    meanings = file.categories.get(file.node_types or "", {})
    named = (v for v, text in meanings.items() if text.lower() in INTERIOR)
    return next(named, 0)


def boundary_kinds(file: Fields, samples: Iterable[int]) -> tuple[int, ...] | None:
    """Node types of some samples other than that of the interior, increasing.

    The tuple is empty if the ``file`` has no such types, but cells, which tell the
    boundary; None if it has neither.
    """
    samples = list(samples)
    if file.node_types is not None:
        types = {int(k) for s in samples for k in np.unique(types_of(file, s))}
        if kinds := types - {interior_of(file)}:
            return tuple(sorted(kinds))
    return () if all(file.cells(sample) for sample in samples) else None


def boundary_names(domain: Domain, kinds: Sequence[int]) -> list[str]:
    """Names of the inputs of ``kinds`` in a ``domain``, see :func:`with_boundary`."""
    names = [f"{NODE_TYPE}_{kind}" for kind in kinds] or ["boundary"]
    axes = SPACE[: domain.normalised.dim]
    return [
        text
        for name in names
        for text in (f"distance_{name}", *(f"direction_{name}_{a}" for a in axes))
    ]


def with_boundary(file: Fields, kinds: Sequence[int]) -> Fields:
    """The ``file`` with distance and direction to boundaries as further static inputs.

    They lead to the nearest point of each of the node types ``kinds``, whether it is
    observed or not, or of the sides of plane cells between such points on the boundary.
    Without such types they lead to the boundary of the cells, the sides that belong to
    one cell alone: to the nearest point of these in the plane, to their nearest corner
    elsewhere. Both are in the normalised domain. If a sample has
    no points of a kind, the distance is the diagonal of the domain, and the direction
    is 0. They are computed when they are read, once for each mesh.
    """
    names, ways = boundary_names(file.domain, kinds), _Ways(file, tuple(kinds))
    dataset = file.dataset.drop_vars(names, errors="ignore")
    ragged = "obs" in file.places
    varies = ragged or bool(file.sample_geometry.any())
    for number, name in enumerate(names):
        samples = range(file.num_samples if varies else 1)
        parts = [ways.variable(sample, number) for sample in samples]
        column = stacked(parts, "obs" if ragged else "sample") if varies else parts[0]
        column.attrs |= {"role": STATIC, DERIVED: 1}
        dataset = dataset.assign({name: column})
    return file.with_dataset(dataset)


def boundary_at(
    file: Fields, kinds: Sequence[int] | None, sample: int, points: Tensor
) -> dict[str, Floats]:
    """The inputs of :func:`with_boundary` of a sample, by name, at ``points [M, d]``.

    There are none where ``kinds`` is None.
    """
    if kinds is None:
        return {}
    columns = _Ways(file, tuple(kinds)).make(sample, points).T
    return dict(zip(boundary_names(file.domain, kinds), columns, strict=True))


class _Ways:
    """Distances and directions of the samples of a file, cached by their mesh."""

    def __init__(self, file: Fields, kinds: tuple[int, ...]) -> None:
        self.file, self.kinds, self.cache = file, kinds, Cache(2**30)

    def variable(self, sample: int, column: int) -> Variable:
        """One of the inputs at all points of a sample, computed when it is read."""
        rows, sizes = self.file.rows(sample), self.file.dataset.sizes
        shape = [sizes[dim] for dim in self.file.places]
        shape = shape if rows is None else [rows.stop - rows.start]
        read = partial(self._read, sample, column, shape)
        return deferred(self.file.places, shape, np.float32, read)

    def _read(
        self, sample: int, column: int, shape: Sequence[int], key: Key
    ) -> NDArray[Any]:
        """A part of one of the inputs, NaN where a sample has no point."""
        mesh = int(self.file.sample_geometry[sample])
        values = self.cache.get(mesh, partial(self.make, sample))[:, column]
        if (exists := self.file.existing(sample)) is not None:
            whole = np.full(len(exists), np.nan, np.float32)
            whole[exists] = values
            values = whole
        return values.reshape(shape)[key]

    def make(self, sample: int, points: Tensor | None = None) -> Floats:
        """All inputs ``[M, (1 + d) K]`` at the ``points [M, d]``, by default those of
        the sample, uncached.
        """
        domain = self.file.domain
        mesh = torch.from_numpy(self.file.coordinates(sample))
        mesh = domain.normalise(domain.wrap(mesh), torch.float64)
        cells = self.file.cells(sample)
        pos, edges = mesh, cell_edges(cells)
        if points is not None:
            pos = domain.normalise(domain.wrap(points), torch.float64)
        if not self.kinds:
            sides = boundary_sides(cells, mesh)
            to_cells = partial(_way_to_cells, sides, mesh, domain)
            return _columns(to_cells, mesh, pos, domain, edges)
        flat = domain.normalised.dim == 2
        lines = _lines(boundary_sides(cells, mesh) if flat else ())
        types, columns = types_of(self.file, sample), []
        for kind in self.kinds:
            way_from = partial(_way_to_type, types == kind, lines, mesh, domain)
            columns.append(_columns(way_from, mesh, pos, domain, edges))
        return np.concatenate(columns, axis=1)


def _lines(sides: Sequence[Indices]) -> Indices:
    """Both ends ``[m, 2]`` of the sides that are lines."""
    lines = [side for side in sides if side.shape[1] == 2]
    return np.concatenate([np.empty((0, 2), np.int64), *lines])


def _way_to_cells(
    sides: Sequence[Indices], mesh: Tensor, domain: Domain, pos: Tensor
) -> Tensor | None:
    """The way from ``pos`` to the ``sides`` of cells whose corners are ``mesh``.

    It is None where there are no sides.
    """
    if not sides:
        return None
    box = domain.normalised
    if box.dim == 2 and all(side.shape[1] == 2 for side in sides):
        ends = torch.cat([mesh[torch.from_numpy(side)] for side in sides])
        return way_to_segments(pos, ends, box)
    numbers = np.unique(np.concatenate([side.ravel() for side in sides]))
    return way_to_points(pos, mesh[torch.from_numpy(numbers)], box)


def _way_to_type(
    chosen: NDArray[np.bool_], sides: Indices, mesh: Tensor, domain: Domain, pos: Tensor
) -> Tensor | None:
    """The way from ``pos`` to the ``chosen`` points and sides between them, if any.

    The nearest points alone would make directions depend on how fine the boundary is.
    """
    ways, box = [], domain.normalised
    if chosen.any():
        ways.append(way_to_points(pos, mesh[torch.from_numpy(chosen)], box))
    if len(sides := sides[chosen[sides].all(axis=1)]):
        ways.append(way_to_segments(pos, mesh[torch.from_numpy(sides)], box))
    if len(ways) < 2:
        return ways[0] if ways else None
    nearer = ways[1].norm(dim=1, keepdim=True) < ways[0].norm(dim=1, keepdim=True)
    return ways[1].where(nearer, ways[0])


def _columns(
    way_from: Callable[[Tensor], Tensor | None],
    mesh: Tensor,
    pos: Tensor,
    domain: Domain,
    edges: Indices,
) -> Floats:
    """Distance and direction ``[n, 1 + d]`` of the way from ``pos`` to a boundary.

    On the boundary the direction is the limit along the line from the nearest point of
    the ``mesh`` that is off it, for points of the mesh with such a neighbour along the
    ``edges`` of cells from the nearest of these, on their side of a thin body. A
    direction of 0 would depend on the spacing as soon as it is interpolated.
    """
    box = domain.normalised
    diagonal = float(np.linalg.norm(box.lengths))
    columns = pos.new_zeros(len(pos), 1 + pos.size(1))
    if (way := way_from(pos)) is None:
        columns[:, 0] = diagonal
        return columns.float().numpy()
    columns[:, 0] = away = way.norm(dim=1)
    if (on := away <= ON * diagonal).any():
        far = way if mesh is pos else way_from(mesh)
        assert far is not None
        off = far.norm(dim=1) > ON * diagonal
        if off.any():
            inward = torch.zeros_like(pos)
            inward[on] = way_to_points(pos[on], mesh[off], box)
            if mesh is pos:
                _follow_edges(inward, on, edges, mesh, box)
            near = way_from(box.wrap(pos[on] + INWARD * inward[on]))
            assert near is not None
            way = way.index_put((on,), near)
    length = way.norm(dim=1, keepdim=True)
    columns[:, 1:] = way / length.where(length > 0, 1)
    return columns.float().numpy()


def _follow_edges(
    inward: Tensor, on: Tensor, edges: Indices, mesh: Tensor, box: Domain
) -> None:
    """Lead ``inward [n, d]`` to the nearest neighbour along an edge that is not ``on``.

    Points without such a neighbour keep their entry.
    """
    source, target = torch.from_numpy(edges)
    use = on[target] & ~on[source]
    source, target = source[use], target[use]
    step = box.displacement(mesh[target], mesh[source])
    order = step.norm(dim=1).argsort(descending=True, stable=True)
    # NumPy keeps the last of several entries of a target, which is the nearest.
    inward.numpy()[target[order].numpy()] = step[order].numpy()


def types_of(file: Fields, sample: int, name: str | None = None) -> Indices:
    """Node types of the points of a sample, or a category of another ``name``."""
    name = name or file.node_types
    assert name is not None
    return file.read_values([name], sample)[:, 0, 0].astype(np.int64)
