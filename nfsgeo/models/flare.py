"""`flare`: attention through learned latent queries."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.problem import Problem
from nfsgeo.models.settings import ModelSettings
from nfsgeo.nn.attention import MultiHead, per_sample

__all__ = ["FLARE"]


class FLARESettings(ModelSettings):
    """Settings of `flare`; the defaults are its authors' for elasticity.

    Attributes:
        width: channels, a multiple of ``heads``.
        depth: number of blocks.
        heads: attention heads.
        latents: latent queries of each head.
        mlp_layers: residual layers of the perceptrons in the blocks.
    """

    width: PositiveInt = 64
    depth: PositiveInt = 8
    heads: PositiveInt = 8
    latents: PositiveInt = 64
    mlp_layers: PositiveInt = 3


class FLARE(Model):
    r"""A transformer whose attention passes through few latents, linear in the points.

    .. math:: v \leftarrow v + \mathrm{Attention}(\mathrm{LN}(v)), \qquad
        v \leftarrow v + \mathrm{MLP}(\mathrm{LN}(v))

    "FLARE: Fast Low-rank Attention Routing Engine" (arXiv 2508.12594). Inputs at all
    time steps and the normalised position are the channels of a point, all predicted
    time steps those of the result. It predicts at the observed points.
    """

    Settings = FLARESettings
    settings: FLARESettings
    spheres = True
    predicts_anywhere = False

    def __init__(self, problem: Problem, settings: Any = None, **keywords: Any) -> None:
        super().__init__(problem, settings, **keywords)
        width, outputs = self.settings.width, problem.n_out * problem.out_components
        self.lift = ResidualMLP(problem.num_features + problem.dim, width, width, 2)
        self.blocks = nn.ModuleList(
            FLAREBlock(self.settings) for _ in range(self.settings.depth)
        )
        self.norm = nn.LayerNorm(width)
        self.projector = ResidualMLP(width, width, outputs, 2)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights of linear maps from a narrow normal law, as its authors."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        field = self.lift(torch.cat([graphs.pos, x.flatten(1)], dim=1))
        for block in self.blocks:
            field = block(field, graphs.sizes)
        result: Tensor = self.projector(self.norm(field))
        return result.unflatten(1, (self.problem.n_out, self.problem.out_components))


class FLAREBlock(nn.Module):
    """Attention through latents, then a perceptron, each after Layer-Norm and added."""

    def __init__(self, settings: FLARESettings) -> None:
        super().__init__()
        width, layers = settings.width, settings.mlp_layers
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = LatentAttention(
            width, settings.heads, settings.latents, mlp_layers=layers
        )
        self.mlp = ResidualMLP(width, width, width, layers)

    def forward(self, x: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """From ``[N, C]`` to the same."""
        x = x + self.attention(self.attention_norm(x), sizes)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class LatentAttention(MultiHead):
    r"""Multi-head attention of rank ``latents``: points to latents and back.

    .. math:: z = \mathrm{softmax}(Q K^T) V, \qquad y = \mathrm{softmax}(K Q^T) z

    in every head, with learned queries :math:`Q` that are its own, not scaled. Keys and
    values are perceptrons of the points.

    Shapes:
        ``x`` ``[N, C]`` to the same; ``sizes`` has the number of points of each
        sample, which are attended to separately.
    """

    def __init__(
        self, channels: int, heads: int, latents: int, *, mlp_layers: int
    ) -> None:
        super().__init__(channels, heads)
        queries = 0.1 * torch.randn(heads, latents, channels // heads)
        self.latents = nn.Parameter(queries)
        self.key = ResidualMLP(channels, channels, channels, mlp_layers)
        self.value = ResidualMLP(channels, channels, channels, mlp_layers)
        self.output = nn.Linear(channels, channels)

    def forward(self, x: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Mix the points of each sample through the latents."""
        out: Tensor = self.output(
            per_sample(self._mixed, sizes, self.key(x), self.value(x))
        )
        return out

    def _mixed(self, key: Tensor, value: Tensor) -> Tensor:
        """From two of ``[B, n, C]`` to ``[B, n, C]``."""
        key, value = (
            each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in (key, value)
        )
        query = self.latents.expand(len(key), -1, -1, -1)
        tokens = self.attend(query, key, value, scale=1.0)
        mixed = self.attend(key, query, tokens, scale=1.0)
        return mixed.transpose(1, 2).flatten(2)


class ResidualMLP(nn.Module):
    """A perceptron each layer of which is added to its input where widths agree."""

    def __init__(self, inputs: int, hidden: int, outputs: int, layers: int) -> None:
        super().__init__()
        sizes = [inputs, *[hidden] * (layers + 1), outputs]
        self.layers = nn.ModuleList(map(nn.Linear, sizes[:-1], sizes[1:]))

    def forward(self, x: Tensor) -> Tensor:
        """From ``[..., inputs]`` to ``[..., outputs]``."""
        *hidden, last = self.layers
        for layer in hidden:
            x = _added(x, nn.functional.gelu(layer(x)))
        return _added(x, last(x))


def _added(x: Tensor, change: Tensor) -> Tensor:
    return x + change if x.shape == change.shape else change
