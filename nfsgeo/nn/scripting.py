"""The learned interpolation as TorchScript."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from nfsgeo.geometry import GraphTensors

__all__ = ["ScriptedInterpolation"]


class ScriptedInterpolation(nn.Module):
    """What ``torch.jit.script`` makes of :class:`~nfsgeo.nn.KernelInterpolation`.

    Traced once, for any numbers of points, edges and records: its sums are written out
    edge by edge, since a script knows no sparse products. It takes the graph as tensors
    alone, and trains the parameters of the layer itself.

    Args:
        layer: the layer, called with :class:`~nfsgeo.geometry.GraphTensors`.
        channels: those of the field, :math:`C`.
        dim: space dimensions, :math:`d`.
        num_features: length of the inputs that its kernel sees, :math:`F`.
    """

    def __init__(
        self, layer: nn.Module, channels: int, dim: int, num_features: int
    ) -> None:
        super().__init__()
        known = next(layer.parameters())
        # Any sizes do, but that none is 1, which would be broadcast.
        points, records, targets = dim + 4, 2, 3
        edge_index = torch.arange(points * targets, device=known.device)
        edge_index = torch.stack([edge_index % points, edge_index // points])
        example = (
            known.new_ones(points, records, channels),
            edge_index,
            torch.arange(targets + 1, device=known.device) * points,
            torch.rand(edge_index.size(1), dim).to(known),
            known.new_ones(edge_index.size(1)),
            known.new_ones(points),
            known.new_ones(points, dim),
            known.new_ones(points, num_features),
        )
        with warnings.catch_warnings():
            # Checks of shapes are Python's, and not in the program.
            warnings.simplefilter("ignore")
            self.traced = torch.jit.trace(
                _OfTensors(layer, num_features), example, check_trace=False
            )

    def forward(
        self,
        x: Tensor,
        graph: GraphTensors,
        pos: Tensor,
        features: Tensor | None = None,
    ) -> Tensor:
        """Interpolate ``x``; arguments and result as those of the layer."""
        if features is None:
            features = pos[:, :0]
        interpolated: Tensor = self.traced(
            x,
            graph.edge_index,
            graph.ptr,
            graph.displacement,
            graph.weight,
            graph.volume,
            pos,
            features,
        )
        return interpolated


class _OfTensors(nn.Module):
    """The layer, called with nothing but tensors, as tracing wants it."""

    def __init__(self, layer: nn.Module, num_features: int) -> None:
        super().__init__()
        self.layer = layer
        self.num_features = num_features

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        displacement: Tensor,
        weight: Tensor,
        volume: Tensor,
        pos: Tensor,
        features: Tensor,
    ) -> Tensor:
        graph = GraphTensors(edge_index, ptr, displacement, weight, volume)
        interpolated: Tensor = self.layer(
            x, graph, pos, features if self.num_features else None
        )
        return interpolated
