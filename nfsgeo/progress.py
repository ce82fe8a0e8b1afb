"""Reports of the progress of long computations."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

# Called with what is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
