"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["release_memory"]


def release_memory() -> None:
    """Gives memory that was freed back to the system, where that can be told to.

    Tensors whose sizes change from step to step, as the numbers of edges of ever other
    meshes do, leave holes in the heap that the C library of Linux neither fills nor
    gives back by itself.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
