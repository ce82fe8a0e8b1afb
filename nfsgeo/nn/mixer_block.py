"""Layers that all Vision Mixers share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nfsgeo.errors import UserError, check_shape

__all__ = ["FieldLayerNorm", "Lift", "MixerBlock", "Pointwise", "Projector"]

# Numbers of a hidden layer in a block: few enough for the cache of a core, and on a GPU
# enough to keep it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


class Pointwise(nn.Linear):
    """A 1×1 convolution for any number of axes, ``[B, C, *n]`` to ``[B, C', *n]``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the map at every node."""
        if x.dim() < 2 or x.size(1) != self.in_features:
            flat = x.flatten(2) if x.dim() > 2 else x
            check_shape("x", flat, "B", self.in_features, "n")
        if (nodes := x.movedim(1, -1)).is_contiguous():
            return nn.functional.linear(nodes, self.weight, self.bias).movedim(-1, 1)
        flat, weight = x.flatten(2), self.weight.expand(x.size(0), -1, -1)
        # One product for all samples would need copies of x.
        if self.bias is None:
            flat = torch.bmm(weight, flat)
        else:
            flat = torch.baddbmm(self.bias[:, None], weight, flat)
        return flat.unflatten(2, x.shape[2:])


class Lift(nn.Module):
    r"""Linear map of inputs, position and time to channels.

    .. math:: v(x, t) = W_a a(x) + W_x x + b + t \, W_t

    Input time steps are channels, output time steps are tokens. Since the map is affine
    in time, the field is represented by its value at t = 0 and its slope.

    Args:
        num_features: inputs at a point, time steps times components.
        dim: space dimensions; 0 for a map that does not depend on the position.
        channels: :math:`C`.
        time: whether the field depends on time; if not, the slope is ``None``.
    """

    def __init__(
        self, num_features: int, dim: int, channels: int, *, time: bool = True
    ) -> None:
        super().__init__()
        self.dim = dim
        self.space = nn.Linear(num_features + dim, channels)
        self.time = nn.Parameter(torch.empty(channels)) if time else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights, with time treated as any other input."""
        self.space.reset_parameters()
        if self.time is not None:
            bound = (self.space.in_features + 1) ** -0.5
            nn.init.uniform_(self.time, -bound, bound)

    def forward(self, features: Tensor, pos: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the value at t = 0 ``[N, C]`` and the slope ``[C]``.

        Args:
            features: inputs ``[N, F]``.
            pos: positions ``[N, d]``.
        """
        num, size = len(features), self.space.in_features - self.dim
        if features.shape != (num, size):
            check_shape("features", features, "N", size)
        if pos.dim() != 2 or len(pos) != num or pos.size(1) < self.dim:
            check_shape("pos", pos, num, "d")
            check_shape("pos", pos, num, self.dim)
        return self.space(torch.cat([features, pos[:, : self.dim]], dim=-1)), self.time


class Projector(nn.Sequential):
    """Two linear maps of the last axis with a GELU between them.

    The hidden layer is computed for one block of rows after the other, and again in the
    backward pass, so that it is never stored for all rows.

    Args:
        channels: :math:`C`.
        out_components: components of the field.
        hidden: width between the maps; 128 in the paper.

    Shapes:
        ``[..., C]`` to ``[..., out_components]``.
    """

    def __init__(self, channels: int, out_components: int, hidden: int = 128) -> None:
        super().__init__(
            nn.Linear(channels, hidden),
            nn.GELU(),
            nn.Linear(hidden, out_components),
        )
        self.channels, self.hidden = channels, hidden

    def forward(self, x: Tensor) -> Tensor:
        """Apply the maps at every point and time step."""
        layers = super().forward
        if x.dim() < 2 or x.size(-1) != self.channels:
            check_shape("x", x, "...", "N", self.channels)
        if torch.compiler.is_compiling():
            # Compilers fuse the layers themselves.
            return layers(x)
        size = max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // self.hidden)
        blocks = [
            checkpoint(
                layers,
                rows,
                use_reentrant=False,
                preserve_rng_state=False,
                determinism_check="none",
            )
            for rows in x.flatten(0, -2).split(size)
        ]
        return torch.cat(blocks).unflatten(0, x.shape[:-1])


class FieldLayerNorm(nn.Module):
    r"""Layer-Norm with joint statistics over grid, time and channels.

    .. math:: y = \gamma \odot \frac{v - E[v]}{\sqrt{Var[v] + \epsilon}} + \beta

    Mean and variance are taken over all of a sample. With ``shape``, :math:`\gamma` and
    :math:`\beta` have an entry for every channel, node and time step, as in the paper,
    and the layer works on one grid only. Without it they have an entry for every
    channel, and the layer works on any grid.

    Args:
        channels: :math:`C`.
        shape: sizes of grid and time; ``None`` for an affine map per channel.
        eps: :math:`\epsilon`.

    Shapes:
        ``[B, C, *shape]`` to the same.

    Raises:
        UserError: for a field of another shape than ``shape``.
    """

    def __init__(
        self, channels: int, shape: Sequence[int] | None = None, *, eps: float = 1e-6
    ) -> None:
        super().__init__()
        self.shape = None if shape is None else (channels, *shape)
        self.eps = eps
        size = self.shape or (channels,)
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise every sample."""
        if self.shape is None:
            if x.dim() < 2 or x.size(1) != len(self.weight):
                check_shape("x", x, "B", len(self.weight), *["n"] * (x.dim() - 2))
            return nn.functional.group_norm(x, 1, self.weight, self.bias, self.eps)
        if x.shape[1:] != self.shape:
            raise UserError(
                f"a field of shape {tuple(x.shape[1:])} (channels, grid, time) at a "
                f"Layer-Norm made for {self.shape}",
                "the grid and time steps of training",
                "use these, or train with norm: channel",
            )
        return nn.functional.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        size = f"shape={self.shape}" if self.shape else f"{self.weight.numel()}"
        return f"{size}, eps={self.eps}"


class MixerBlock(nn.Module):
    r"""One round of mixing tokens and channels, with a residual.

    .. math:: v' = s v + \sigma(\mathrm{Norm}(\mathrm{Mix}(v)) + \mathrm{Res}(v))

    The frame of table 5 in "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et
    al., 2022), with :math:`s = 0`: :math:`\mathrm{Mix}` is token mixing, channel mixing
    and token demixing. With :math:`s = 1` the block adds to its input, as those of
    "Factorized Fourier Neural Operators" (Tran et al., 2023) do.

    Args:
        mix: layer that mixes tokens and channels, ``[B, C, *n]`` to the same.
        norm: normalisation; ``None`` for none.
        residual: residual branch, such as a 1×1 convolution; ``None`` for the identity.
        activation: :math:`\sigma`; ``None`` for none.
        skip: whether :math:`s` is 1.
    """

    def __init__(
        self,
        mix: nn.Module,
        *,
        norm: nn.Module | None = None,
        residual: nn.Module | None = None,
        activation: nn.Module | None = None,
        skip: bool = False,
    ) -> None:
        super().__init__()
        self.mix = mix
        self.norm = norm
        self.residual = residual
        self.activation = activation
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        """Mix a field ``[B, C, *n]``."""
        mixed = self.mix(x)
        if self.norm is not None:
            mixed = self.norm(mixed)
        mixed = mixed + (x if self.residual is None else self.residual(x))
        if self.activation is not None:
            mixed = self.activation(mixed)
        return x + mixed if self.skip else mixed
