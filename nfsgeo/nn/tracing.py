"""Whether a program is being made of what runs."""

from __future__ import annotations

import torch

__all__ = ["is_traced"]


def is_traced() -> bool:
    """While compiling, exporting or tracing, when plain operators alone are right."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()
