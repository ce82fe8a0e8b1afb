"""How many frequencies spectral layers keep."""

from __future__ import annotations

from nfsgeo.models.problem import Problem

__all__ = ["PAPER_MODES", "modes_for"]

# What the paper keeps, in any dimension.
PAPER_MODES = 8
LINE_MODES = 64


def modes_for(modes: int | None, problem: Problem) -> int:
    """Non-negative frequencies on every space axis.

    Args:
        modes: what the settings say; ``None`` for 64 in one dimension, where they
            cost little, or half as many as points, and 8 in more dimensions.
        problem: dimensions and number of points.
    """
    if problem.domain.dim > 1:
        return modes or PAPER_MODES
    return modes or max(1, min(LINE_MODES, problem.num_points // 2))
