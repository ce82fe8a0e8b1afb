"""Which records to show, and what to call their files."""

from __future__ import annotations

import numpy as np

__all__ = ["evenly", "slug"]


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` records, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})


def slug(name: str) -> str:
    """A name with nothing in it that a file name cannot hold."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name) or "field"
