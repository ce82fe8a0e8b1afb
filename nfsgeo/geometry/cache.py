"""Graphs of meshes that have been seen before."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.bipartite import BipartiteGraph, batch_graphs
from nfsgeo.geometry.cells import cell_volumes
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.radius_graph import Interpolation, bipartite_graph
from nfsgeo.geometry.splines import spline_neighbours

__all__ = ["GraphCache"]

# A batch's graph is as large as all its meshes' together, so few are kept.
KEPT_BATCHES = 8

Kind = Literal[
    "points to grid", "grid to points", "points to points", "points to queries"
]
Value = TypeVar("Value")


class _LeastRecentlyUsed(Generic[Value]):
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.entries: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        if key in self.entries:
            self.entries.move_to_end(key)
        return self.entries.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        self.entries[key] = value
        self.entries.move_to_end(key)
        while len(self.entries) > self.capacity:
            self.entries.popitem(last=False)


class GraphCache:
    """Radius graphs of batches, searched once for each mesh.

    A mesh is known by the content of its positions: a batch of ``B`` copies of one
    mesh costs one search. The graph of a batch is put together from those of its
    samples; the last few are kept too. Copies and pickles of a cache start empty.

    Args:
        domain: The box, with its periodic axes.
        radius: Radius of every ball, in the units of the coordinates.
        backend: As in :func:`~nfsgeo.geometry.radius_edges`.
        max_neighbours: As in :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: As in :func:`~nfsgeo.geometry.bipartite_graph`.
        cells: Whether means over points are taken by the volumes of their cells, see
            :func:`~nfsgeo.geometry.cell_volumes`.
        to_grid_radius: Radius of the balls around the nodes of a grid; None for
            ``radius``.
        capacity: Number of meshes kept for each kind of graph; the one unused for
            longest goes first. A mesh of ``E`` edges holds about ``(28 + 4 d) E``
            bytes, the transpose included, and ``(20 + 4 d) E`` more once it has been
            summed over.

    Raises:
        UserError: If ``capacity`` is below 1.

    Attributes:
        searches: Radius searches run so far.
        mesh_hits: Samples whose graph was known.
        batch_hits: Batches whose whole graph was known.
    """

    def __init__(
        self,
        domain: Domain,
        radius: float,
        *,
        backend: str = "auto",
        max_neighbours: int | None = None,
        interpolation: Interpolation = "mean",
        cells: bool = False,
        to_grid_radius: float | None = None,
        capacity: int = 256,
    ) -> None:
        if capacity < 1:
            raise UserError(f"capacity {capacity}", "at least 1 mesh", "raise it")
        self.domain = domain
        self.radius = radius
        self.backend = backend
        self.max_neighbours = max_neighbours
        self.interpolation = interpolation
        self.cells = cells
        self.to_grid_radius = radius if to_grid_radius is None else to_grid_radius
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Forget all graphs and counts."""
        self.searches = self.mesh_hits = self.batch_hits = 0
        self._meshes: dict[str, _LeastRecentlyUsed[BipartiteGraph]] = {}
        self._batches: _LeastRecentlyUsed[BipartiteGraph] = _LeastRecentlyUsed(
            KEPT_BATCHES
        )

    def points_to_grid(
        self, pos: Tensor, batch: Tensor | None, grid: Tensor
    ) -> BipartiteGraph:
        """Points ``pos [N, d]`` to the nodes of a ``grid [m, d]`` of each sample.

        Node ``j`` of sample ``b`` is target ``b * m + j``. ``batch [N]`` is sorted,
        or none for one sample.

        Raises:
            ValueError: If a sample has no point, and as in
                :func:`~nfsgeo.geometry.bipartite_graph`.
        """
        return self._compose("points to grid", pos, batch, grid)

    def grid_to_points(
        self,
        grid: Tensor,
        pos: Tensor,
        batch: Tensor | None,
        *,
        num_samples: int | None = None,
    ) -> BipartiteGraph:
        """The nodes of a ``grid [m, d]`` of each sample to points ``pos [N, d]``.

        Node ``j`` of sample ``b`` is source ``b * m + j``. ``batch [N]`` is sorted,
        or none for one sample; ``num_samples`` tells of last ones without a point.
        """
        return self._compose("grid to points", pos, batch, grid, num_samples)

    def points_to_points(self, pos: Tensor, batch: Tensor | None) -> BipartiteGraph:
        """Points ``pos [N, d]`` to those of the same sample, themselves included."""
        return self._compose("points to points", pos, batch, None)

    def points_to_queries(
        self,
        pos: Tensor,
        batch: Tensor | None,
        query_pos: Tensor,
        query_batch: Tensor | None,
    ) -> BipartiteGraph:
        """Points ``pos [N, d]`` to the queries ``query_pos [M, d]`` of each sample.

        ``batch [N]`` and ``query_batch [M]`` are sorted, or none for one sample.
        """
        num_samples = len(_sizes(pos, batch))
        sizes = _sizes(query_pos, query_batch)
        sizes += [0] * (num_samples - len(sizes))
        queries = query_pos.split(sizes)
        return self._compose("points to queries", pos, batch, queries)

    def _compose(
        self,
        kind: Kind,
        pos: Tensor,
        batch: Tensor | None,
        other: Tensor | Sequence[Tensor] | None,
        num_samples: int | None = None,
    ) -> BipartiteGraph:
        """Graphs with ``other`` points: one set for all samples, or one for each."""
        sizes = _sizes(pos, batch)
        sizes += [0] * ((num_samples or 0) - len(sizes))
        # One copy to the host for the whole batch, where the positions are on a GPU.
        host = pos.detach().cpu().split(sizes)
        if other is None or isinstance(other, Tensor):
            others = [other] * len(sizes)
            other_keys = [None if other is None else _key(other.detach().cpu())] * len(
                sizes
            )
        else:
            others = list(other)
            other_keys = [_key(points.detach().cpu()) for points in other]
        keys = [
            (_key(points), other_key, pos.device)
            for points, other_key in zip(host, other_keys, strict=True)
        ]
        known = self._batches.get((kind, *keys))
        if known is not None:
            self.batch_hits += 1
            return known
        meshes = self._meshes.setdefault(kind, _LeastRecentlyUsed(self.capacity))
        graphs = []
        for number, (key, points, its_other) in enumerate(
            zip(keys, pos.split(sizes), others, strict=True)
        ):
            graph = meshes.get(key)
            if graph is None:
                if kind == "points to grid" and points.size(0) == 0:
                    raise ValueError(
                        f"sample {number} of {len(sizes)} has no point: expected at "
                        "least one in every sample; leave it out of the batch"
                    )
                graph = self._search(kind, points, its_other)
                meshes.put(key, graph)
            else:
                self.mesh_hits += 1
            graphs.append(graph)
        joined = batch_graphs(graphs)
        self._batches.put((kind, *keys), joined)
        return joined

    def _search(
        self, kind: Kind, points: Tensor, other: Tensor | None
    ) -> BipartiteGraph:
        self.searches += 1
        other = points if other is None else other
        pair = (other, points) if kind == "grid to points" else (points, other)
        nearest = {
            "points to grid": None,
            "points to queries": None,
            "grid to points": spline_neighbours(self.domain.dim, on_grid=True),
            "points to points": 1,  # every point has its own value
        }[kind]
        return bipartite_graph(
            *pair,
            self.to_grid_radius if kind == "points to grid" else self.radius,
            self.domain,
            backend=self.backend,
            max_neighbours=self.max_neighbours,
            interpolation=self.interpolation,
            nearest=nearest,
            # The cells of a grid's nodes are alike.
            volume=cell_volumes(points, self.domain)
            if self.cells and kind == "points to grid"
            else None,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_meshes"], state["_batches"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.clear()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(radius={self.radius:.4g}, "
            f"backend={self.backend!r}, capacity={self.capacity})"
        )


def _sizes(pos: Tensor, batch: Tensor | None) -> list[int]:
    """Number of points of each sample."""
    if batch is None or batch.shape == pos.shape[:1] == (0,):
        return [pos.size(0)]
    if batch.shape != pos.shape[:1] or (batch[1:] < batch[:-1]).any():
        raise ValueError(
            f"batch of shape {list(batch.shape)}: expected the sample of each of the "
            f"{pos.size(0)} points, sorted; sort the points by sample"
        )
    return torch.bincount(batch).tolist()


def _key(pos: Tensor) -> Hashable:
    content = pos.contiguous().view(torch.uint8).numpy().tobytes()
    return hashlib.blake2b(content, digest_size=16).digest(), pos.shape, pos.dtype
