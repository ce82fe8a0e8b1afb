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

from nfsgeo.data.checks import finite
from nfsgeo.data.fields import FORCING, STATIC, Fields, Floats
from nfsgeo.data.formats.columns import Columns, ask, kinds_of
from nfsgeo.errors import UserError

__all__ = ["STILL", "is_static", "marked_names", "with_kinds"]

MARK = "a_"
STILL = ("static", "field")  # kinds of what is not gone once a file is read
STEPS = 8  # read at once in search of what never changes


def is_static(name: str) -> bool:
    """Whether a named field is a static input: ``a``, ``a_permeability``, ..."""
    return name == "a" or name.startswith(MARK)


def with_kinds(
    fields: Fields, columns: Columns | None, noun: str = "array", *, asks: bool = True
) -> Fields:
    """With fields as they are told or called: static inputs, to predict, or left out.

    ``columns`` has names that are ``static``, a ``field`` or to ``ignore``. They are
    those of a ``noun``: an ``"array"`` is all of ``NAME_0``, ``NAME_1``, ...; of
    ``"variable"``s all others are left out where one that changes is a ``field``.
    Arrays and columns are static where they are called ``a`` or ``a_NAME``.

    Raises:
        UserError: One that is not told of differs between points and never in time,
            or a static input changes.
    """
    path, names = fields.path, [*fields.component_names, *fields.static_names]
    array = {name: name for name in names}
    if noun == "array":
        stems = {name: re.sub(r"_\d+$", "", name) for name in names}
        whole = {s for s in stems.values() if s not in names and f"{s}_0" in names}
        array = {name: s if s in whole else name for name, s in stems.items()}
    told, rest = kinds_of(path, [*array.values(), *names], columns or {})
    if rest:
        given = f"columns with {', '.join(rest)}= of {path}"
        raise UserError(given, "static=, field= or ignore=", "change it")
    kinds = {name: told.get(name, told.get(array[name], "")) for name in names}
    marks = noun in ("array", "column")
    marked = [n for n in fields.component_names if marks and is_static(n)]
    marked = [name for name in marked if not kinds[name]]
    kinds |= {n: "static" for n in (*marked, *fields.static_names) if not kinds[n]}
    timed = [n for n in names if "time" in fields.dataset[n].dims]
    wanted = [n for n in timed if kinds[n] != "ignore" and (asks or kinds[n])]
    several = len(fields.times) > 1
    still = _still(fields, wanted) if several else {}
    moving = {array[name] for name in names if name not in still}
    if noun == "variable" and any(
        kinds[n] == "field" and array[n] in moving for n in names
    ):
        kinds = {name: kind or "ignore" for name, kind in kinds.items()}
    moved = [n for n in timed if kinds[n] == "static" and array[n] in moving]
    if moved and several:
        given = f"{path} with {', '.join(moved)}, which changes in time"
        wanted_ = "the same values at all time steps of a static input"
        raise UserError(given, wanted_, "rename it if it is a field to predict")
    asked = [array[n] for n, differs in still.items() if differs and not kinds[n]]
    asked = [name for name in dict.fromkeys(asked) if name not in moving]
    if asked:
        which = f"which never change{'s' * (len(asked) == 1)} in time"
        what = "whether that is a static input, a field to predict, or neither"
        say = f"static={asked[0]}, or field={asked[0]}, or ignore={asked[0]}"
        say += ", and likewise the others" * (len(asked) > 1)
        raise ask(path, asked, noun, which, what, say)
    dataset = fields.dataset.drop_vars([n for n in names if kinds[n] == "ignore"])
    for name in (name for name in names if kinds[name] == "static"):
        first = _first(dataset[name].variable, f"{path}: {name}")
        dataset = dataset.assign({name: first})
        dataset[name].attrs["role"] = STATIC
    bare = {name: name.removeprefix(MARK) or name for name in marked}
    bare = {name: short for name, short in bare.items() if short not in dataset}
    return replace(fields, dataset=dataset.rename(bare))


def _first(values: Variable, what: str) -> Variable:
    """The first value in time that is not NaN."""
    if "time" not in values.dims:
        return values.copy(deep=False)
    first = values.isel(time=0)
    for step in range(1, values.sizes["time"]):
        if not np.isnan(first.values).any():
            break
        first = first.where(first.notnull(), values.isel(time=step))
    finite(first.values, what)
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

    Raises:
        UserError: A name is ``taken`` by what ``out`` needs itself, or would be read
            back as another kind.
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
        elif name in names and (name in (*taken, *forcings) or names.count(name) > 1):
            expected = f"names that differ from each other and from {', '.join(taken)}"
        if expected:
            given = f"a field named {name!r} in {out}"
            raise UserError(given, expected, "rename the component or choose .nc")
    return names
