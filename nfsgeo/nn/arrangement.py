"""Work along a graph with points that are near in space near in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.geometry.csr import inverse

__all__ = ["in_arrangement"]


def in_arrangement(
    graph: BipartiteGraph,
    work: Callable[..., Tensor],
    *at_sources: Tensor | None,
) -> Tensor:
    """The result of ``work`` at the targets, computed on the renumbered graph.

    Args:
        graph: from sources to targets.
        work: called with the graph, :attr:`nfsgeo.geometry.BipartiteGraph.arranged`,
            and ``at_sources`` in the order of its sources; returns ``[m, ...]``.
        at_sources: tensors ``[n, ...]``, or ``None``.
    """
    if torch.compiler.is_compiling():
        return work(graph, *at_sources)
    if graph.source_order is not None:
        order = graph.source_order
        at_sources = tuple(
            None if known is None else _permuted(known, order) for known in at_sources
        )
    at_targets = work(graph.arranged, *at_sources)
    if graph.target_order is None:
        return at_targets
    return _permuted(at_targets, inverse(graph.target_order))


def _permuted(x: Tensor, order: Tensor) -> Tensor:
    permuted: Tensor = _Permuted.apply(x, order)
    return permuted


class _Permuted(torch.autograd.Function):
    """Rows in an order of all of them, whose gradient is such an order as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return _permuted(grad, inverse(order)), None
