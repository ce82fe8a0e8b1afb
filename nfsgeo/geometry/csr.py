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
    "outside_inference",
    "pointers",
    "sparse_rows",
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


def sparse_rows(ptr: Tensor, column: Tensor) -> SparseRows:
    """The pattern of a matrix, int32 if that suffices."""
    # Given anything longer, MKL gets a copy that is made for every product.
    fits = max(column.numel(), ptr.numel()) < 2**31
    kind = torch.int32 if fits else torch.int64
    return SparseRows(ptr.to(kind), column.to(kind))


def pointers(sorted_index: Tensor, size: int) -> Tensor:
    """Where the entries of each of ``size`` numbers begin in a sorted index."""
    counts = sorted_index.new_zeros(size)
    counts = counts.index_add(0, sorted_index, torch.ones_like(sorted_index))
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
