"""Real dense arrays of MATLAB files of version 5.

SciPy reads more kinds of arrays, but a damaged file makes it crash the interpreter
(1.17: an index from the file is not checked), where a user is owed an error.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrays", "shapes"]

MATRIX, COMPRESSED = 14, 15
# Types of stored numbers, and classes of the arrays that they become.
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4"}
TYPES |= {9: "f8", 12: "i8", 13: "u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4"}
CLASSES |= {13: "u4", 14: "i8", 15: "u8"}
COMPLEX = 0x800
# Flags, dimensions and name fit into this; enough to tell an array's shape.
HEAD_BYTES = 512

Bytes = bytes | memoryview


class Head(NamedTuple):
    """What precedes the numbers of an array."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of each real dense array.

    Raises:
        ValueError: The file is not of this format, or damaged.
    """
    return {head.name: head.shape for head, _, _ in _matrices(path)}


def arrays(path: Path, *names: str) -> dict[str, NDArray]:
    """The named arrays that are there, in memory.

    Raises:
        ValueError: The file is not of this format, or damaged.
        zlib.error: A compressed array is damaged.
    """
    found = {}
    for head, order, payload in _matrices(path):
        if head.name in names:
            found[head.name] = _numbers(head, order, _inflated(payload))
    return found


def _matrices(path: Path) -> Iterator[tuple[Head, str, tuple[int, Bytes]]]:
    """Head, byte order and (kind, content) of each array of the file."""
    with path.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    orders = {b"IM": "<", b"MI": ">"}
    if len(content) < 128 or bytes(content[126:128]) not in orders:
        raise ValueError("no header of a MATLAB file")
    order = orders[bytes(content[126:128])]
    position = 128
    while position < len(content):
        kind, start, stop, after = _element(content, position, order)
        position = stop if kind == COMPRESSED else after
        if kind in (MATRIX, COMPRESSED):
            payload = kind, content[start:stop]
            head = _head(_inflated(payload, HEAD_BYTES), order)
            if head is not None:
                yield head, order, payload


def _inflated(payload: tuple[int, Bytes], most: int = 0) -> Bytes:
    """An array's bytes, of a compressed one the first ``most`` or all."""
    kind, content = payload
    if kind == MATRIX:
        return content
    stream = zlib.decompressobj()
    inner = stream.decompress(content, most)
    if not most and not stream.eof:
        raise ValueError("a compressed array that is cut off")
    return inner[8:]


def _element(content: Bytes, position: int, order: str) -> tuple[int, int, int, int]:
    """Kind, start and stop of the element at a position, and where the next is."""
    if position + 8 > len(content):
        raise ValueError("an array that is cut off")
    kind, size = struct.unpack_from(order + "II", content, position)
    if kind >> 16:
        # A small element: its size shares the kind's word, up to 4 bytes follow.
        return kind & 0xFFFF, position + 4, position + 4 + (kind >> 16), position + 8
    start = position + 8
    return kind, start, start + size, start + size + -size % 8


def _head(inner: Bytes, order: str) -> Head | None:
    """Head of an array, None for one that is not real, dense and numeric."""
    _, start, _, after = _element(inner, 0, order)
    (flags,) = struct.unpack_from(order + "I", inner, start)
    _, start, stop, after = _element(inner, after, order)
    shape = tuple(np.frombuffer(inner[start:stop], order + "i4").tolist())
    _, start, stop, after = _element(inner, after, order)
    dtype = CLASSES.get(flags & 0xFF)
    if dtype is None or flags & COMPLEX or min(shape, default=-1) < 0:
        return None
    return Head(bytes(inner[start:stop]).decode("ascii"), shape, dtype, after)


def _numbers(head: Head, order: str, inner: Bytes) -> NDArray:
    kind, start, stop, _ = _element(inner, head.start, order)
    if kind not in TYPES:
        raise ValueError(f"{head.name} with numbers of unknown type {kind}")
    stored = np.dtype(order + TYPES[kind])
    if not stop - start == stored.itemsize * math.prod(head.shape) <= len(inner):
        raise ValueError(f"{head.name} of shape {head.shape} with other than its size")
    values = np.frombuffer(inner[start:stop], stored).astype(head.dtype)
    return values.reshape(head.shape, order="F")
