"""How much work a repetition is, and how fast this machine could do it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# Sides of the matrices, and numbers to copy: far more than the caches hold.
SIDE, NUMBERS = {"cpu": 1536, "cuda": 8192}, {"cpu": 2**25, "cuda": 2**28}
REPEATS = 5
ATEN = torch.ops.aten
GATHERS = (ATEN.index_select, ATEN.gather, ATEN.index, ATEN.embedding)
SPARSE_PRODUCTS = (ATEN.mm, ATEN.addmm, ATEN.addmm_)
# Move nothing, though their results are not views by their signatures.
SILENT = (
    ATEN.empty,
    ATEN.empty_like,
    ATEN.new_empty,
    ATEN.new_empty_strided,
    ATEN.sparse_compressed_tensor,
)


class Amount(NamedTuple):
    """Work of one repetition.

    Attributes:
        flops: Floating-point operations of matrix products, Fourier transforms and
            sparse products; those of elementwise functions are not counted.
        nbytes: Bytes that its operators read and write, each on its own. An operator
            that gathers reads what it gives.
    """

    flops: float
    nbytes: float


class Rates(NamedTuple):
    """What one thread, or a device, reaches at what it does best.

    Attributes:
        flops: Floating-point operations of a large matrix product, per second.
        nbytes: Bytes that a copy reads and writes, per second.
    """

    flops: float
    nbytes: float


class Count(TorchDispatchMode):
    """Counts the operators that run in its context; see :class:`Amount`."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = self.nbytes = 0.0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not _moves_nothing(func):
            given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
            made = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
            written = sum(map(_nbytes, made))
            read = sum(map(_nbytes, given))
            if func.overloadpacket in GATHERS:
                read = min(read, written + _nbytes(given[-1]))
            self.nbytes += read + written
            self.flops += _flops(func.overloadpacket, given, made, args, kwargs or {})
        return out

    @property
    def amount(self) -> Amount:
        """What was counted so far."""
        return Amount(self.flops, self.nbytes)


def machine_rates(device: str) -> Rates:
    """Rates of this machine, the best of a few repetitions each."""
    size, numbers = SIDE[device], NUMBERS[device]
    matrix = torch.rand(size, size, device=device)
    product = torch.empty_like(matrix)
    seconds = _least(lambda: torch.mm(matrix, matrix, out=product), device)
    flops = 2 * size**3 / seconds
    values = torch.rand(numbers, device=device)
    copy = torch.empty_like(values)
    seconds = _least(lambda: copy.copy_(values), device)
    return Rates(flops, 2 * values.nbytes / seconds)


def _least(work: Callable[[], object], device: str) -> float:
    found = []
    for _ in range(REPEATS + 1):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found[1:])


def _moves_nothing(func: Any) -> bool:
    if func.overloadpacket in SILENT:
        return True
    aliases = [each.alias_info for each in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _nbytes(tensor: Tensor) -> int:
    if tensor.layout == torch.sparse_csr:
        parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        return sum(part.nbytes for part in parts)
    # A number that is expanded is in memory once.
    size = tensor.numel() * tensor.element_size()
    return min(size, tensor.untyped_storage().nbytes())


def _flops(
    operator: Any,
    given: Sequence[Tensor],
    made: Sequence[Tensor],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> float:
    sparse = [each for each in given if each.layout == torch.sparse_csr]
    if sparse:
        # Products of a sparse and a dense matrix, or sampled where one has entries.
        dense = [each for each in given if each.layout == torch.strided]
        if operator not in (*SPARSE_PRODUCTS, ATEN.sparse_sampled_addmm):
            return 0.0
        columns = dense[-1].size(0 if operator == ATEN.sparse_sampled_addmm else 1)
        return 2.0 * sparse[-1].values().numel() * columns
    if operator in (ATEN._fft_c2c, ATEN._fft_r2c, ATEN._fft_c2r):
        # 5 n log2 n for a complex transform of n numbers, half of it for a real one.
        real = made[0] if operator == ATEN._fft_c2r else given[0]
        cost = 5.0 if operator == ATEN._fft_c2c else 2.5
        length = math.prod(real.size(dim) for dim in args[1])
        return cost * real.numel() * math.log2(max(length, 2))
    if operator in flop_registry:
        kept = {key: value for key, value in kwargs.items() if key != "out"}
        return float(flop_registry[operator](*args, **kept, out_val=made[0]))
    return 0.0
