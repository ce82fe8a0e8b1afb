"""Static inputs, fields to predict or neither, as somebody says where files do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nfsgeo.data.fields import STATIC, Fields
from nfsgeo.data.formats.columns import Columns, ask_kind, kinds_of
from nfsgeo.errors import UserError

__all__ = ["with_kinds"]

STEPS = 8  # read at once in search of what never changes


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
    wanted = [n for n in timed if kinds[n] != "ignore" and (ask or kinds[n])]
    still = _still(fields, wanted) if len(fields.times) > 1 else {}
    moving = {array[name] for name in names if name not in still}
    if only and any(kinds[n] == "field" and array[n] in moving for n in names):
        kinds = {name: kind or "ignore" for name, kind in kinds.items()}
    static = [n for n in timed if kinds[n] == "static" or n in fields.static_names]
    if moved := [n for n in static if array[n] in moving and len(fields.times) > 1]:
        raise UserError(
            f"{fields.path} with {', '.join(moved)}, which changes in time",
            "the same values at all time steps of a static input",
            "rename it if it is a field to predict",
        )
    open_ = [n for n, differs in still.items() if differs and not kinds[n]]
    asked = [array[n] for n in open_ if n not in static and array[n] not in moving]
    if asked:
        raise ask_kind(fields.path, list(dict.fromkeys(asked)), noun)
    ignored = [name for name, kind in kinds.items() if kind == "ignore"]
    dataset = fields.dataset.drop_vars(ignored).copy()
    for name in (n for n in names if kinds[n] == "static" or n in static):
        first = dataset[name].isel(time=0, drop=True, missing_dims="ignore")
        dataset = dataset.assign({name: first})
        dataset[name].attrs["role"] = STATIC
    return replace(fields, dataset=dataset)


def _still(fields: Fields, names: Sequence[str]) -> dict[str, bool]:
    """Which of them never change in time, and whether they differ between points."""
    differ = dict[str, set[float]]()
    for sample in range(fields.num_samples if names else 0):
        first = fields._read(names, sample, slice(0, 1), None)
        for start in range(0, len(fields.times), STEPS):
            stop = min(start + STEPS, len(fields.times))
            some = fields._read(names, sample, slice(start, stop), None)
            some = np.concatenate([first, some], axis=1)
            first, last = (f.reduce(some, 1, keepdims=True) for f in (np.fmin, np.fmax))
            same = ((first == last) | np.isnan(first)).all(axis=(0, 1))
            names = [name for name, each in zip(names, same, strict=True) if each]
            first = first[..., same]
            if not names:
                return {}
        for name, values in zip(names, first[:, 0].T, strict=True):
            ends = np.fmin.reduce(values), np.fmax.reduce(values)
            differ[name] = differ.get(name, set()) | {*ends} - {np.nan}
    return {name: len(differ[name]) > 1 for name in names}
