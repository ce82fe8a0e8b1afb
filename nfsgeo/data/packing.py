"""Copies staged samples into a file, compressed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from nfsgeo.data.disk import check_room
from nfsgeo.data.layout import CHUNK_BYTES, compressed

__all__ = ["pack_field"]


def pack_field(
    source: h5py.Dataset,
    file: h5py.File,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
) -> h5py.Dataset:
    """Copies a field, sample by sample, to ``/fields``, under its own name.

    Args:
        source: ``u`` ``[N, T, *S, C]``, in chunks of some records of a sample; or
            ``a`` ``[N, *S, C]``, a chunk each.
        file: Where to.
        path: The name that it will have, for messages.
        progress: Called with the samples packed and their number.

    Raises:
        UserError: The disk has no room for all of it.
        OSError: The disk has filled up.
    """
    num, name = len(source), source.name.strip("/")
    record, rows = 4 * int(np.prod(source.shape[2:])), source.shape[1]
    if name == "u":
        rows = min(rows, max(1, CHUNK_BYTES // record))
    chunks = (1, rows, *source.shape[2:])
    target = compressed(file, f"fields/{name}", source.shape, chunks)
    for sample in range(num):
        target[sample] = source[sample]
        if sample == 0:  # the others will be about as large
            target.flush()
            check_room(path, target.id.get_storage_size() * (num - 1))
        if progress is not None:
            progress(sample + 1, num)
    target.flush()
    return target
