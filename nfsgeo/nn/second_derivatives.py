"""Second derivatives of functions whose gradients are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["twice_differentiable"]

Backward = Callable[..., tuple[Any, ...]]


def twice_differentiable(
    reference: Callable[..., Tensor],
) -> Callable[[Backward], Backward]:
    """Decorates the ``backward`` of a fast path, in place of ``once_differentiable``.

    Where gradients are to be differentiated in turn (``create_graph=True``), they are
    those of the plain ``reference``, of which torch knows all derivatives.

    Args:
        reference: called with the arguments of ``forward``, which sets ``ctx.inputs``
            to a function that gives them.
    """

    def decorate(backward: Backward) -> Backward:
        def either(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
            if not torch.is_grad_enabled():
                return backward(ctx, grad)
            inputs, found = list(ctx.inputs(*ctx.saved_tensors)), {}
            for i, needed in enumerate(ctx.needs_input_grad):
                if needed:  # A view, since one tensor may be several arguments.
                    inputs[i] = found[i] = inputs[i].view_as(inputs[i])
            gradients = torch.autograd.grad(
                reference(*inputs), list(found.values()), grad, create_graph=True
            )
            by_argument = dict(zip(found, gradients, strict=True))
            return tuple(by_argument.get(i) for i in range(len(inputs)))

        return either

    return decorate
