"""`transolver`: attention among learned slices of the points."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.problem import Problem
from nfsgeo.models.settings import ModelSettings
from nfsgeo.nn import PhysicsAttention

__all__ = ["Transolver"]


class TransolverSettings(ModelSettings):
    """Settings of `transolver`.

    Attributes:
        width: channels, a multiple of ``heads``.
        depth: number of blocks.
        heads: attention heads.
        slices: slices in each head.
        mlp_factor: hidden channels of each block's perceptron over ``width``.
        dropout: probability of dropping an attention weight or an output in training.
    """

    width: PositiveInt = 64
    depth: PositiveInt = 4
    heads: PositiveInt = 4
    slices: PositiveInt = 32
    mlp_factor: PositiveInt = 1
    dropout: float = 0.0


class Transolver(Model):
    r"""A transformer whose tokens are learned slices of the points.

    .. math:: v \leftarrow v + \mathrm{Attention}(\mathrm{LN}(v)), \qquad
        v \leftarrow v + \mathrm{MLP}(\mathrm{LN}(v))

    "Transolver: A Fast Transformer Solver for PDEs on General Geometries", equation
    (5). Inputs at all time steps and the normalised position are the channels of a
    point, all predicted time steps those of the result. It predicts at the observed
    points, in time linear in their number.
    """

    Settings = TransolverSettings
    settings: TransolverSettings
    spheres = True
    predicts_anywhere = False

    def __init__(self, problem: Problem, settings: Any = None, **keywords: Any) -> None:
        super().__init__(problem, settings, **keywords)
        width = self.settings.width
        inputs = problem.num_features + problem.dim
        self.lift = nn.Sequential(
            nn.Linear(inputs, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.shift = nn.Parameter(torch.rand(width) / width)
        self.blocks = nn.ModuleList(
            TransolverBlock(self.settings) for _ in range(self.settings.depth)
        )
        outputs = problem.n_out * problem.out_components
        self.projector = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights of linear maps from a narrow normal law, as its authors."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        field = self.lift(torch.cat([graphs.pos, x.flatten(1)], dim=1)) + self.shift
        for block in self.blocks:
            field = block(field, graphs.sizes)
        result: Tensor = self.projector(field)
        return result.unflatten(1, (self.problem.n_out, self.problem.out_components))


class TransolverBlock(nn.Module):
    """Attention among slices, then a perceptron, each after Layer-Norm and added."""

    def __init__(self, settings: TransolverSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.mlp_factor * settings.width
        self.attention_norm = nn.LayerNorm(width)
        self.attention = PhysicsAttention(
            width, settings.heads, settings.slices, dropout=settings.dropout
        )
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Linear(hidden, width),
        )

    def forward(self, x: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """From ``[N, C]`` to the same."""
        x = x + self.attention(self.attention_norm(x), sizes)
        out: Tensor = x + self.mlp(x)
        return out
