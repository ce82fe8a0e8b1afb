"""Bipartite graphs from source points to target points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch_geometric.utils import is_sparse, to_edge_index

from nfsgeo.errors import check_shape
from nfsgeo.geometry.box import length
from nfsgeo.geometry.domain import Domain

__all__ = [
    "BipartiteGraph",
    "GraphTensors",
    "SparseRows",
    "batch_graphs",
    "check_edges",
    "edges_of",
    "outside_inference",
    "pointers",
    "sparse_rows",
]

SMALLEST = 1e-12

P = ParamSpec("P")
R = TypeVar("R")


def outside_inference(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that makes graphs, so that it makes no inference tensors.

    A graph that is made during validation can then be used in training. Whether
    gradients are recorded does not change.
    """

    @wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        recorded = torch.is_grad_enabled()
        with torch.inference_mode(False), torch.set_grad_enabled(recorded):
            return function(*args, **kwargs)

    return outside


def edges_of(adj_t: Any) -> tuple[Tensor, Tensor]:
    """Return the edges ``[2, E]`` of a sparse matrix and its values ``[E]``.

    Args:
        adj_t: Its rows are the targets and its columns the sources, as PyTorch
            Geometric has them.
    """
    rows_and_columns, values = to_edge_index(adj_t)
    return rows_and_columns.flip(0), values


class Transpose(NamedTuple):
    """The edges of a graph, sorted by source.

    Attributes:
        permutation: Edge numbers ``[E]`` such that ``edge_index[:, permutation]`` is
            sorted by source and then target.
        ptr: Where each source's edges begin in ``permutation`` ``[n + 1]``.
    """

    permutation: Tensor
    ptr: Tensor


class SparseRows(NamedTuple):
    """Pattern of a sparse matrix in CSR form, as torch and MKL take it.

    Attributes:
        ptr: Where each row begins; int32 unless there are too many edges for it.
        column: Column of each entry, of the same type.
    """

    ptr: Tensor
    column: Tensor


def check_edges(edge_index: Tensor, num_source: int, num_target: int) -> None:
    """Check the shape and type of edges ``[2, E]`` and the numbers of their ends.

    The numbers are checked on the CPU alone, outside of compiled programs.

    Raises:
        ValueError: If they do not fit.
    """
    if edge_index.dim() != 2 or len(edge_index) != 2:
        check_shape("edge_index", edge_index, 2, "E")
    if edge_index.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"edge_index of type {edge_index.dtype}; expected int64")
    compiling = torch.compiler.is_compiling() or torch.compiler.is_exporting()
    if compiling or edge_index.device.type != "cpu" or not edge_index.numel():
        return
    sizes = {"sources": num_source, "targets": num_target}
    for row, (name, size) in zip(edge_index, sizes.items(), strict=True):
        low, high = int(row.min()), int(row.max())
        if low < 0 or high >= size:
            given = f"edge_index with {name} from {low} to {high}"
            raise ValueError(f"{given}; expected numbers of the {size} {name}")


def pointers(sorted_index: Tensor, size: int) -> Tensor:
    """Return where the entries of each number below ``size`` begin, ``[size + 1]``."""
    counts = sorted_index.new_zeros(size)
    counts = counts.index_add(0, sorted_index, torch.ones_like(sorted_index))
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


class GraphTensors(NamedTuple):
    """The tensors of a :class:`BipartiteGraph`, as arguments of exported programs.

    Attributes:
        edge_index, ptr, displacement, base_weight: Attributes of the graph.
    """

    edge_index: Tensor
    ptr: Tensor
    displacement: Tensor
    base_weight: Tensor


