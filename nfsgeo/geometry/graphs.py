"""All that a model computes from positions, prepared once and carried by a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from nfsgeo.geometry.bipartite import (
    BipartiteGraph,
    batch_graphs,
    outside_inference,
)

__all__ = ["Graphs", "by_sample", "edges_by_sample"]

# Optional tensors with a row for each point, query point or node.
OPTIONAL = "query_pos", "boundary", "nodes", "latent", "query_latent"


@dataclass(eq=False)
class Graphs:
    """Normalised positions of a batch, and the edges between them.

    The ``connect`` of a model makes them from positions alone. Its ``forward`` then
    works on tensors only, without searches and without copies to the host.

    Args:
        pos: Normalised positions of the observed points ``[N, d]``.
        sizes: Number of observed points of each sample; ``B`` entries.
        query_pos: Normalised positions of the query points ``[M, d]``; None if they
            are the observed points.
        query_sizes: Number of query points of each sample.
        edges: Bipartite graphs by the names that the model uses.
        grid_shape: Shape of the equispaced grid that the points of every sample form in
            row-major order, for models that need one.
        boundary: Distance and direction of the observed points to the nearest wall
            ``[N, 1 + d]``, if they are inputs.
        numbers: Numbers of the query points of one sample in its file ``[M]``; None if
            unknown.
        nodes: Normalised positions of the nodes of each sample's grid ``[B m, d]``, if
            the grid follows the points.
        latent: Latent coordinates of the observed points ``[N, d]``, likewise.
        query_latent: Latent coordinates of the query points ``[M, d]``, likewise.
        query_x: Constant inputs known at the query points ``[M, F]``, NaN where they
            are unknown. They belong to one prediction, not to the positions.
    """

    pos: Tensor
    sizes: tuple[int, ...]
    query_pos: Tensor | None = None
    query_sizes: tuple[int, ...] | None = None
    edges: Mapping[str, BipartiteGraph] = field(default_factory=dict)
    grid_shape: tuple[int, ...] | None = None
    boundary: Tensor | None = None
    numbers: Tensor | None = None
    nodes: Tensor | None = None
    latent: Tensor | None = None
    query_latent: Tensor | None = None
    query_x: Tensor | None = None

    @property
    def num_samples(self) -> int:
        """Number of samples ``B``."""
        return len(self.sizes)

    @property
    def batch(self) -> Tensor | None:
        """Sample of each observed point ``[N]``; None for one sample."""
        return _numbers(self.sizes, self.pos.device)

    @property
    def queries(self) -> Tensor:
        """Normalised positions at which a prediction is wanted ``[M, d]``."""
        return self.pos if self.query_pos is None else self.query_pos

    @property
    def predicted_sizes(self) -> tuple[int, ...]:
        """Number of points of each sample at which fields are predicted."""
        return self.query_sizes or self.sizes

    @property
    def query_batch(self) -> Tensor | None:
        """Sample of each query point ``[M]``; None for one sample."""
        return _numbers(self.predicted_sizes, self.pos.device)

    @property
    def differentiable(self) -> bool:
        """Return whether gradients reach the positions."""
        return self.pos.requires_grad or self.queries.requires_grad

    def with_edges(
        self, name: str, make: Callable[[Tensor, Tensor], BipartiteGraph]
    ) -> Graphs:
        """Return the graphs with further edges.

        Args:
            name: Name of the edges.
            make: Function that makes them from the positions of the observed points and
                of the query points of a sample.
        """
        queries = self.queries.split([*self.predicted_sizes])
        pairs = zip(self.pos.split([*self.sizes]), queries, strict=True)
        made = batch_graphs([make(*pair) for pair in pairs])
        return replace(self, edges={**self.edges, name: made})

    @property
    def _optional(self) -> dict[str, Tensor]:
        """Tensors that are present, without ``pos``, by name."""
        values = {name: getattr(self, name) for name in OPTIONAL}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def nbytes(self) -> int:
        """Size in bytes, with everything that the edges cache."""
        total = self.pos.nbytes + sum(value.nbytes for value in self._optional.values())
        return total + sum(graph.nbytes for graph in self.edges.values())

    @outside_inference
    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graphs:
        """Return the graphs on ``device``; ``non_blocking`` as for tensors."""
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=non_blocking)
            for name, tensor in {"pos": self.pos, **self._optional}.items()
        }
        edges = {name: graph.to(device) for name, graph in self.edges.items()}
        return replace(self, edges=edges, **moved)

    def rounded(self, dtype: torch.dtype) -> Graphs:
        """Return graphs of float64 positions with tensors of type ``dtype``."""
        given = {"pos": self.pos, **self._optional}
        tensors = {
            name: value.to(dtype) if value.is_floating_point() else value
            for name, value in given.items()
        }
        edges = {
            name: replace(
                graph,
                displacement=graph.displacement.to(dtype),
                base_weight=graph.base_weight.to(dtype),
            )
            for name, graph in self.edges.items()
        }
        return replace(self, edges=edges, **tensors)  # type: ignore[arg-type]

    @staticmethod
    @outside_inference
    def join(samples: Sequence[Graphs]) -> Graphs:
        """Join the graphs of several samples, with their points in a row.

        The joined copies of one mesh, and of a graph that samples share, are cached.

        Raises:
            ValueError: If some samples have queries and others have none, or their
                grids differ.
        """
        first = samples[0]
        if len(samples) == 1:
            return first
        kinds = {(graphs.query_pos is None, graphs.grid_shape) for graphs in samples}
        if len(kinds) > 1:
            shapes = sorted({str(shape) for _, shape in kinds})
            raise ValueError(
                f"a batch of {len(samples)} samples, with grids of shapes {shapes}; "
                "expected one shape, and query points in all or none; batch samples "
                "that are alike"
            )
        joined: dict[str, Any] = {
            name: torch.cat([getattr(graphs, name) for graphs in samples])
            for name in ("pos", *first._optional)
        }
        return Graphs(
            sizes=sum((graphs.sizes for graphs in samples), ()),
            query_sizes=sum((g.query_sizes or () for g in samples), ()) or None,
            edges={
                name: batch_graphs([graphs.edges[name] for graphs in samples])
                for name in first.edges
            },
            grid_shape=first.grid_shape,
            **joined,
        )


def _numbers(sizes: Sequence[int], device: torch.device) -> Tensor | None:
    if len(sizes) == 1:
        return None
    # On the device from the start: a tensor of the sizes would be copied there.
    parts = [torch.full((size,), b, device=device) for b, size in enumerate(sizes)]
    return torch.cat(parts)


def by_sample(
    source: Tensor,
    target: Tensor,
    source_batch: Tensor | None,
    target_batch: Tensor | None,
) -> list[tuple[Tensor, Tensor]]:
    """Split sources and targets by sample.

    Arguments are those of :func:`nfsgeo.geometry.radius_edges`.
    """
    if source_batch is None and target_batch is None:
        return [(source, target)]
    counts = []
    for pos, batch in ((source, source_batch), (target, target_batch)):
        fits = batch is not None and batch.shape == pos.shape[:1]
        if batch is None or not fits or not _is_sorted(batch):
            raise ValueError(
                f"a batch vector of shape {None if batch is None else [*batch.shape]} "
                f"for {len(pos)} points: expected the sample of every source and of "
                "every target, integers from 0, or of none; sort the points by sample"
            )
        counts.append(torch.bincount(batch))
    num = max(1, *map(len, counts))
    sizes = [pad(count, (0, num - len(count))).tolist() for count in counts]
    split = source.split(sizes[0]), target.split(sizes[1])
    return list(zip(*split, strict=True))


def edges_by_sample(
    edge_index: Tensor | None,
    ends: Sequence[tuple[Tensor, Tensor]],
    edge_weight: Tensor | None = None,
) -> list[tuple[Tensor, Tensor | None]]:
    """Split edges and weights by sample, with points numbered within each sample.

    Args:
        edge_index: Edges ``[2, E]`` among the sources of all samples; None for none.
        ends: Sources and targets of each sample, from :func:`by_sample`.
        edge_weight: Weights ``[E]``, if there are any.
    """
    if edge_index is None:
        return []
    parts, first = list[tuple[Tensor, Tensor | None]](), 0
    for place, _ in ends:
        inside = (edge_index[1] >= first) & (edge_index[1] < first + len(place))
        weight = None if edge_weight is None else edge_weight[inside]
        parts.append((edge_index[:, inside] - first, weight))
        first += len(place)
    return parts


def _is_sorted(batch: Tensor) -> bool:
    steps = batch.diff(prepend=batch.new_zeros(1))
    return not batch.is_floating_point() and bool((steps >= 0).all())
