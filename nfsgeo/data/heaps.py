"""Damage on which the HDF5 library never returns."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = ["check_heaps"]

SIGNATURE = b"GCOL\x01\0\0\0"  # of a global heap, where strings of attributes lie
SEARCHED = 1 << 26  # bytes from the start of a file; its attributes come first


def check_heaps(path: Path) -> None:
    """Refuses a file with an object in a global heap that has no size.

    HDF5 goes from one object of a heap to the next by their sizes, and would stay at
    such an object for ever. Only the start of large files is looked at. (HDF5 File
    Format Specification, III.E.)

    Raises:
        UserError: There is such an object.
    """
    with path.open("rb") as file:
        if not file.read(1):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            searched = min(len(content), SEARCHED)
            start = content.find(SIGNATURE, 0, searched)
            while start >= 0:
                if _stays(content, start):
                    raise UserError(
                        f"{path} (damaged global heap)", "a whole file", "replace it"
                    )
                start = content.find(SIGNATURE, start + 1, searched)


def _stays(content: mmap.mmap, start: int) -> bool:
    """Whether a walk through the heap that starts there comes to no end."""
    if start + 16 > len(content):
        return False
    (size,) = struct.unpack_from("<Q", content, start + 8)
    end = min(start + size, len(content))
    place = start + 16
    while place + 16 <= end:
        number, _, _, length = struct.unpack_from("<HHIQ", content, place)
        # The size of free space counts its own header; HDF5 adds up 64 bits.
        step = length if number == 0 else (16 + -(-length // 8) * 8) % (1 << 64)
        if step == 0:
            return True
        place += step
    return False
