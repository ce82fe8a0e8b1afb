"""Numbers such as -9999 that mark missing values in files that do not declare them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.fields import Fields
from nfsgeo.data.io.roles import Columns
from nfsgeo.data.io.table_marks import check_marks
from nfsgeo.data.lazy import Key, deferred
from nfsgeo.errors import UserError

__all__ = ["MISSING", "with_marks", "without_marks_among"]

MISSING = "missing"  # kind of the marks among the columns of users
# Samples and values of a field that are looked at, at most.
SAMPLES, VALUES = 256, 1_000_000


def without_marks_among(columns: Columns | None) -> tuple[Columns | None, list[str]]:
    """Split the marks of missing values from what users tell of columns."""
    if not columns or MISSING not in columns:
        return columns, []
    others = {kind: names for kind, names in columns.items() if kind != MISSING}
    return others, [str(mark).strip() for mark in np.ravel(columns[MISSING])]


def with_marks(fields: Fields, marks: Sequence[str], *, ask: bool) -> Fields:
    """Make the values missing that are one of the marks, and ask about others.

    Args:
        fields: Fields of a file.
        marks: Numbers; an empty text says that all other numbers are values.
        ask: Whether to look for other marks.

    Raises:
        UserError: A mark is no number, or numbers far from all others seem to be marks.
    """
    numbers = [*_numbers(fields, filter(None, marks))]
    names = [*fields.component_names, *fields.forcing_names, *fields.static_names]
    names = [name for name in names if name not in fields.categories]
    if numbers:
        changed = {}
        for name in names:
            values = fields.dataset[name].variable
            dtype = np.result_type(values.dtype, np.float32)
            read = partial(_unmarked, values, np.array(numbers))
            whole = deferred([*values.dims], values.shape, dtype, read, values.attrs)
            changed[name] = fields.dataset[name].copy(data=whole)
        fields = replace(fields, dataset=fields.dataset.assign(changed))
    if ask and "" not in marks:
        looked_at = range(0, fields.num_samples, -(-fields.num_samples // SAMPLES))
        for name in names:
            some = _some(fields, name, looked_at)
            check_marks(fields.path, name, some, marks, of_table=False)
    return fields


def _numbers(fields: Fields, marks: Iterable[str]) -> Iterable[float]:
    for mark in marks:
        with suppress(ValueError):
            yield float(mark)
            continue
        given = f"{fields.path} with missing={mark}"
        raise UserError(given, "a number that marks missing values", "change it")


def _unmarked(values: Variable, numbers: NDArray[Any], key: Key) -> NDArray[Any]:
    here: NDArray[Any] = values[key].values
    # No integer equals 1e20 or -9999.5, also after rounding.
    alike = numbers.astype(here.dtype) if here.dtype.kind == "f" else numbers
    return np.where(np.isin(here, alike), np.float32(np.nan), here)


def _some(fields: Fields, name: str, samples: Sequence[int]) -> NDArray[Any]:
    """Values of a field in some samples, at the first time steps of each."""
    points = max(map(fields.num_points, samples))
    steps = slice(max(1, VALUES // (points * len(samples))))
    parts = [fields.read_values([name], s, steps).ravel() for s in samples]
    return np.concatenate(parts)
