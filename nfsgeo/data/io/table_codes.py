"""Numbers of rows of a table by what is in their cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas

from nfsgeo.data.conventions import Indices

__all__ = ["codes_of", "numbered"]

SOME = 4096  # rows that tell whether most have values of their own


def codes_of(*columns: Any) -> tuple[Indices, int]:
    """Number rows by what is in columns, in the order of their values."""
    codes, num = np.zeros(1, np.int64), 1
    for column in columns:
        if num == len(codes) > 1:
            break  # each row is apart
        more, unique = numbered(column)
        if num == 1:
            codes, num = more, len(unique)
        elif len(unique) > 1:
            # Both are numbered before they can exceed the range of integers.
            codes, both = numbered(codes * len(unique) + more)
            num = len(both)
    return codes, num


def numbered(column: Any) -> tuple[Indices, Any]:
    """Number the values of a column in their order, -1 where there is none."""
    values = np.asarray(column) if column.dtype.kind in "iuf" else np.empty(0)
    if len(values) > SOME:  # what is faster
        whole = values.dtype.kind in "iu"
        if whole and 0 <= values.min() <= values.max() < len(values):
            number = np.cumsum(np.bincount(values) > 0) - 1
            unique = np.flatnonzero(np.diff(number, prepend=-1))
            return number[values], unique.astype(values.dtype)
        some = values[np.random.default_rng(0).integers(len(values), size=SOME)]
        if len(np.unique(some)) > 0.9 * SOME and not np.isnan(values.sum()):
            unique, codes = np.unique(values, return_inverse=True)
            return codes, unique
    return pandas.factorize(column, sort=True)
