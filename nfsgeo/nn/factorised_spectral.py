"""Convolution in Fourier space along each axis alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nfsgeo.nn.neighbour_sums import twice_differentiable
from nfsgeo.nn.spectral import SpectralConv, by_product, real_waves

__all__ = ["FactorisedSpectralConv"]


class FactorisedSpectralConv(nn.Module):
    r"""The sum of Fourier convolutions along each of the last ``d`` axes.

    .. math:: w = \sum_{l=1}^{d} F_l^{-1}\big(R_l(k_l) \cdot F_l(v)\big),
        \qquad |k_l| < m_l

    The layer of "Factorized Fourier Neural Operators" (Tran et al., 2023). It has
    :math:`\sum_l m_l C C'` complex weights where :class:`SpectralConv` has
    :math:`2^{d-1} \prod_l m_l C C'`: with few training samples it generalises better,
    and it takes less time for each step. One layer mixes nodes that differ in one
    coordinate; two layers mix all nodes. In one dimension both are the same.

    Args:
        in_channels: channels of the input, :math:`C`.
        out_channels: channels of the result, :math:`C'`.
        modes: :math:`m_1 \dots m_d`, the number of frequencies kept on each of the
            :math:`d` transformed axes.
        fused: whether few frequencies of all axes are convolved by matrix products
            that add to one result, faster on a CPU. Neither
            ``torch.func`` nor forward differentiation works through them.

    Attributes:
        axes: the convolution along each axis, with weights of its own.

    Shapes:
        ``[B, C, n_1, ..., n_d]`` to ``[B, C', n_1, ..., n_d]``, real.

    Raises:
        ValueError: when the modes or the input do not fit.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        modes: Sequence[int],
        *,
        fused: bool = True,
    ) -> None:
        super().__init__()
        if not modes:
            raise ValueError("modes is (); expected a number for each transformed axis")
        self.use_fused = fused
        self.axes = nn.ModuleList(
            SpectralConv(in_channels, out_channels, [number]) for number in modes
        )

    def reset_parameters(self) -> None:
        """Draw the weights of every axis anew."""
        for convolution in self.axes:
            convolution.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        """Mix tokens and channels; see the class for shapes."""
        weights = [axis.get_parameter("weight") for axis in self.axes]
        channels = weights[0].size(-3)
        if x.dim() != len(weights) + 2 or x.size(1) != channels:
            raise ValueError(
                f"input has shape {tuple(x.shape)}; expected [B, {channels}] and "
                f"{len(weights)} axes"
            )
        fused = self.use_fused and not torch.compiler.is_exporting()
        if not fused or not all(by_product(len(weight)) for weight in weights):
            axes = enumerate(self.axes, 2)
            mixed = [_convolved(convolution, x, axis) for axis, convolution in axes]
            return sum(mixed[1:], start=mixed[0])
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            # Channels are last in memory, so that transforms of any axis read rows.
            nodes = x.movedim(1, -1).to(dtype).contiguous()
            summed: Tensor = _AxisSum.apply(nodes, *(w.to(dtype) for w in weights))
        return summed.movedim(-1, 1).to(x.dtype)

    def extra_repr(self) -> str:
        return f"fused={self.use_fused}"


def _convolved(convolution: nn.Module, x: Tensor, axis: int) -> Tensor:
    """The convolution of every line of nodes along an axis."""
    lines = x.movedim((1, axis), (-2, -1))
    mixed: Tensor = convolution(lines.flatten(0, -3)).unflatten(0, lines.shape[:-2])
    return mixed.movedim((-2, -1), (1, axis))


def axis_sum_reference(nodes: Tensor, *weights: Tensor) -> Tensor:
    """Reference for :class:`_AxisSum`, of operations that can be differentiated twice.

    Args:
        nodes: field ``[B, n_1, ..., n_d, C]``.
        weights: real and imaginary parts for each axis, ``[m_l, C, C', 2]``.

    Returns:
        ``[B, n_1, ..., n_d, C']``.
    """
    lines = [_Axis.of(nodes, axis, w) for axis, w in enumerate(weights, 1)]
    mixed = []
    for line, weight in zip(lines, weights, strict=True):
        real, imaginary = line.modes(nodes, line.forward)
        weight_real, weight_imaginary = weight[: line.num_modes].unbind(-1)
        turned = [
            real @ weight_real - imaginary @ weight_imaginary,
            real @ weight_imaginary + imaginary @ weight_real,
        ]
        along = line.add(None, torch.stack(turned), line.inverse)
        mixed.append(along.view(*nodes.shape[:-1], -1))
    return sum(mixed[1:], start=mixed[0])


