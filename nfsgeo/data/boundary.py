"""Distance and direction to the boundary of a sample's own mesh, as static inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.data.conventions import NODE_TYPE, SPACE, STATIC, Floats, Indices
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import Key, deferred
from nfsgeo.data.windows import Cache
from nfsgeo.geometry import Domain
from nfsgeo.geometry.cells import boundary_sides, way_to_points, way_to_segments

__all__ = ["boundary_at", "boundary_kinds", "boundary_names", "interior_of"]
__all__ += ["types_of", "with_boundary"]

# Meanings of the type of points that are on no boundary; else its number is 0.
INTERIOR = ("interior", "normal", "fluid", "internal", "inner", "inside")


def interior_of(file: Fields) -> int:
    """The node type of points on no boundary of a ``file``, by meaning, or else 0."""
    known = file.categories.get(file.node_types or "", {})
    named = (v for v, text in known.items() if text.lower() in INTERIOR)
    return next(named, 0)


def boundary_kinds(file: Fields, samples: Iterable[int]) -> tuple[int, ...] | None:
    """Node types of some samples other than that of the interior, in their order.

    An empty tuple of a ``file`` without such types whose cells tell the boundary, and
    None where it has neither.
    """
    samples = list(samples)
    if file.node_types is not None:
        found = {int(k) for s in samples for k in np.unique(types_of(file, s))}
        if kinds := found - {interior_of(file)}:
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

    Of each of the node types ``kinds`` the nearest point counts, whether it is observed
    or not. Without any it is the boundary of the cells: sides that belong to one cell
    alone, their nearest point in the plane and their nearest corner elsewhere. Both are
    in the normalised domain. A sample without points of a kind has the diagonal of the
    domain as the distance, and no direction. They are computed when they are read, once
    for each mesh.
    """
    names, ways = boundary_names(file.domain, kinds), _Ways(file, tuple(kinds))
    dims, sizes = list(file.places), dict(file.dataset.sizes)
    if "obs" not in dims and file.sample_geometry.any():
        dims = ["sample", *dims]
    dataset = file.dataset.drop_vars(names, errors="ignore")
    for number, name in enumerate(names):
        read, shape = partial(ways.read, number), [sizes[dim] for dim in dims]
        column = deferred(dims, shape, np.float32, read, {"role": STATIC})
        dataset = dataset.assign({name: column})
    return file._changed(dataset)


def boundary_at(
    file: Fields, kinds: Sequence[int] | None, sample: int, points: Tensor
) -> dict[str, Floats]:
    """The inputs of :func:`with_boundary` by name at other ``points [M, d]``.

    Of a sample of the ``file``; none where ``kinds`` is None.
    """
    if kinds is None:
        return {}
    columns = _Ways(file, tuple(kinds)).make(sample, points).T
    return dict(zip(boundary_names(file.domain, kinds), columns, strict=True))


class _Ways:
    """Distances and directions of the samples of a file, cached by their mesh."""

    def __init__(self, file: Fields, kinds: tuple[int, ...]) -> None:
        self.file, self.kinds, self.cache = file, kinds, Cache(2**30)

    def read(self, column: int, key: Key) -> NDArray[Any]:
        """A part of one of the inputs, along ``obs``, or samples and places."""
        file, shape = self.file, [self.file.dataset.sizes[d] for d in self.file.places]
        if file.rows(0) is None:
            if len(key) == len(shape):
                return self._placed(0, column).reshape(shape)[key]
            wanted = range(file.num_samples)[key[0]]
            if isinstance(wanted, int):
                return self._placed(wanted, column).reshape(shape)[key[1:]]
            several = [self._placed(s, column).reshape(shape) for s in wanted]
            return np.stack(several)[(slice(None), *key[1:])]
        rows = np.arange(shape[0])[key[0]]
        found = np.empty(np.shape(rows), np.float32)
        for sample in np.unique(np.searchsorted(self.ends, rows, side="right")):
            first, last = (0, *self.ends)[sample], self.ends[sample]
            mine = (rows >= first) & (rows < last)
            found[mine] = self.of(int(sample))[rows[mine] - first, column]
        return found

    @cached_property
    def ends(self) -> Indices:
        """End of each sample along ``obs``."""
        return np.cumsum(self.file.dataset["row_size"].values)

    def _placed(self, sample: int, column: int) -> Floats:
        """Return an input at all points of the file, NaN where a sample lacks one."""
        values = self.of(sample)[:, column]
        there = None if self.file.axes is not None else self.file._points(sample)[1]
        if there is None:
            return values
        whole = np.full(len(there), np.nan, np.float32)
        whole[there] = values
        return whole

    def of(self, sample: int) -> Floats:
        """All inputs of a sample ``[n, (1 + d) K]``."""
        mesh = int(self.file.sample_geometry[sample])
        made: Floats = self.cache.get(mesh, partial(self.make, sample))
        return made

    def make(self, sample: int, points: Tensor | None = None) -> Floats:
        """All inputs at the ``points [M, d]``, or those of the sample, uncached."""
        domain = self.file.domain
        mine = torch.from_numpy(self.file.coordinates(sample))
        places = [mine if each is None else each for each in (None, points)]
        known, pos = (
            domain.normalise(domain.wrap(each), torch.float64) for each in places
        )
        if not self.kinds:
            return _columns(self._to_cells(sample, known, pos), pos, domain)
        types = types_of(self.file, sample)
        found = []
        for kind in self.kinds:
            there = torch.from_numpy(np.flatnonzero(types == kind))
            way = None
            if len(there):
                way = way_to_points(pos, known[there], domain.normalised)
            found.append(_columns(way, pos, domain))
        return np.concatenate(found, axis=1)

    def _to_cells(self, sample: int, known: Tensor, pos: Tensor) -> Tensor | None:
        """The way from ``pos`` to the boundary of the cells, whose corners are
        ``known``; None where they have none.
        """
        domain = self.file.domain.normalised
        sides = boundary_sides(self.file.cells(sample), known)
        if not sides:
            return None
        if domain.dim == 2 and all(side.shape[1] == 2 for side in sides):
            ends = torch.cat([known[torch.from_numpy(side)] for side in sides])
            return way_to_segments(pos, ends, domain)
        numbers = np.unique(np.concatenate([side.ravel() for side in sides]))
        return way_to_points(pos, known[torch.from_numpy(numbers)], domain)


def _columns(way: Tensor | None, pos: Tensor, domain: Domain) -> Floats:
    """Distance and direction ``[n, 1 + d]`` of a way."""
    if way is None:
        found = pos.new_zeros(len(pos), 1 + pos.size(1))
        found[:, 0] = float(np.linalg.norm(domain.normalised.lengths))
    else:
        away = way.norm(dim=1, keepdim=True)
        found = torch.cat([away, way / away.where(away > 0, 1)], dim=1)
    return found.float().numpy()


def types_of(file: Fields, sample: int, name: str | None = None) -> Indices:
    """Node types of the points of a sample, or a category of another ``name``."""
    name = name or file.node_types
    assert name is not None
    read = file._read([name], sample, slice(0, 1), None)
    return read[:, 0, 0].astype(np.int64)
