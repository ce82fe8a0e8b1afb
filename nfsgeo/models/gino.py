"""`gino`: the Geometry-Informed Neural Operator of the library neuraloperator."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs, equispaced_grid
from nfsgeo.models.base import Model
from nfsgeo.models.fourier_blocks import modes_for
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.neuraloperator import library_model
from nfsgeo.models.point_mixer import grid_shape_for
from nfsgeo.models.problem import Problem
from nfsgeo.models.radius_graph import GraphSettings, graph_builder
from nfsgeo.nn import neighbour_sum

__all__ = ["GINO", "GINO_INFO"]


class GINOSettings(GraphSettings):
    """Settings of `gino`.

    Attributes:
        width: channels on the grid.
        depth: number of Fourier layers.
        modes: non-negative frequencies kept on every axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more.
        hidden: width of the networks that give the kernels.
        grid: nodes along each axis, or along the shortest of a box that is no cube;
            ``None`` for about as many nodes as points.
        radius_factor: the factor ``c`` of the radius at which every node has
            ``c log n`` neighbours among ``n`` points on average.
    """

    width: PositiveInt = 32
    depth: PositiveInt = 4
    modes: PositiveInt | None = None
    hidden: PositiveInt = 64
    grid: PositiveInt | None = None


class GINO(Model):
    """Kernel integrals to a grid and back, with Fourier layers between.

    "Geometry-Informed Neural Operator for Large-Scale 3D PDEs", its layers and weights
    those of ``neuralop.models.GINO``. The neighbourhoods are computed here: they
    respect periodic axes and a mesh for each sample, and are never empty. Time steps
    are channels, of the input and of the result.

    Raises:
        UserError: without the library.
    """

    Settings = GINOSettings
    settings: GINOSettings
    grid: Tensor

    def __init__(self, problem: Problem, settings: Any = None, **keywords: Any) -> None:
        super().__init__(problem, settings, **keywords)
        settings = self.settings
        domain = problem.domain.normalised
        self.shape = grid_shape_for(domain, settings.grid, problem.num_points)
        num_ends = min(problem.num_points, math.prod(self.shape))
        self.builder = graph_builder(problem, settings, num_ends)
        radius = self.builder.radius
        modes = modes_for(settings.modes, problem)
        theirs: Any = library_model("GINO", "gino")(
            in_channels=problem.num_features,
            out_channels=problem.n_out * problem.out_components,
            gno_coord_dim=domain.dim,
            in_gno_radius=radius,
            out_gno_radius=radius,
            fno_in_channels=problem.num_features,
            fno_n_modes=tuple(min(2 * modes, n) for n in self.shape),
            fno_hidden_channels=settings.width,
            fno_n_layers=settings.depth,
            in_gno_channel_mlp_hidden_layers=[settings.hidden],
            out_gno_channel_mlp_hidden_layers=[settings.hidden],
            gno_use_open3d=False,
            gno_use_torch_scatter=False,
        )
        # Only its parts: the whole would put more than weights into a checkpoint.
        self.gno_in, self.lifting = theirs.gno_in, theirs.lifting
        self.blocks, self.gno_out = theirs.fno_blocks, theirs.gno_out
        self.projection = theirs.projection
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """From the points to the grid (``up``), and on to the queries (``down``)."""
        grid = equispaced_grid(self.builder.domain, self.shape).to(pos)
        return {
            "up": self.builder.points_to_grid(pos, grid),
            "down": self.builder.grid_to_points(grid, query_pos),
        }

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the queries of ``graphs``; see :class:`Model`."""
        up, down, samples = graphs.edges["up"], graphs.edges["down"], graphs.num_samples
        nodes = self.in_unit_box(self.grid).repeat(samples, 1)
        place = self.in_unit_box(graphs.pos)
        field = _integral(self.gno_in, place, nodes, x.flatten(1), up)
        # A node in an obstacle has no neighbour.
        field = field / up.degree().clamp_min(1)[:, None].to(field.dtype)
        field = self.lifting(field.unflatten(0, (samples, *self.shape)).movedim(-1, 1))
        for layer in range(self.blocks.n_layers):
            field = self.blocks(field, layer)
        field = field.movedim(1, -1).flatten(0, -2)
        place = self.in_unit_box(graphs.queries)
        out = _integral(self.gno_out, nodes, place, field, down)
        result: Tensor = self.projection(out.T[None])[0].T
        return result.unflatten(1, (self.problem.n_out, -1))


def _integral(
    block: nn.Module, source: Tensor, target: Tensor, x: Tensor, graph: BipartiteGraph
) -> Tensor:
    """Sum of the kernel of one of the library's blocks times ``x`` ``[n, C]``."""
    embed: Any = block.pos_embedding
    network: Any = block.integral_transform.channel_mlp  # type: ignore[union-attr]
    ends = embed(source)[graph.edge_index[0]], embed(target)[graph.edge_index[1]]
    kernel = network(torch.cat(ends, dim=-1))
    return neighbour_sum(x.T.unsqueeze(-1), kernel.T, graph)[..., 0].T


GINO_INFO = ModelInfo(
    name="gino",
    model=GINO,
    source="Geometry-Informed Neural Operator (neuraloperator)",
)
