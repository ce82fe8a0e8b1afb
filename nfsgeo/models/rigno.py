"""`rigno`: message passing to regional nodes, on several scales there, and back."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch_geometric.utils import scatter

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.radius_graph import widened
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.triangulation import farthest_points, triangulation
from nfsgeo.models.base import Model
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import InteractionLayer
from nfsgeo.nn.message_passing import perceptron

__all__ = ["RIGNO"]

# Wave numbers of the encoding of positions on a periodic axis.
WAVES = range(1, 5)
# Largest number of triangulations.
SCALES = 6
# Radii of supports over the smallest that cover the domain, to the nodes and back.
OVERLAPS = 1.0, 2.0
# Largest of these radii over the median, since triangles may cross a bay.
WIDEST = 4.0


class RIGNOSettings(ModelSettings):
    """Settings of `rigno`.

    Attributes:
        width: channels of nodes and edges.
        depth: number of steps of message passing among regional nodes.
        coarsening: ratio of the number of points to that of regional nodes, and of the
            nodes of a scale to those of the next.
        dropout: fraction of the edges that are dropped in training.
    """

    width: PositiveInt = 64
    depth: PositiveInt = 12
    coarsening: float = Field(default=4.0, gt=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)


class RIGNO(Model):
    """A graph neural operator on regional nodes, a subset of the points.

    "RIGNO: A Graph-based framework for robust and accurate operator learning for PDEs
    on arbitrary domains" (Mousavi et al., 2025, arXiv 2501.19205). Regional nodes are
    chosen far from each other, independently of the order of the points (the authors
    draw them). Each has a support, a ball that extends to the centres of the triangles
    around it. Triangulations of fewer and fewer nodes form one graph of several scales.
    All time steps are predicted at once.
    """

    Settings = RIGNOSettings
    source = (
        "RIGNO: A Graph-based framework for robust and accurate operator learning "
        "(Mousavi et al., 2025)"
    )
    paper = {"width": 128, "depth": 18, "dropout": 0.5}
    spheres = True
    predicts_anywhere = False

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings, self.domain = self.settings, problem.domain.normalised
        outputs = problem.n_out * problem.out_components
        sizes = [settings.width] * 2
        place = sum(
            2 * len(WAVES) if periodic else 1 for periodic in self.domain.periodic
        )

        def embedding(inputs: int) -> nn.Sequential:
            return perceptron([inputs, *sizes], nn.SiLU)

        def layer() -> InteractionLayer:
            return InteractionLayer(settings.width, 1, "mean", nn.SiLU)

        # The distance of regional nodes is the unit of length.
        share = min(1.0, settings.coarsening / problem.num_points)
        self.spacing = (self.domain.volume * share) ** (1 / problem.domain.dim)
        self.point_embedding = embedding(problem.num_features + place)
        self.node_embedding = embedding(place + 1)
        self.edge_embeddings = nn.ModuleDict(
            {name: embedding(problem.dim + 1) for name in ("into", "among", "back")}
        )
        self.encoder, self.decoder, self.own = layer(), layer(), embedding(sizes[0])
        self.processor = nn.ModuleList(layer() for _ in range(settings.depth))
        self.projector = perceptron([*sizes, outputs], nn.SiLU, norm=False)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Make the edges to the nodes, among them, and back to the points.

        The edges ``chosen`` join the points that are nodes to these.
        """
        domain, coarsening = self.domain, self.settings.coarsening
        num = max(1, round(len(pos) / coarsening))
        chosen = farthest_points(pos, domain, num).to(pos.device)
        nodes, numbers = pos[chosen], torch.arange(num, device=pos.device)
        sizes = [int(num / coarsening**scale) for scale in range(SCALES)]
        scales = [triangulation(nodes[:size], domain) for size in sizes if size]
        radii = scales[0][1].clamp(min=1e-6)
        radii = radii.clamp(max=WIDEST * float(radii.median()))
        search = Search(pos, nodes, domain)
        near = search.within(max(OVERLAPS) * float(radii.max()))
        reach = search.distance(*near) / radii[near[1]]
        into, back = (near[:, reach <= overlap] for overlap in OVERLAPS)
        among = torch.cat([edges for edges, _ in scales], dim=1).unique(dim=1)
        back = widened(back.flip(0), Search(nodes, pos, domain))

        return {
            name: BipartiteGraph.from_edges(joined.to(pos.device), ends, domain)
            for name, joined, ends in (
                ("chosen", torch.stack([chosen, numbers]), (pos, nodes)),
                ("into", into, (pos, nodes)),
                ("among", among, (nodes, nodes)),
                ("back", back, (nodes, pos)),
            )
        }

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the observed points; see :class:`Model`."""
        into, place = graphs.edges["into"], self.place(graphs.pos)
        chosen = graphs.edges["chosen"].edge_index[0]
        away = into.offset(x.dtype)[:, -1:] / self.spacing
        radius = scatter(away, into.edge_index[1], 0, len(chosen), reduce="max")
        points = self.point_embedding(torch.cat([x.flatten(1), place], dim=1))
        nodes = self.node_embedding(torch.cat([place[chosen], radius], dim=1))
        edges, index = self.embedded_edges("into", graphs)
        nodes = self.encoder(edges, points, nodes, index)[1]
        edges, index = self.embedded_edges("among", graphs)
        for layer in self.processor:
            edges, nodes = layer(edges, nodes, nodes, index)
        edges, index = self.embedded_edges("back", graphs)
        points = self.decoder(edges, nodes, points + self.own(points), index)[1]
        result: Tensor = self.projector(points)
        return result.unflatten(1, (self.problem.n_out, self.problem.out_components))

    def embedded_edges(self, name: str, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """Return embedded edges and their ends ``[2, E]``, with dropout in training."""
        graph = graphs.edges[name]
        offset = graph.offset(self.lengths.dtype) / self.spacing
        index = graph.edge_index
        if self.training and self.settings.dropout:
            num = math.ceil((1 - self.settings.dropout) * graph.num_edges)
            some = torch.randperm(graph.num_edges, device=index.device)[:num]
            offset, index = offset[some], index[:, some]
        return self.edge_embeddings[name](offset), index

    def place(self, pos: Tensor) -> Tensor:
        """Encode positions: waves on periodic axes, else coordinates in [-1, 1]."""
        columns: list[Tensor] = []
        unit = self.in_unit_box(pos).split(1, dim=1)
        for coordinate, periodic in zip(unit, self.domain.periodic, strict=True):
            phase = torch.cat([2 * math.pi * k * coordinate for k in WAVES], dim=1)
            columns += [phase.sin(), phase.cos()] if periodic else [2 * coordinate - 1]
        return torch.cat(columns, dim=1)
