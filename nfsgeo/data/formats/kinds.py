"""Static inputs, fields to predict, forcings or neither, where files have no roles.

Names tell: ``a`` and ``a_NAME`` are static, ``forcing_NAME`` is known ahead. Else what
never changes in time is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from xarray import Variable

from nfsgeo.data.fields import FORCING, STATIC, Fields, Floats
from nfsgeo.data.formats.columns import Columns, ask_kind, kinds_of
from nfsgeo.errors import UserError

__all__ = ["bare", "is_static", "marked_names", "with_kinds"]

MARK = "a_"
STEPS = 8  # read at once in search of what never changes


def is_static(name: str) -> bool:
    """Whether a named field is a static input: ``a``, ``a_permeability``, ..."""
    return name == "a" or name.startswith(MARK)


def bare(name: str) -> str:
    """The name of a static input without its mark; ``a`` itself stays."""
    return name.removeprefix(MARK) or name


def with_kinds(
    fields: Fields,
    columns: Columns | None,
    noun: str = "array",
    *,
    ask: bool = True,
    only: bool = False,
) -> Fields:
    """With arrays as they are told: static inputs, fields or nothing.

    Args:
        fields: Of which ``NAME_0``, ``NAME_1``, ... are one ``"array"`` ``NAME``.
        columns: Names that are ``static``, a ``field`` or to ``ignore``.
        noun: What they are names of; anything but ``"array"`` is by itself.
        ask: Whether to ask about arrays without a kind that never change in time.
        only: Whether all others are left out where one that changes is a ``field``.

    Raises:
        UserError: An array that is not told of differs between points and never in
            time, or a static input changes.
    """
    names = [*fields.component_names, *fields.static_names]
    array = {}
    for name in names:
        stem = re.sub(r"_\d+$", "", name)
        one = noun == "array" and stem not in names and f"{stem}_0" in names
        array[name] = stem if one else name
    told, rest = kinds_of(fields.path, [*array.values(), *names], columns or {})
    if rest:
        given = f"columns with {', '.join(rest)}= of {fields.path}"
        raise UserError(given, "static=, field= or ignore=", "change it")
    kinds = {name: told.get(name, told.get(array[name])) for name in names}
    timed = [name for name in names if "time" in fields.dataset[name].dims]
    several = len(fields.times) > 1
    wanted = [n for n in timed if kinds[n] != "ignore" and (ask or kinds[n])]
    still = _still(fields, wanted) if several else {}
    moving = {array[name] for name in names if name not in still}
    if only and any(kinds[n] == "field" and array[n] in moving for n in names):
        kinds = {name: kind or "ignore" for name, kind in kinds.items()}
    static = [n for n in timed if kinds[n] == "static" or n in fields.static_names]
    if moved := [n for n in static if array[n] in moving and several]:
        raise UserError(
            f"{fields.path} with {', '.join(moved)}, which changes in time",
            "the same values at all time steps of a static input",
            "rename it if it is a field to predict",
        )
    asked = [n for n, differs in still.items() if differs and not kinds[n]]
    asked = [array[n] for n in asked if n not in static and array[n] not in moving]
    if asked:
        raise ask_kind(fields.path, list(dict.fromkeys(asked)), noun)
    ignored = [name for name, kind in kinds.items() if kind == "ignore"]
    dataset = fields.dataset.drop_vars(ignored).copy()
    for name in (n for n in names if kinds[n] == "static" or n in static):
        dataset = dataset.assign({name: _first(dataset[name].variable)})
        dataset[name].attrs["role"] = STATIC
    return replace(fields, dataset=dataset)


def _first(values: Variable) -> Variable:
    """The first value in time that is not missing."""
    if "time" not in values.dims:
        return values
    first = values.isel(time=0)
    for step in range(1, values.sizes["time"]):
        if not np.isnan(first.values).any():
            break
        first = first.where(first.notnull(), values.isel(time=step))
    first.attrs = dict(values.attrs)
    return first


def _still(fields: Fields, names: Sequence[str]) -> dict[str, bool]:
    """Which of them never change in time, though a point has several values, and
    whether they differ between points.
    """
    differ, seen = dict[str, set[float]](), set[str]()
    low: Floats
    high: Floats
    for sample in range(fields.num_samples if names else 0):
        low = high = np.full(1, np.nan, np.float32)
        count = np.zeros(1, np.int64)
        for start in range(0, len(fields.times), STEPS):
            stop = min(start + STEPS, len(fields.times))
            some = fields._read(names, sample, slice(start, stop), None)
            low = np.fmin(low, np.fmin.reduce(some, 1))
            high = np.fmax(high, np.fmax.reduce(some, 1))
            count = count + np.isfinite(some).sum(1)
            same = ((low == high) | np.isnan(low)).all(axis=0)
            names = [name for name, each in zip(names, same, strict=True) if each]
            low, high, count = low[:, same], high[:, same], count[:, same]
            if not names:
                return {}
        for name, values, num in zip(names, low.T, count.T, strict=True):
            ends = {np.fmin.reduce(values), np.fmax.reduce(values)}
            differ[name] = differ.get(name, set()) | {e for e in ends if e == e}
            seen |= {name} if num.max() > 1 else set()
    return {name: len(differ[name]) > 1 and name in seen for name in names}


def marked_names(fields: Fields, out: Path, taken: Sequence[str]) -> list[str]:
    """Names of components, forcings and static inputs, in this order, with their marks.

    Args:
        fields: What to write.
        out: The file to make, for messages.
        taken: Names that the format needs itself.

    Raises:
        UserError: A name is taken, or would be read back as another kind.
    """
    fine, forcings = fields.component_names, fields.forcing_names
    static = [n if n == "a" else MARK + n for n in fields.static_names]
    names = [*fine, *(FORCING + name for name in forcings), *static]
    for name in (*names, *forcings, *fields.static_names):
        expected = ""
        if name in (*fine, *forcings) and name.startswith(FORCING):
            expected = f"names without {FORCING}, which marks forcings"
        elif name in fine and is_static(name):
            expected = "names without a_, the mark of static inputs"
        elif "/" in name:
            expected = "names without '/', which separates the parts of a path"
        elif name != name.strip() or not name.isprintable() or not name:
            expected = "names of printable characters without blanks at their ends"
        elif name in names and (name in taken or names.count(name) > 1):
            expected = f"names that differ from each other and from {', '.join(taken)}"
        if expected:
            given = f"a field named {name!r} in {out}"
            raise UserError(given, expected, "rename the component or choose .nc")
    return names
