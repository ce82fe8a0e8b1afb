"""`gino` and `neuralop-fno`, models of the optional library neuraloperator."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import BipartiteGraph, Graphs, equispaced_grid
from nfsgeo.models.base import Model
from nfsgeo.models.point_mixer import grid_shape_for
from nfsgeo.models.settings import GraphSettings, GridSize, SpectralSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import neighbour_sum

__all__ = ["GINO", "NeuralopFNO"]


class LibraryModel(Model):
    """Base class of models with layers of ``neuralop.models``.

    Time steps are channels of the input and of the result.

    Raises:
        UserError: when the library is not installed.
    """

    def take(self, name: str, **sizes: Any) -> Any:
        """Build the library's model ``name`` and take its layers on the grid.

        The whole model would put more than weights into a checkpoint.
        """
        try:
            with warnings.catch_warnings():
                # The library changes the warning filters of the whole process.
                from neuralop import models
        except ImportError:
            raise UserError(
                f"{type(self).__name__} without the library neuraloperator",
                "the library to be installed",
                "pip install 'nfsgeo[gino]'",
            ) from None
        outputs = self.problem.n_out * self.problem.out_components
        theirs = getattr(models, name)(
            in_channels=self.problem.num_features, out_channels=outputs, **sizes
        )
        self.lifting, self.blocks = theirs.lifting, theirs.fno_blocks
        self.projection = theirs.projection
        return theirs

    def on_grid(self, field: Tensor) -> Tensor:
        """Apply lifting and Fourier layers to a field ``[B, C, *grid]``."""
        field = self.lifting(field)
        for layer in range(self.blocks.n_layers):
            field = self.blocks(field, layer)
        return field


class NeuralopFNOSettings(SpectralSettings):
    """Settings of `neuralop-fno`, which otherwise has the library's defaults."""

    depth: PositiveInt = 4


class NeuralopFNO(LibraryModel):
    """``neuralop.models.FNO``.

    After "Fourier Neural Operator for Parametric Partial Differential Equations" (Li et
    al., 2021), with the library's positional embedding, channel mixing and skip
    connections.
    """

    Settings = NeuralopFNOSettings
    source = (
        "Fourier Neural Operator for Parametric PDEs "
        "(Li et al., 2021), by neuraloperator"
    )
    points = False
    predicts_anywhere = False

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        self.take(
            "FNO",
            n_modes=(2 * self.settings.modes_of(problem),) * problem.domain.dim,
            hidden_channels=self.settings.width,
            n_layers=self.settings.depth,
        )

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the nodes of the grid; see :class:`Model`."""
        assert graphs.grid_shape is not None, "graphs of points that were not checked"
        # The library's embedding caches its grid on the device of the first call.
        axes = [torch.arange(n, device=x.device) / n for n in graphs.grid_shape]
        place = torch.stack(torch.meshgrid(*axes, indexing="ij")).to(x)
        field = x.flatten(1).view(graphs.num_samples, *graphs.grid_shape, -1)
        place = place.expand(graphs.num_samples, *place.shape)
        field = self.on_grid(torch.cat([field.movedim(-1, 1), place], dim=1))
        result: Tensor = self.projection(field).movedim(1, -1).flatten(0, -2)
        return result.unflatten(1, (self.problem.n_out, -1))


class GINOSettings(SpectralSettings, GraphSettings):
    """Settings of `gino`.

    Attributes:
        in_layers: widths of the hidden layers of the kernel to the grid,
            ``[80, 80, 80]`` in the library.
        out_layers: widths of the hidden layers of the kernel from the grid,
            ``[512, 256]`` in the library.
        norm: normalisation between the Fourier layers.
        mlp_factor: hidden channels of their perceptrons over ``width``.
        grid: nodes along the shortest axis; ``None`` for about as many nodes as points.
    """

    depth: PositiveInt = 4
    in_layers: tuple[PositiveInt, ...] = (64,)
    out_layers: tuple[PositiveInt, ...] = (64,)
    norm: Literal["none", "instance_norm", "group_norm"] = "none"
    mlp_factor: PositiveFloat = 0.5
    grid: GridSize | None = None


class GINO(LibraryModel):
    """Kernel integrals to a grid and back, with Fourier layers between them.

    "Geometry-Informed Neural Operator for Large-Scale 3D PDEs" (Li et al., 2023),
    ``neuralop.models.GINO``. Its neighbourhoods are those of nfsgeo, which respect
    periodic axes and a mesh for each sample and are never empty. The positions of the
    nodes are the library's latent features.
    """

    Settings = GINOSettings
    source = "Geometry-Informed Neural Operator (Li et al., 2023), by neuraloperator"
    grid: Tensor

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings, domain = self.settings, problem.domain.normalised
        self.shape = grid_shape_for(domain, settings.grid, problem.num_points)
        num_ends = min(problem.num_points, math.prod(self.shape))
        self.builder = settings.builder(problem, num_ends)
        modes = settings.modes_of(problem)
        theirs = self.take(
            "GINO",
            gno_coord_dim=domain.dim,
            in_gno_radius=self.builder.radius,
            out_gno_radius=self.builder.radius,
            fno_in_channels=problem.num_features,
            latent_feature_channels=domain.dim,
            fno_n_modes=tuple(min(2 * modes, n) for n in self.shape),
            fno_hidden_channels=settings.width,
            fno_n_layers=settings.depth,
            fno_norm=None if settings.norm == "none" else settings.norm,
            fno_channel_mlp_expansion=settings.mlp_factor,
            in_gno_channel_mlp_hidden_layers=[*settings.in_layers],
            out_gno_channel_mlp_hidden_layers=[*settings.out_layers],
            gno_use_open3d=False,
            gno_use_torch_scatter=False,
        )
        self.gno_in, self.gno_out = theirs.gno_in, theirs.gno_out
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Make the edges from points to nodes (``up``) and to queries (``down``)."""
        grid = equispaced_grid(self.builder.domain, self.shape).to(pos)
        return {
            "up": self.builder.points_to_grid(pos, grid),
            "down": self.builder.grid_to_points(grid, query_pos),
        }

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the query points; see :class:`Model`."""
        up, down, samples = graphs.edges["up"], graphs.edges["down"], graphs.num_samples
        nodes = self.in_unit_box(self.grid).repeat(samples, 1)
        place = self.in_unit_box(graphs.pos)
        field = _integral(self.gno_in, place, nodes, x.flatten(1), up)
        # Nodes in obstacles have no neighbours.
        field = field / up.degree().clamp_min(1)[:, None].to(field.dtype)
        field = torch.cat([field, nodes], dim=1)
        field = self.on_grid(field.unflatten(0, (samples, *self.shape)).movedim(-1, 1))
        field = field.movedim(1, -1).flatten(0, -2)
        place = self.in_unit_box(graphs.queries)
        out = _integral(self.gno_out, nodes, place, field, down)
        result: Tensor = self.projection(out.T[None])[0].T
        return result.unflatten(1, (self.problem.n_out, -1))


def _integral(
    block: nn.Module, source: Tensor, target: Tensor, x: Tensor, graph: BipartiteGraph
) -> Tensor:
    """Sum ``x [n, C]`` with the kernel of one of the library's blocks."""
    embed: Any = block.pos_embedding
    network: Any = block.integral_transform.channel_mlp  # type: ignore[union-attr]
    ends = embed(source)[graph.edge_index[0]], embed(target)[graph.edge_index[1]]
    kernel = network(torch.cat(ends, dim=-1))
    return neighbour_sum(x.T.unsqueeze(-1), kernel.T, graph)[..., 0].T
