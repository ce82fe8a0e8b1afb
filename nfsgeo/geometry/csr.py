"""Pieces of sparse matrices in CSR form, of which bipartite graphs are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

__all__ = [
    "SparseRows",
    "Transpose",
    "checked_batch",
    "outside_inference",
    "pointers",
]

P = ParamSpec("P")
R = TypeVar("R")


def outside_inference(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates what makes graphs: none of their tensors is an inference tensor.

    A graph made during validation serves training, too. Gradients are recorded only
    where they are without the decorator.
    """

    @wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        recorded = torch.is_grad_enabled()
        with torch.inference_mode(False), torch.set_grad_enabled(recorded):
            return function(*args, **kwargs)

    return outside


class Transpose(NamedTuple):
    """The edges of a graph, sorted by source.

    Attributes:
        permutation: Edge numbers ``[E]`` such that ``edge_index[:, permutation]`` is
            sorted by source and then target.
        ptr: Where each source's edges begin in ``permutation`` ``[n + 1]``.
    """

    permutation: Tensor
    ptr: Tensor


class SparseRows(NamedTuple):
    """Pattern of a sparse matrix in CSR form, as torch and MKL take it.

    Attributes:
        ptr: Where each row begins; int32 unless there are too many edges for it.
        column: Column of each entry, of the same type.
    """

    ptr: Tensor
    column: Tensor


def pointers(sorted_index: Tensor, size: int) -> Tensor:
    """Where the entries of each of ``size`` numbers begin in a sorted index."""
    counts = sorted_index.new_zeros(size)
    counts = counts.index_add(0, sorted_index, torch.ones_like(sorted_index))
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def checked_batch(pos: Tensor, batch: Tensor | None, name: str = "batch") -> Tensor:
    """Sample of each point ``[n]``, int64; zeros where there is one sample alone.

    Args:
        pos: Points ``[n, d]``.
        batch: Sample of each ``[n]``; None for one sample.
        name: What it is called, for the message.

    Raises:
        ValueError: If ``batch`` is of another shape or type, or not sorted.
    """
    if batch is None:
        return torch.zeros(len(pos), dtype=torch.int64, device=pos.device)
    fits = batch.shape == pos.shape[:1] and not batch.is_floating_point()
    if not fits or (batch[:1] < 0).any() or (batch[1:] < batch[:-1]).any():
        raise ValueError(
            f"{name} of shape {list(batch.shape)} and type {batch.dtype}: expected the "
            f"sample of each of the {len(pos)} points, integers from 0, sorted; sort "
            "the points by sample"
        )
    return batch.to(torch.int64)