class _Axis(NamedTuple):
    """An axis of a field ``[B, n_1, ..., n_d, C]``, and its lowest frequencies.

    Rows of both matrices hold all real parts before all imaginary ones.
    """

    before: int  # numbers of nodes, samples included, before and after the axis
    after: int
    num_modes: int
    forward: Tensor  # [2 k, n]
    inverse: Tensor  # [n, 2 k]

    @classmethod
    def of(cls, nodes: Tensor, axis: int, weight: Tensor) -> _Axis:
        size = nodes.size(axis)
        num_modes = min(len(weight), size // 2 + 1)
        forward, inverse = real_waves(size, num_modes, nodes)
        return cls(
            nodes.shape[:axis].numel(),
            nodes.shape[axis + 1 : -1].numel(),
            num_modes,
            forward.T.unflatten(0, (num_modes, 2)).transpose(0, 1).flatten(0, 1),
            inverse.T.unflatten(1, (num_modes, 2)).transpose(1, 2).flatten(1),
        )

    def modes(self, nodes: Tensor, matrix: Tensor) -> Tensor:
        """Multiply the nodes along the axis by ``[2 k, n]``, to ``[2, k, P, C]``."""
        num = matrix.size(1)
        modes = matrix.expand(self.before, -1, -1) @ nodes.view(self.before, num, -1)
        by_mode = modes.view(self.before, 2, self.num_modes, self.after, -1)
        return by_mode.permute(1, 2, 0, 3, 4).flatten(2, 3)

    def add(self, total: Tensor | None, modes: Tensor, matrix: Tensor) -> Tensor:
        """Add the product of ``[n, 2 k]`` and modes ``[2, k, P, C]`` to a field.

        The field ``[before, n, after C]`` is overwritten.
        """
        lines = (
            modes.view(2 * self.num_modes, self.before, -1).transpose(0, 1).contiguous()
        )
        matrix = matrix.expand(self.before, -1, -1)
        if total is None:
            return matrix @ lines
        return total.view(self.before, matrix.size(1), -1).baddbmm_(matrix, lines)


class _AxisSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, nodes: Tensor, *weights: Tensor) -> Tensor:
        total, saved = None, [nodes, *weights]
        lines = [_Axis.of(nodes, axis, w) for axis, w in enumerate(weights, 1)]
        for line, weight in zip(lines, weights, strict=True):
            modes = line.modes(nodes, line.forward)
            parts = weight[: line.num_modes].movedim(-1, 0).contiguous()
            total = line.add(total, _products(modes, parts), line.inverse)
            saved.append(modes)
        ctx.save_for_backward(*saved)
        ctx.lines, ctx.inputs = lines, lambda *saved: saved[: len(weights) + 1]
        assert total is not None
        return total.view(*nodes.shape[:-1], -1)

    @staticmethod
    @twice_differentiable(axis_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        num, grad, total = len(ctx.lines), grad.contiguous(), None
        nodes, weights = ctx.saved_tensors[0], ctx.saved_tensors[1 : num + 1]
        grad_weights = []
        rows = zip(ctx.lines, weights, ctx.saved_tensors[num + 1 :], strict=True)
        for line, weight, modes in rows:
            # The adjoint of a complex product is that by the conjugate.
            arrived = line.modes(grad, line.inverse.T)
            grad_weight = torch.zeros_like(weight)
            product = _products(modes.transpose(-1, -2), arrived, sign=-1)
            grad_weight[: line.num_modes] = product.movedim(0, -1)
            grad_weights.append(grad_weight)
            real, imaginary = weight[: line.num_modes].unbind(-1)
            conjugate = torch.stack([real, -imaginary])
            grad_modes = _products(arrived, conjugate.transpose(-1, -2))
            total = line.add(total, grad_modes, line.forward.T)
        assert total is not None
        return total.view_as(nodes), *grad_weights


def _products(a: Tensor, b: Tensor, sign: int = 1) -> Tensor:
    """Multiply batches of complex matrices ``[2, k, M, N]`` and ``[2, k, N, R]``.

    The first axis holds real and imaginary parts. ``sign=-1`` conjugates ``a``.
    """
    out = a.new_empty(2, a.size(1), a.size(2), b.size(3))
    torch.bmm(a[0], b[0], out=out[0])
    torch.bmm(a[0], b[1], out=out[1])
    out[0].baddbmm_(a[1], b[1], alpha=-sign)
    out[1].baddbmm_(a[1], b[0], alpha=sign)
    return out
