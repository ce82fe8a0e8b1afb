"""Comparison of a fast path with its plain reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.testing import assert_close

__all__ = ["TOLERANCES", "assert_same", "without_zeros"]

M = TypeVar("M", bound=nn.Module)

TOLERANCES: dict[torch.dtype, dict[str, float]] = {
    torch.float32: {"rtol": 2e-5, "atol": 2e-5},
    torch.float64: {"rtol": 1e-10, "atol": 1e-10},
    torch.complex64: {"rtol": 2e-5, "atol": 2e-5},
    torch.complex128: {"rtol": 1e-10, "atol": 1e-10},
}


def assert_same(
    fast: Callable[..., Tensor],
    plain: Callable[..., Tensor],
    inputs: Iterable[Tensor],
    parameters: Iterable[Tensor] = (),
) -> None:
    """Hold a fast path to its plain reference.

    Compares the results, and the gradients of one random linear functional of them
    with respect to the inputs and the parameters, within :data:`TOLERANCES`.

    Args:
        fast: the path under test.
        plain: its reference.
        inputs: arguments of both; floating-point ones are differentiated.
        parameters: tensors that both use, differentiated too.

    Raises:
        AssertionError: where they differ.
    """
    leaves = [
        t.detach().clone().requires_grad_(t.is_floating_point() or t.is_complex())
        for t in inputs
    ]
    differentiable = [t for t in (*leaves, *parameters) if t.requires_grad]
    results, gradients = [], []
    cotangent: Tensor | None = None
    for function in (fast, plain):
        result = function(*leaves)
        if cotangent is None:
            cotangent = torch.randn_like(result)
        results.append(result)
        gradients.append(
            torch.autograd.grad(
                result, differentiable, cotangent, materialize_grads=True
            )
        )
    for a, b in ((results[0], results[1]), *zip(*gradients, strict=True)):
        tolerance = TOLERANCES[a.dtype]
        assert_close(a, b, rtol=tolerance["rtol"], atol=tolerance["atol"])


def without_zeros(module: M) -> M:
    """Draw the parameters that begin at zero, so that all parts have an effect.

    Args:
        module: changed in place, and returned.
    """
    for parameter in module.parameters():
        if not parameter.detach().any():
            nn.init.normal_(parameter, std=0.1)
    return module
