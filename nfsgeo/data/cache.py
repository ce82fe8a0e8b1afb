"""What was made before, kept within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Cache"]


class Cache:
    """Objects by their key; those unused for longest go first.

    Each process has a cache of its own: a copy is empty.

    Args:
        max_bytes: Memory for all of them, in bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self._used = max_bytes, 0
        self._made: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __reduce__(self) -> tuple[type[Cache], tuple[int]]:
        return Cache, (self.max_bytes,)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returned for the key before, or returns now.

        It tells its size as ``nbytes``.
        """
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key][0]
        made = make()
        self._made[key] = made, made.nbytes
        self._used += made.nbytes
        while self._used > self.max_bytes:
            self._used -= self._made.popitem(last=False)[1][1]
        return made
