"""Everything a model computes from positions, prepared once and carried by a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from nfsgeo.geometry.bipartite import (
    BipartiteGraph,
    batch_graphs,
    outside_inference,
)

__all__ = ["Graphs"]

# Tensors with a row for each point, query point or node, which not all graphs have.
OPTIONAL = "query_pos", "boundary", "nodes", "latent", "query_latent"


@dataclass(eq=False)
class Graphs:
    """Normalised positions of a batch, and the edges between them.

    Made by the ``connect`` of a model, from positions alone; its ``forward`` then
    computes on tensors, without a search and without a copy to the host. Moves between
    devices as a tensor does.

    Args:
        pos: Normalised positions of the observed points ``[N, d]``.
        sizes: Number of observed points of each sample; ``B`` entries.
        query_pos: Normalised positions of the query points ``[M, d]``; None where these
            are the observed points.
        query_sizes: Number of query points of each sample.
        edges: Bipartite graphs by name, as the model knows them.
        grid_shape: Shape of the equispaced grid that the points of every sample are,
            row-major, for models that need one.
        boundary: Distance and direction of the observed points to the nearest wall
            ``[N, 1 + d]``, where they are inputs.
        numbers: Of the query points of one sample in its file ``[M]``, to connect it;
            None where they are unknown.
        nodes: Normalised positions of the nodes of each sample's grid ``[B m, d]``,
            where the grid follows the points.
        latent: Latent coordinates of the observed points ``[N, d]``, likewise.
        query_latent: Those of the query points ``[M, d]``.
        query_x: Inputs that are known at the query points, at all times ``[M, F]``, NaN
            where they are not; of one prediction, and not of the positions.
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
    def query_batch(self) -> Tensor | None:
        """Sample of each query point ``[M]``; None for one sample."""
        return _numbers(self.query_sizes or self.sizes, self.pos.device)

    @property
    def differentiable(self) -> bool:
        """Whether it passes gradients to the positions it was made of."""
        return self.pos.requires_grad or self.queries.requires_grad

    def with_edges(
        self, name: str, make: Callable[[Tensor, Tensor], BipartiteGraph]
    ) -> Graphs:
        """With further edges by ``name``: what ``make`` gives of the positions of the
        observed points and of the query points of each sample.
        """
        queries = self.queries.split([*(self.query_sizes or self.sizes)])
        pairs = zip(self.pos.split([*self.sizes]), queries, strict=True)
        made = batch_graphs([make(*pair) for pair in pairs])
        return replace(self, edges={**self.edges, name: made})

    @property
    def _optional(self) -> dict[str, Tensor]:
        """What it has beside the positions of the observed points, by name."""
        found = {name: getattr(self, name) for name in OPTIONAL}
        return {name: each for name, each in found.items() if each is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of everything held, with what the edges have computed once."""
        held = self.pos.nbytes + sum(each.nbytes for each in self._optional.values())
        return held + sum(graph.nbytes for graph in self.edges.values())

    @outside_inference
    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graphs:
        """The same on ``device``; ``non_blocking`` as tensors have it."""
        moved: dict[str, Any] = {
            name: each.to(device, non_blocking=non_blocking)
            for name, each in {"pos": self.pos, **self._optional}.items()
        }
        edges = {name: graph.to(device) for name, graph in self.edges.items()}
        return replace(self, edges=edges, **moved)

    @staticmethod
    @outside_inference
    def join(samples: Sequence[Graphs]) -> Graphs:
        """One of several ``samples``, points numbered on from each.

        Copies of one mesh, and graphs that samples share, are joined only once for each
        number of copies.

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
