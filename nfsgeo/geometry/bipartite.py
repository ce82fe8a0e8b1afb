"""Bipartite graphs from source points to target points."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nfsgeo.geometry.polynomials import orthonormal_polynomials

__all__ = [
    "BipartiteGraph",
    "GraphTensors",
    "SparseRows",
    "Transpose",
    "batch_graphs",
    "inverse",
    "outside_inference",
    "pointers",
]

# A graph built while validating serves training too: it holds no inference tensors.
outside_inference = torch.inference_mode(False)


class Transpose(NamedTuple):
    """The edges of a graph, sorted by source.

    Attributes:
        permutation: Edge numbers ``[E]`` such that ``edge_index[:, permutation]`` is
            sorted by source and then target.
        ptr: Where each source's edges begin in ``permutation`` ``[n + 1]``.
    """

    permutation: Tensor
    ptr: Tensor


class GraphTensors(NamedTuple):
    """A :class:`BipartiteGraph` as tensors alone, for programs without Python.

    Attributes:
        edge_index, ptr, displacement, weight: As there.
        volume: As there; ones if all sources stand for as much.
    """

    edge_index: Tensor
    ptr: Tensor
    displacement: Tensor
    weight: Tensor
    volume: Tensor


class SparseRows(NamedTuple):
    """Pattern of a sparse matrix, as libraries for these want it.

    Attributes:
        ptr: Where each row begins; int32 if there are not too many edges for it.
        column: Column of each entry, of the same type.
    """

    ptr: Tensor
    column: Tensor


@dataclass(eq=False)
class BipartiteGraph:
    """Edges from sources to targets in CSR form.

    Args:
        edge_index: Edges ``[2, E]``, int64, row 0 the source and row 1 the target,
            sorted by target and then source.
        ptr: Where each target's edges begin ``[m + 1]``.
        displacement: ``x_target - x_source`` of every edge to the nearest image,
            ``[E, d]``, float32, in the units of the coordinates.
        weight: Weights of a fixed interpolation ``[E]``, float64 where positions are
            and else float32; those of every target add up to 1.
        num_source: Number of sources ``n``.
        num_target: Number of targets ``m``.
        volume: How much of the domain every source stands for ``[n]``; None if all
            for as much.
        source_order: Sources ``[n]`` in an order in which those that are near are near
            in memory; None where they are already, or are few.
        target_order: Targets ``[m]`` likewise.
    """

    edge_index: Tensor
    ptr: Tensor
    displacement: Tensor
    weight: Tensor
    num_source: int
    num_target: int
    volume: Tensor | None = None
    source_order: Tensor | None = None
    target_order: Tensor | None = None
    _kept: dict[Hashable, Tensor] = field(default_factory=dict, init=False)
    _repeated: tuple[int, BipartiteGraph] | None = field(default=None, init=False)

    @classmethod
    def from_tensors(cls, tensors: GraphTensors) -> BipartiteGraph:
        """The graph that :meth:`tensors` came from; nothing is searched or checked."""
        return cls(
            tensors.edge_index,
            tensors.ptr,
            tensors.displacement,
            tensors.weight,
            tensors.volume.size(0),
            tensors.ptr.size(0) - 1,
            tensors.volume,
        )

    def tensors(self) -> GraphTensors:
        """What ``torch.export`` takes for a graph."""
        volume = self.volume
        if volume is None:
            volume = self.displacement.new_ones(self.num_source)
        return GraphTensors(
            self.edge_index, self.ptr, self.displacement, self.weight, volume
        )

    @property
    def num_edges(self) -> int:
        """Number of edges ``E``."""
        return self.edge_index.size(1)

    @property
    def nbytes(self) -> int:
        """Bytes of all that it holds, what has been made of the edges included."""
        held: list[Any] = [*vars(self).values(), *self._kept.values()]
        for value in vars(self).values():
            held += value if isinstance(value, tuple) else ()
        # Tensors that share their memory count once.
        tensors = [value for value in held if isinstance(value, Tensor)]
        storages = {t.untyped_storage().data_ptr(): t for t in tensors}
        sizes = [t.untyped_storage().nbytes() for t in storages.values()]
        inner = [g.nbytes for g in held if isinstance(g, BipartiteGraph)]
        return sum(sizes) + sum(inner)

    def degree(self) -> Tensor:
        """Number of edges of each target ``[m]``, int64."""
        return self.ptr.diff()

    def offset(self, dtype: torch.dtype) -> Tensor:
        """Displacements and their lengths ``[E, d + 1]``, computed once.

        Args:
            dtype: Of the result.
        """
        return self._once(("offset", dtype), lambda: self._offset(dtype))

    def share(self, dtype: torch.dtype) -> Tensor:
        """What every edge counts in a mean over its target's neighbours ``[E]``.

        In proportion to the volumes of the sources, where these are known: the mean is
        then that of an integral.

        Args:
            dtype: Of the result.
        """
        source, target = self.edge_index
        if self.volume is None:
            return self.degree().to(dtype).reciprocal().index_select(0, target)
        volume = self.volume.to(dtype)[source]
        total = volume.new_zeros(self.num_target).index_add(0, target, volume)
        return volume / total[target]

    def polynomials(self, degree: int) -> Tensor:
        """Polynomials of displacements ``[E, K]``, computed once for each degree.

        See :func:`~nfsgeo.geometry.orthonormal_polynomials`.
        """
        return self._once(
            ("polynomials", degree),
            lambda: orthonormal_polynomials(
                self.displacement,
                self.edge_index[1],
                self.share(torch.float64),
                self.num_target,
                degree,
            ),
        )

    def _once(self, name: Hashable, make: Callable[[], Tensor]) -> Tensor:
        if torch.compiler.is_compiling():
            return make()  # What stands for a tensor there must not be kept.
        if name not in self._kept:
            self._kept[name] = outside_inference(make)()
        return self._kept[name]

    def _offset(self, dtype: torch.dtype) -> Tensor:
        displacement = self.displacement.to(dtype)
        return torch.cat([displacement, displacement.norm(dim=1, keepdim=True)], dim=1)

    @cached_property
    @outside_inference
    def transpose(self) -> Transpose:
        """The edges sorted by source, computed once: backward passes need it."""
        source, permutation = self.edge_index[0].sort(stable=True)
        return Transpose(permutation, pointers(source, self.num_source))

    @cached_property
    @outside_inference
    def csr(self) -> SparseRows:
        """Targets as rows and sources as columns, computed once."""
        return _sparse_rows(self.ptr, self.edge_index[0])

    @cached_property
    @outside_inference
    def transposed_csr(self) -> SparseRows:
        """Sources as rows and targets as columns, computed once."""
        order, ptr = self.transpose
        return _sparse_rows(ptr, self.edge_index[1].index_select(0, order))

    @property
    def arranged(self) -> BipartiteGraph:
        """The graph with its sources and targets renumbered in their orders, once.

        This one where there are no orders. Sums over the neighbours of very many
        points are quicker there.
        """
        if self.source_order is None and self.target_order is None:
            return self  # Which, kept in itself, would never be freed.
        return self._renumbered

    @cached_property
    @outside_inference
    def _renumbered(self) -> BipartiteGraph:
        source, target = self.edge_index
        if self.source_order is not None:
            source = inverse(self.source_order)[source]
        if self.target_order is not None:
            target = inverse(self.target_order)[target]
        place = target * self.num_source + source
        place, order = place.sort()
        target = place // self.num_source
        volume = self.volume
        if volume is not None and self.source_order is not None:
            volume = volume[self.source_order]
        return BipartiteGraph(
            torch.stack([place % self.num_source, target]),
            pointers(target, self.num_target),
            self.displacement[order],
            self.weight[order],
            self.num_source,
            self.num_target,
            volume,
        )

    def repeated(self, copies: int) -> BipartiteGraph:
        """So many ``copies`` side by side, points numbered on from each; kept."""
        if self._repeated is None or self._repeated[0] != copies:
            self._repeated = copies, _side_by_side([self] * copies)
        return self._repeated[1]

    def rows(self, start: int, stop: int) -> BipartiteGraph:
        """The edges of the targets from ``start`` up to ``stop``, of all sources."""
        begin, end = int(self.ptr[start]), int(self.ptr[stop])
        source, target = self.edge_index[:, begin:end]
        return BipartiteGraph(
            torch.stack([source, target - start]),
            self.ptr[start : stop + 1] - begin,
            self.displacement[begin:end],
            self.weight[begin:end],
            self.num_source,
            stop - start,
            self.volume,
        )

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the edges is made again, but for the order of the transpose.
        kept: dict[str, Any] = {"_kept": {}, "_repeated": None}
        made = ("csr", "transposed_csr", "_renumbered")
        return {k: v for k, v in vars(self).items() if k not in made} | kept

    @outside_inference
    def to(self, device: torch.device | str) -> BipartiteGraph:
        """The same graph on ``device``; this one if it is there already."""
        if self.edge_index.device == torch.empty(0, device=device).device:
            return self
        graph = BipartiteGraph(
            self.edge_index.to(device),
            self.ptr.to(device),
            self.displacement.to(device),
            self.weight.to(device),
            self.num_source,
            self.num_target,
            *(
                None if known is None else known.to(device)
                for known in (self.volume, self.source_order, self.target_order)
            ),
        )
        if "transpose" in self.__dict__:
            graph.transpose = Transpose(*(t.to(device) for t in self.transpose))
        return graph


@outside_inference
def batch_graphs(graphs: Sequence[BipartiteGraph]) -> BipartiteGraph:
    """One graph of several ``graphs``, sources and targets numbered on from each.

    Volumes are known of all of them, or of none. The transposes are joined likewise,
    so that each is sorted only once.
    """
    if len(graphs) == 1:
        return graphs[0]
    if all(graph is graphs[0] for graph in graphs):
        return graphs[0].repeated(len(graphs))
    return _side_by_side(graphs)


def _side_by_side(graphs: Sequence[BipartiteGraph]) -> BipartiteGraph:
    edges, displacements, weights, permutations = [], [], [], []
    ptrs, source_ptrs = [graphs[0].ptr[:1]], [graphs[0].ptr[:1]]
    num_source = num_target = num_edges = 0
    for graph in graphs:
        offset = graph.ptr.new_tensor([[num_source], [num_target]])
        edges.append(graph.edge_index + offset)
        displacements.append(graph.displacement)
        weights.append(graph.weight)
        permutations.append(graph.transpose.permutation + num_edges)
        ptrs.append(graph.ptr[1:] + num_edges)
        source_ptrs.append(graph.transpose.ptr[1:] + num_edges)
        num_source += graph.num_source
        num_target += graph.num_target
        num_edges += graph.num_edges
    sources = [graph.num_source for graph in graphs]
    targets = [graph.num_target for graph in graphs]
    volumes = [graph.volume for graph in graphs if graph.volume is not None]
    joined = BipartiteGraph(
        torch.cat(edges, dim=1),
        torch.cat(ptrs),
        torch.cat(displacements),
        torch.cat(weights),
        num_source,
        num_target,
        torch.cat(volumes) if volumes else None,
        _joined_orders([graph.source_order for graph in graphs], sources),
        _joined_orders([graph.target_order for graph in graphs], targets),
    )
    joined.transpose = Transpose(torch.cat(permutations), torch.cat(source_ptrs))
    return joined


def _joined_orders(
    orders: Sequence[Tensor | None], sizes: Sequence[int]
) -> Tensor | None:
    """One order of the points of several graphs, numbered on from each."""
    known = [order for order in orders if order is not None]
    if not known:
        return None
    joined, begin = [], 0
    for order, size in zip(orders, sizes, strict=True):
        own = torch.arange(size, device=known[0].device) if order is None else order
        joined.append(own + begin)
        begin += size
    return torch.cat(joined)


def _sparse_rows(ptr: Tensor, column: Tensor) -> SparseRows:
    # Given anything longer, MKL gets a copy that is made for every product.
    fits = max(column.numel(), ptr.numel()) < 2**31
    kind = torch.int32 if fits else torch.int64
    return SparseRows(ptr.to(kind), column.to(kind))


def inverse(order: Tensor) -> Tensor:
    """The place of each point in an order of them ``[n]``."""
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel(), device=order.device)
    return place


def pointers(sorted_index: Tensor, size: int) -> Tensor:
    """Where the entries of each of ``size`` numbers begin in a sorted index."""
    counts = torch.bincount(sorted_index, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