@dataclass(eq=False)
class BipartiteGraph:
    """Edges from sources to targets in CSR form.

    A graph is usually constant. If it is made from positions that require gradients,
    ``displacement`` and ``base_weight`` require them too, see :attr:`differentiable`.

    Args:
        edge_index: Edges ``[2, E]``, int64, row 0 the source and row 1 the target,
            sorted by target and then source.
        ptr: Where each target's edges begin ``[m + 1]``.
        displacement: ``x_target - x_source`` of every edge to the nearest image,
            ``[E, d]``, in the units of the coordinates; float32 in a constant graph.
        base_weight: Weights of the base interpolation ``[E]``, which add up to 1 at
            every target; float64 if the positions are, else float32.
        num_source: Number of sources ``n``.
        num_target: Number of targets ``m``.
    """

    edge_index: Tensor
    ptr: Tensor
    displacement: Tensor
    base_weight: Tensor
    num_source: int
    num_target: int
    _repeated: tuple[int, BipartiteGraph] | None = field(default=None, init=False)

    @classmethod
    def from_edges(
        cls,
        edge_index: Tensor,
        pos: tuple[Tensor, Tensor],
        domain: Domain | None = None,
        edge_weight: Tensor | None = None,
    ) -> BipartiteGraph:
        """Make a graph of edges whose base interpolation is the mean.

        Displacements pass first and second derivatives to the positions.

        Args:
            edge_index: Sources and targets ``[2, E]`` in any order, or the transposed
                adjacency matrix ``adj_t`` ``[m, n]``, whose values do not count.
            pos: Positions of the sources ``[n, d]`` and of the targets ``[m, d]``.
            domain: The box, for displacements to the nearest image; None for open
                space.
            edge_weight: The ``base_weight`` of the edges ``[E]``; None for that of the
                mean.

        Raises:
            ValueError: If shapes or the type of ``edge_index`` are wrong or, on the CPU
                and outside of compiled programs, it has numbers of no point.
        """
        pos_source, pos_target = pos
        if pos_source.dim() != 2 or pos_target.shape[1:] != pos_source.shape[1:]:
            check_shape("pos of the sources", pos_source, "n", "d")
            check_shape("pos of the targets", pos_target, "m", pos_source.size(1))
        num_source, num_target = pos_source.size(0), pos_target.size(0)
        if is_sparse(edge_index):
            edge_index = edges_of(edge_index)[0]
        check_edges(edge_index, num_source, num_target)
        order = (edge_index[1] * num_source + edge_index[0]).argsort(stable=True)
        source, target = edge_index = edge_index.index_select(1, order)
        ends = pos_source.index_select(0, source), pos_target.index_select(0, target)
        delta = ends[1] - ends[0] if domain is None else domain.displacement(*ends)
        ptr = pointers(target, num_target)
        if edge_weight is None:
            weight = ptr.diff().to(delta.dtype).reciprocal().index_select(0, target)
        else:
            check_shape("edge_weight", edge_weight, len(order))
            weight = edge_weight.index_select(0, order)
        return cls(edge_index, ptr, delta, weight, num_source, num_target)

    @classmethod
    def from_tensors(cls, tensors: GraphTensors, num_source: int) -> BipartiteGraph:
        """Make the graph of :meth:`tensors`; nothing is searched or checked.

        Args:
            tensors: Those of the graph.
            num_source: Number of sources ``n``.
        """
        return cls(*tensors, num_source, tensors.ptr.size(0) - 1)

    def tensors(self) -> GraphTensors:
        """Return the tensors to pass to a program made by ``torch.export``."""
        return GraphTensors(
            self.edge_index, self.ptr, self.displacement, self.base_weight
        )

    @property
    def differentiable(self) -> bool:
        """Return whether the graph passes gradients to the positions it was made of."""
        return self.displacement.requires_grad or self.base_weight.requires_grad

    @property
    def num_edges(self) -> int:
        """Number of edges ``E``."""
        return self.edge_index.size(1)

    @property
    def nbytes(self) -> int:
        """Size of the graph in bytes, with everything that it caches."""
        values: list[Any] = []
        for value in vars(self).values():
            values += value if isinstance(value, tuple) else [value]
        # Tensors that share their memory count once.
        storages = [v.untyped_storage() for v in values if isinstance(v, Tensor)]
        inner = sum(g.nbytes for g in values if isinstance(g, BipartiteGraph))
        return inner + sum({s.data_ptr(): s.nbytes() for s in storages}.values())

    def degree(self) -> Tensor:
        """Number of edges of each target ``[m]``, int64."""
        return self.ptr.diff()

    def offset(self, dtype: torch.dtype) -> Tensor:
        """Return displacements and distances ``[E, d + 1]`` as ``dtype``."""
        displacement = self.displacement.to(dtype)
        return torch.cat([displacement, length(displacement)[:, None]], dim=1)

    def mean_weight(self, dtype: torch.dtype) -> Tensor:
        """Return the weights ``1 / deg`` of a mean over neighbours, ``[E]``."""
        inverse = self.degree().to(dtype).reciprocal()
        return inverse.index_select(0, self.edge_index[1])

    def spacing(self, dtype: torch.dtype) -> Tensor:
        """Return the mean distance of each target to its neighbours ``[m]``.

        It is at least 1e-12, also for points at one place.
        """
        return self._relative(dtype)[0]

    def relative(self, dtype: torch.dtype) -> Tensor:
        """Return displacements and distances over the spacing of the target."""
        return self._relative(dtype)[1]

    def _relative(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        # Exported programs have no contexts, and cache nothing.
        if self.differentiable or torch.compiler.is_exporting():
            return self._measured(dtype)
        spacing, relative = self._constant
        return spacing.to(dtype), relative.to(dtype)

    @cached_property
    @outside_inference
    def _constant(self) -> tuple[Tensor, Tensor]:
        """Spacing and relative positions of a constant graph, cached."""
        return self._measured(self.displacement.dtype)

    def _measured(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        offset, target, degree = self.offset(dtype), self.edge_index[1], self.degree()
        total = offset.new_zeros(self.num_target).index_add(0, target, offset[:, -1])
        spacing = (total / degree.to(dtype)).clamp_min(SMALLEST)
        return spacing, offset / spacing.index_select(0, target)[:, None]

    @cached_property
    @outside_inference
    def transpose(self) -> Transpose:
        """The edges sorted by source for backward passes, cached."""
        source, permutation = self.edge_index[0].sort(stable=True)
        return Transpose(permutation, pointers(source, self.num_source))

    @cached_property
    @outside_inference
    def ends(self) -> SparseRows:
        """A sparse matrix whose rows have two entries, source and ``n + target``.

        Its product with the values at sources and targets, concatenated, is the sum of
        the values at both ends of every edge. It is cached.
        """
        first = self.edge_index.new_tensor([[0], [self.num_source]])
        column = (self.edge_index + first).t().reshape(-1)
        count = torch.arange(0, len(column) + 1, 2, device=column.device)
        return sparse_rows(count, column)

    @cached_property
    @outside_inference
    def csr(self) -> SparseRows:
        """The sparse matrix with targets as rows and sources as columns, cached."""
        return sparse_rows(self.ptr, self.edge_index[0])

    @cached_property
    @outside_inference
    def transposed_csr(self) -> SparseRows:
        """The sparse matrix with sources as rows and targets as columns, cached."""
        order, ptr = self.transpose
        return sparse_rows(ptr, self.edge_index[1].index_select(0, order))

    def repeated(self, copies: int) -> BipartiteGraph:
        """Join several copies of the graph; the last result is cached."""
        if self.differentiable:
            return _side_by_side([self] * copies)
        if self._repeated is None or self._repeated[0] != copies:
            self._repeated = copies, _side_by_side([self] * copies)
        return self._repeated[1]

    def rows(self, start: int, stop: int) -> BipartiteGraph:
        """Return the graph restricted to the targets ``start`` to ``stop - 1``."""
        begin, end = int(self.ptr[start]), int(self.ptr[stop])
        source, target = self.edge_index[:, begin:end]
        return BipartiteGraph(
            torch.stack([source, target - start]),
            self.ptr[start : stop + 1] - begin,
            self.displacement[begin:end],
            self.base_weight[begin:end],
            self.num_source,
            stop - start,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Only the cached transpose is worth its transfer.
        cached = ("csr", "ends", "transposed_csr", "_constant")
        state = {k: v for k, v in vars(self).items() if k not in cached}
        return state | {"_repeated": None}

    @outside_inference
    def to(self, device: torch.device | str) -> BipartiteGraph:
        """Return the graph on ``device``, itself if it is there already."""
        if self.edge_index.device == torch.empty(0, device=device).device:
            return self
        moved: dict[str, Any] = {
            k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)
        }
        graph = replace(self, **moved)
        if "transpose" in self.__dict__:
            graph.transpose = Transpose(*(t.to(device) for t in self.transpose))
        return graph


@outside_inference
def batch_graphs(graphs: Sequence[BipartiteGraph]) -> BipartiteGraph:
    """Join several graphs into one, with their sources and targets in a row.

    Transposes are joined as well, so that each graph is sorted only once.
    """
    if len(graphs) == 1:
        return graphs[0]
    if all(graph is graphs[0] for graph in graphs):
        return graphs[0].repeated(len(graphs))
    return _side_by_side(graphs)


def _side_by_side(graphs: Sequence[BipartiteGraph]) -> BipartiteGraph:
    zero = graphs[0].ptr[:1]
    edges, ptrs, permutations, source_ptrs = [], [zero], [], [zero]
    num_source = num_target = num_edges = 0
    for graph in graphs:
        edges.append(graph.edge_index + zero.new_tensor([[num_source], [num_target]]))
        ptrs.append(graph.ptr[1:] + num_edges)
        permutations.append(graph.transpose.permutation + num_edges)
        source_ptrs.append(graph.transpose.ptr[1:] + num_edges)
        num_source += graph.num_source
        num_target += graph.num_target
        num_edges += graph.num_edges
    joined = BipartiteGraph(
        torch.cat(edges, dim=1),
        torch.cat(ptrs),
        torch.cat([graph.displacement for graph in graphs]),
        torch.cat([graph.base_weight for graph in graphs]),
        num_source,
        num_target,
    )
    joined.transpose = Transpose(torch.cat(permutations), torch.cat(source_ptrs))
    return joined


def sparse_rows(ptr: Tensor, column: Tensor) -> SparseRows:
    """Make the pattern of a sparse matrix from tensors of any integer type."""
    # MKL takes int32; other types are copied for every product.
    fits = max(column.numel(), ptr.numel()) < 2**31
    kind = torch.int32 if fits else torch.int64
    return SparseRows(ptr.to(kind), column.to(kind))
