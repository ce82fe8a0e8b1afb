"""`transolver` and `flare`: transformers whose attention is linear in the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import PhysicsAttention
from nfsgeo.nn.attention import MultiHead, per_sample

__all__ = ["FLARE", "PointTransformer", "Transolver"]


class PointTransformer(Model):
    r"""A transformer whose tokens are the points.

    .. math:: v \leftarrow v + \mathrm{Attention}(\mathrm{LN}(v)), \qquad
        v \leftarrow v + \mathrm{MLP}(\mathrm{LN}(v))

    The channels of a point are its normalised position and its inputs at all time
    steps, those of the result all predicted time steps. Subclasses make ``lift``,
    ``blocks``, ``norm`` and ``projector``.
    """

    spheres = True
    predicts_anywhere = False
    draw: ClassVar[Callable[..., Tensor]] = staticmethod(nn.init.trunc_normal_)
    lift: nn.Module
    blocks: nn.ModuleList
    norm: nn.Module
    projector: nn.Module

    def reset_parameters(self) -> None:
        """Redraw linear maps from a narrow normal distribution, as the authors do."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                self.draw(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def lifted(self, inputs: Tensor) -> Tensor:
        """Map position and inputs ``[N, d + F]`` to the channels of the blocks."""
        out: Tensor = self.lift(inputs)
        return out

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the observed points; see :class:`Model`."""
        field = self.lifted(torch.cat([graphs.pos, x.flatten(1)], dim=1))
        for block in self.blocks:
            field = block(field, graphs.sizes)
        result: Tensor = self.projector(self.norm(field))
        return result.unflatten(1, (self.problem.n_out, self.problem.out_components))


class TransformerBlock(nn.Module):
    """Attention and a perceptron, each with its norm and a residual: ``[N, C]``."""

    def __init__(
        self, width: int, attention: nn.Module, mlp: nn.Module, mlp_norm: nn.Module
    ) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), mlp_norm
        self.attention, self.mlp = attention, mlp

    def forward(self, x: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Apply the block to samples of these sizes in a row, ``[N, C]``."""
        x = x + self.attention(self.attention_norm(x), sizes)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


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


class Transolver(PointTransformer):
    """A transformer with attention among learned slices of the points.

    See :class:`~nfsgeo.nn.PhysicsAttention`.
    """

    Settings = TransolverSettings
    source = (
        "Transolver: A Fast Transformer Solver for PDEs on General Geometries "
        "(Wu et al., 2024)"
    )

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        width, hidden = settings.width, settings.mlp_factor * settings.width
        inputs = problem.num_features + problem.dim
        self.lift = nn.Sequential(
            nn.Linear(inputs, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.shift = nn.Parameter(torch.rand(width) / width)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                width,
                PhysicsAttention(
                    width, settings.heads, settings.slices, dropout=settings.dropout
                ),
                nn.Sequential(
                    nn.LayerNorm(width),
                    nn.Linear(width, hidden),
                    nn.GELU(),
                    nn.Linear(hidden, width),
                ),
                nn.Identity(),
            )
            for _ in range(settings.depth)
        )
        self.norm = nn.Identity()
        outputs = problem.n_out * problem.out_components
        self.projector = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))
        self.reset_parameters()

    def lifted(self, inputs: Tensor) -> Tensor:
        """Add a learned shift; see :class:`PointTransformer`."""
        return super().lifted(inputs) + self.shift


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


class FLARE(PointTransformer):
    """A transformer with low-rank attention through latents.

    "FLARE: Fast Low-rank Attention Routing Engine" (Puri et al., 2025,
    arXiv 2508.12594).
    """

    Settings = FLARESettings
    source = "FLARE: Fast Low-rank Attention Routing Engine (Puri et al., 2025)"
    draw = staticmethod(nn.init.normal_)

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        width, layers = settings.width, settings.mlp_layers
        outputs = problem.n_out * problem.out_components
        self.lift = ResidualMLP(problem.num_features + problem.dim, width, width, 2)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                width,
                LatentAttention(
                    width, settings.heads, settings.latents, mlp_layers=layers
                ),
                ResidualMLP(width, width, width, layers),
                nn.LayerNorm(width),
            )
            for _ in range(settings.depth)
        )
        self.norm = nn.LayerNorm(width)
        self.projector = ResidualMLP(width, width, outputs, 2)
        self.reset_parameters()


class LatentAttention(MultiHead):
    r"""Multi-head attention of rank ``latents``: points to latents and back.

    .. math:: z = \mathrm{softmax}(Q K^T) V, \qquad y = \mathrm{softmax}(K Q^T) z

    in every head, with its own learned queries :math:`Q` and without scaling. Keys and
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
        mixed = per_sample(self._mixed, sizes, self.key(x), self.value(x))
        out: Tensor = self.output(mixed)
        return out

    def _mixed(self, key: Tensor, value: Tensor) -> Tensor:
        """Attend from keys and values ``[B, n, C]`` to ``[B, n, C]``."""
        key, value = (
            points.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for points in (key, value)
        )
        query = self.latents.expand(len(key), -1, -1, -1)
        tokens = self.attend(query, key, value, scale=1.0)
        mixed = self.attend(key, query, tokens, scale=1.0)
        return mixed.transpose(1, 2).flatten(2)


class ResidualMLP(nn.Module):
    """A perceptron with a residual for every layer whose widths agree."""

    def __init__(self, inputs: int, hidden: int, outputs: int, layers: int) -> None:
        super().__init__()
        sizes = [inputs, *[hidden] * (layers + 1), outputs]
        self.layers = nn.ModuleList(map(nn.Linear, sizes[:-1], sizes[1:]))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., inputs]`` to ``[..., outputs]``."""
        *hidden, last = self.layers
        for layer in hidden:
            x = _added(x, nn.functional.gelu(layer(x)))
        return _added(x, last(x))


def _added(x: Tensor, change: Tensor) -> Tensor:
    return x + change if x.shape == change.shape else change
