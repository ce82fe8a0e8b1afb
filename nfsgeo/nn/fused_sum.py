"""Learned interpolation in one kernel, on GPUs."""

from __future__ import annotations

import importlib.util
import logging
import os
from functools import cache
from typing import Any

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph
from nfsgeo.nn.hidden_layer import edge_weights_reference
from nfsgeo.nn.neighbour_sum import neighbour_sum_reference
from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["fused_sum", "fused_sum_reference", "fused_sum_runs"]

logger = logging.getLogger(__name__)

# Most numbers of a point, over all time steps and channels, that registers hold.
LARGEST_FIELD = 4096
# Largest relative difference from the reference, in the Euclidean norm.
TOLERANCE = 1e-4
# Kernels address memory by 32-bit offsets.
LARGEST_OFFSET = 2**31


def fused_sum(
    x: Tensor,
    relative: Tensor,
    node: Tensor | None,
    edge_weight: Tensor,
    edge_bias: Tensor,
    mix_weight: Tensor,
    mix_bias: Tensor,
    base_weight: Tensor,
    mean_weight: Tensor,
    graph: BipartiteGraph,
) -> Tensor:
    r"""Sum of neighbours whose weights are computed by a small network.

    .. math::
        s_{j,c} = \sum_{i \in N(j)} (b_{ij} + m_{ij} w_{r(c),ij}) \, x_{i,c}, \quad
        w = M \, \mathrm{GELU}(W r_{ij} + b + z_i) + c

    :func:`~nfsgeo.nn.hidden_layer.edge_weights` and
    :func:`~nfsgeo.nn.neighbour_sum.neighbour_sum` in one kernel, written in Triton: no
    weight of an edge is ever stored, neither for the sum nor for its gradients.

    Args:
        x: field at the sources ``[n, T, C]``, in any order of memory.
        relative: features of the edges :math:`r` ``[E, k]``, which are data.
        node: what the sources add to the hidden layer, :math:`z` ``[n, h]``.
        edge_weight, edge_bias: :math:`W` ``[h, k]`` and :math:`b` ``[h]``.
        mix_weight, mix_bias: :math:`M` ``[R, h]`` and :math:`c` ``[R]``; ``C / R``
            channels after each other share a weight.
        base_weight, mean_weight: :math:`b_{ij}` and :math:`m_{ij}`, ``[E]``, which are
            data.
        graph: edges from sources to targets.

    Returns:
        ``[m, T, C]``.
    """
    dtype = torch.promote_types(x.dtype, edge_weight.dtype)
    # Fields are read as they are; double precision stays, all else is summed in single.
    exact = torch.promote_types(dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        summed: Tensor = _FusedSum.apply(
            x,
            relative.to(exact).contiguous(),
            None if node is None else node.to(exact).contiguous(),
            *(
                a.to(exact).contiguous()
                for a in (edge_weight, edge_bias, mix_weight, mix_bias)
            ),
            base_weight.to(exact).contiguous(),
            mean_weight.to(exact).contiguous(),
            graph,
        )
    return summed.to(dtype)


def fused_sum_reference(
    x: Tensor,
    relative: Tensor,
    node: Tensor | None,
    edge_weight: Tensor,
    edge_bias: Tensor,
    mix_weight: Tensor,
    mix_bias: Tensor,
    base_weight: Tensor,
    mean_weight: Tensor,
    graph: BipartiteGraph,
) -> Tensor:
    """The same as :func:`fused_sum`, weights first and then the sum."""
    network = (edge_weight, edge_bias, mix_weight, mix_bias)
    weight = edge_weights_reference(relative, node, graph.edge_index[0], *network)
    sums = neighbour_sum_reference(
        x.permute(2, 0, 1).to(weight.dtype),
        weight,
        graph,
        base_weight=base_weight,
        mean_weight=mean_weight,
    )
    return sums.permute(1, 2, 0)


def fused_sum_runs(x: Tensor, groups: int, graph: BipartiteGraph) -> bool:
    """Whether :func:`fused_sum` supports such a field: on CUDA, with Triton installed.

    At its first use on a device the kernel is compared with its reference; where it
    fails or differs, a warning says so and sparse products take its place. The
    environment variable ``NFSGEO_TRITON`` decides without it: ``0`` leaves the kernel
    out, and ``1`` takes it unchecked.

    Args:
        x: field at the sources ``[n, T, C]``.
        groups: number of weights of an edge, :math:`R`.
        graph: edges from sources to targets.
    """
    if torch.compiler.is_compiling():
        return False
    of_point = x.size(1) * x.size(2)  # numbers
    held = _power_of_2(groups) * _power_of_2(of_point // groups)
    points = max(graph.num_source, graph.num_target)
    return (
        x.is_cuda
        and held <= LARGEST_FIELD
        and points * of_point < LARGEST_OFFSET
        and os.environ.get("NFSGEO_TRITON") != "0"
        and _triton_works(x.device)
    )


@cache
def _triton_works(device: torch.device) -> bool:
    """Whether Triton is installed and its kernel is right here; warns if it is not."""
    if importlib.util.find_spec("triton") is None:
        return False
    if os.environ.get("NFSGEO_TRITON") == "1":
        return True
    try:
        _check_kernel(device)
    # Whatever a compiler may raise: sparse products compute the same.
    except Exception as error:
        logger.warning(
            "Triton's kernel fails on %s (%s: %s); interpolating by sparse products",
            device,
            type(error).__name__,
            error,
        )
        return False
    return True


@torch.inference_mode(False)
@torch.enable_grad()
def _check_kernel(device: torch.device) -> None:
    """Compare the kernel with its reference on a small random graph.

    Raises:
        ArithmeticError: values or gradients differ by more than :data:`TOLERANCE`.
    """
    generator = torch.Generator().manual_seed(0)
    sources, targets, hidden = 9, 7, 5

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator).to(device)

    ends = torch.rand(sources + targets, 2, generator=generator).to(device)
    box = Domain.unit(2)
    graph = bipartite_graph(ends[:sources], ends[sources:], 0.3, box)
    relative, base, mean = draw(graph.num_edges, 3), *draw(2, graph.num_edges)
    leaves = [draw(sources, 3, 8), draw(sources, hidden), draw(hidden, 3)]
    leaves += [draw(hidden), draw(2, hidden), draw(2)]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    found = []
    for function in (fused_sum, fused_sum_reference):
        x, node, weight, bias, mix, mix_bias = leaves
        network = (weight, bias, mix, mix_bias)
        sums = function(x, relative, node, *network, base, mean, graph)
        found.append([sums.detach(), *torch.autograd.grad(sums.square().sum(), leaves)])
    for fast, plain in zip(*found, strict=True):
        error = float((fast - plain).norm() / plain.norm())
        if not error <= TOLERANCE:
            raise ArithmeticError(
                f"differs from the reference by {error:.1e}, more than {TOLERANCE:g}"
            )


class _FusedSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        relative: Tensor,
        node: Tensor | None,
        edge_weight: Tensor,
        edge_bias: Tensor,
        mix_weight: Tensor,
        mix_bias: Tensor,
        base_weight: Tensor,
        mean_weight: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        from nfsgeo.nn.triton_kernels import sum_forward

        network = [node, edge_weight, edge_bias, mix_weight, mix_bias]
        edges = [relative, *network, base_weight, mean_weight]
        ctx.save_for_backward(x, *edges)
        ctx.graph = graph
        ctx.inputs = lambda *saved: (*saved, graph)
        out = edge_weight.new_empty(graph.num_target, x.size(1), x.size(2))
        if graph.num_target:
            sum_forward[(graph.num_target,)](
                x,
                *x.stride(),
                out,
                *out.stride(),
                graph.csr.ptr,
                graph.csr.column,
                *_or(edges, x),
                **_sizes(x, edge_weight, mix_weight, node),
            )
        return out

    @staticmethod
    @twice_differentiable(fused_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from nfsgeo.nn.triton_kernels import PROGRAMS, sum_backward

        x, *edges = ctx.saved_tensors
        _, node, edge_weight, _, mix_weight, *_ = edges
        graph: BipartiteGraph = ctx.graph
        programs = max(1, min(PROGRAMS, graph.num_source))
        grad_x = torch.empty_like(x)
        grad_node = None if node is None else torch.empty_like(node)
        parts = [a.new_empty(programs, *a.shape) for a in edges[2:6]]
        rows = graph.transposed_csr
        sum_backward[(programs,)](
            x,
            *x.stride(),
            grad,
            *grad.stride(),
            grad_x,
            *grad_x.stride(),
            rows.ptr,
            rows.column,
            graph.transpose.permutation,
            *_or(edges, x),
            *_or([grad_node, *parts], x),
            graph.num_source,
            **_sizes(x, edge_weight, mix_weight, node),
        )
        network = [a.sum(0) for a in parts]
        return grad_x, None, grad_node, *network, None, None, None


def _or(given: list[Tensor | None], instead: Tensor) -> list[Tensor]:
    """All of them, with some tensor for each None: a kernel does not read these."""
    return [instead if a is None else a for a in given]


def _sizes(
    x: Tensor, edge_weight: Tensor, mix_weight: Tensor, node: Tensor | None
) -> dict[str, int | bool]:
    """Sizes for the kernels, and the least powers of 2 that hold them."""
    (hidden, features), groups = edge_weight.shape, mix_weight.size(0)
    steps, of_group = x.size(1), x.size(2) // groups
    of_all = zip("KHRQ", (features, hidden, groups, steps * of_group), strict=True)
    return {
        "FEATURES": features,
        "HIDDEN": hidden,
        "GROUPS": groups,
        "OF_GROUP": of_group,
        "STEPS": steps,
        **{name: _power_of_2(size) for name, size in of_all},
        "HAS_NODE": node is not None,
        # Adjacent threads read adjacent addresses.
        "STEPS_LAST": x.stride(1) < x.stride(2),
    }


def _power_of_2(size: int) -> int:
    """The least power of 2 that is at least ``size``."""
    return 1 << (size - 1).bit_length()
