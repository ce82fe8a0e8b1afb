"""How many frequencies spectral layers keep."""

from __future__ import annotations

__all__ = ["PAPER_MODES", "modes_for"]

# What the paper keeps, in any dimension.
PAPER_MODES = 8


def modes_for(modes: int | None, dim: int) -> int:
    """Non-negative frequencies on every space axis.

    Args:
        modes: what the settings say; ``None`` for 16 in one dimension, where they
            cost little, and 8 in more.
        dim: space dimensions.
    """
    return modes or (2 * PAPER_MODES if dim == 1 else PAPER_MODES)
