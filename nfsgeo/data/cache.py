"""A cache within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Cache"]


class Cache:
    """Objects by their keys; those unused for longest are dropped first.

    Each process has a cache of its own: a copy is empty.

    Args:
        max_bytes: Size of all objects, which have an attribute ``nbytes``.
        at_least: Number of objects that are kept whatever their size.
    """

    def __init__(self, max_bytes: int, at_least: int = 0) -> None:
        self.max_bytes, self.at_least, self._used = max_bytes, at_least, 0
        self._made: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __reduce__(self) -> tuple[type[Cache], tuple[int, int]]:
        return Cache, (self.max_bytes, self.at_least)

    def holds(self, num: int) -> bool:
        """Return whether as many objects as large as those kept would be kept."""
        return num * self._used <= self.max_bytes * len(self._made)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the object of a key, which ``make`` returns where there is none."""
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key][0]
        made = make()
        self._made[key] = made, made.nbytes
        self._used += made.nbytes
        while self._used > self.max_bytes and len(self._made) > self.at_least:
            self._used -= self._made.popitem(last=False)[1][1]
        return made
