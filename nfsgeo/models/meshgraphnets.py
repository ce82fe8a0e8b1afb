"""`meshgraphnets`: encode, process, decode on one graph of the points."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.triangulation import triangulation
from nfsgeo.models.base import Model
from nfsgeo.models.settings import GraphSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import InteractionLayer
from nfsgeo.nn.message_passing import perceptron

__all__ = ["MeshGraphNets"]


class MeshGraphNetsSettings(GraphSettings):
    """Settings of `meshgraphnets`.

    Attributes:
        width: channels of nodes and edges.
        depth: number of steps of message passing.
        graph: edges of the ``cells`` of the mesh, or of the Delaunay triangulation if
            there are none; always those of the triangulation, ``delaunay``; or all
            pairs within the ``radius``, which otherwise is only the unit of length. A
            triangulation crosses bodies in the mesh, cells do not.
    """

    width: PositiveInt = 64
    depth: PositiveInt = 8
    graph: Literal["cells", "delaunay", "radius"] = "cells"


class MeshGraphNets(Model):
    """A graph network with edge features that residual perceptrons update.

    "Learning Mesh-Based Simulation with Graph Networks" (Pfaff et al., 2021), section
    3. The features of an edge are the relative position of its ends and the distance.
    Those of a node are its inputs and, unlike in the publication, its position. All
    time steps are predicted at once.
    """

    Settings = MeshGraphNetsSettings
    source = "Learning Mesh-Based Simulation with Graph Networks (Pfaff et al., 2021)"
    paper = {"width": 128, "depth": 15}
    spheres = True
    predicts_anywhere = False
    uses_cells = True

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        width, outputs = self.settings.width, problem.n_out * problem.out_components
        self.builder, sizes = self.settings.builder(problem), [width] * 3
        inputs = problem.num_features + problem.dim
        self.node_encoder = perceptron([inputs, *sizes], nn.ReLU)
        self.edge_encoder = perceptron([problem.dim + 1, *sizes], nn.ReLU)
        self.processor = nn.ModuleList(
            InteractionLayer(width, 2, "sum", nn.ReLU)
            for _ in range(self.settings.depth)
        )
        self.decoder = perceptron([*sizes, outputs], nn.ReLU, norm=False)

    def edges(
        self, pos: Tensor, query_pos: Tensor, cells: Tensor | None = None
    ) -> dict[str, BipartiteGraph]:
        """Make the edges of the mesh; see :class:`MeshGraphNetsSettings`.

        Args:
            pos: normalised positions of the observed points ``[n, d]``.
            query_pos: the same positions.
            cells: edges of the cells of the mesh ``[2, E]``; ``None`` without any.
        """
        if self.settings.graph == "radius":
            return {"mesh": self.builder.points_to_points(pos)}
        domain = self.builder.domain
        if self.settings.graph == "cells" and cells is not None:
            joined = cells.to(pos.device)
        else:
            joined = triangulation(pos, domain)[0].to(pos.device)
        return {"mesh": BipartiteGraph.from_edges(joined, (pos, pos), domain)}

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the observed points; see :class:`Model`."""
        mesh, place = graphs.edges["mesh"], self.in_unit_box(graphs.pos)
        nodes = self.node_encoder(torch.cat([x.flatten(1), place], dim=1))
        edges = self.edge_encoder(mesh.offset(x.dtype) / self.builder.radius)
        for layer in self.processor:
            edges, nodes = layer(edges, nodes, nodes, mesh.edge_index)
        result: Tensor = self.decoder(nodes)
        return result.unflatten(1, (self.problem.n_out, self.problem.out_components))
