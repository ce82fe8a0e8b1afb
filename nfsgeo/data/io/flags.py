"""Variables that are no quantities: flags of quality, errors, counts, bounds, times.

CF marks flags by ``flag_values`` or ``flag_masks`` (1.11, section 3.5), by a standard
name, and by ``ancillary_variables`` of what they belong to; archives of observations
also by names such as ``TEMP_QC``. They are left out of the fields, with a line. Where
users say ``mask=NAME``, what a flag marks as bad becomes missing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable

from nfsgeo.data.conventions import FLAGS, MASK, SPACE, counts_from_date, field_name
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import left_out
from nfsgeo.data.io.roles import Columns
from nfsgeo.data.lazy import Key, deferred, spread
from nfsgeo.errors import UserError, option

__all__ = ["flag_attrs", "quantities", "with_masks", "with_node_types"]

logger = logging.getLogger(__name__)

FLAGS_OF = "flags_of"  # attribute of a flag, names of the variables that it is about
BITS, LOOKED_AT = "flag_masks", 8  # time steps
FLAGGED = f"flags: {option('columns', 'mask=NAME')} makes missing what one marks as "
FLAGGED += f"bad, {option('columns', 'field=NAME')} predicts it"
SUFFIX = r"_?(qc|qa|qf|q?flags?|quality_?(flags?|level|control)|qartod_\w+)"
SUFFIX += r"(_(agg|tests?|executed|results|flags?|level))?"
NAME = re.compile(rf"(?i)(?P<stem>.*?){SUFFIX}|(qc|qa|qf|flag)_(?P<of>.+)")
STATUS = re.compile(r".*(status|quality)_flag")
BOUNDS = re.compile(r"(?i).*_(bnds|bounds|vertices)")
OTHERS = ("standard_error", "number_of_observations", "detection_minimum")
TIMES = ("time", "forecast_reference_time", "forecast_period")
GOOD = re.compile(
    r"(?i)(probably_|possibly_)?(good|pass(ed)?|ok|valid|best|acceptable|correct)"
    r"(_(data|values?|quality|observations?))?"
)


def _kind_of(
    name: str, variable: Variable, ancillary: Collection[str], *, in_time: bool
) -> str:
    """``"flag"``, or ``"other"`` for what else is no quantity; empty for a quantity.

    An integer with ``flag_values`` that does not change in time is a category.

    Args:
        name: The name of a variable.
        variable: The variable, of which attributes and the type are looked at.
        ancillary: Names of the variables that others call ``ancillary_variables``.
        in_time: Whether it lies along time.
    """
    about = variable.attrs
    words = str(about.get("standard_name", "")).lower().split() or [""]
    stored = np.dtype(variable.encoding.get("dtype") or variable.dtype)
    flagged = not about.keys().isdisjoint((*FLAGS, BITS))
    named = NAME.fullmatch(name) and stored.kind in "iubSUO"
    if STATUS.fullmatch(words[-1]) or (flagged and (in_time or name in ancillary)):
        return "flag"
    if named and (in_time or not flagged):
        return "flag"
    dated = counts_from_date(about.get("units", "")) or stored.kind in "mM"
    other = dated or words[-1] in OTHERS or words[0] in TIMES
    # Cells of UGRID, and coordinates beside those that were chosen, as FVCOM has them.
    other |= str(about.get("cf_role", "")).endswith(("_topology", "_connectivity"))
    other |= name in SPACE and not in_time and name != SPACE[-1]
    return "other" if other or name in ancillary or BOUNDS.fullmatch(name) else ""


def flag_attrs(about: Mapping[Any, Any]) -> dict[str, Any]:
    """The attributes of a flag, with numbers where programs write them as text."""
    attrs = {key: about[key] for key in (*FLAGS, BITS, FLAGS_OF) if key in about}
    for key in attrs.keys() & {FLAGS[0], BITS}:
        texts = np.ravel(attrs[key]).tolist()
        if any(isinstance(text, (str, bytes)) for text in texts):
            numbers = re.findall(r"-?\d+", " ".join(map(str, texts)))
            attrs[key] = [*map(int, numbers)]
    return attrs


def _mask(variable: Variable, owners: list[str]) -> Variable:
    """A flag of ``owners``; characters as whole numbers, or else by their meanings."""
    attrs = {**variable.attrs, FLAGS_OF: " ".join(owners)}
    if variable.dtype.kind not in "OSU":
        flag = variable.copy(deep=False)
        flag.attrs = attrs
        return flag
    text = np.char.strip(np.asarray(variable.values).astype(str))
    words, codes = np.unique(text, return_inverse=True)
    if all(re.fullmatch(r"-?\d+", word) or not word for word in words):
        numbers = np.array([float(word or "nan") for word in words])
    else:
        numbers = np.arange(len(words), dtype="f4")
        attrs |= {FLAGS[0]: numbers.astype("i4"), FLAGS[1]: " ".join(words)}
    return Variable(variable.dims, numbers[codes].reshape(text.shape), attrs)


def with_masks(
    fields: Fields, columns: Columns | None
) -> tuple[Fields, Columns | None]:
    """Make values missing that flags mark as bad, and leave the flags out.

    Args:
        fields: Fields, flags among them.
        columns: Names by kind; ``mask`` has names of flags. ``NAME`` marks as bad what
            its ``flag_meanings`` do not call good, ``NAME:FLAG:FLAG`` these numbers,
            meanings or bits.

    Returns:
        The other fields, and ``columns`` of other kinds.

    Raises:
        UserError: There is no such flag, or it does not tell what is bad.
    """
    columns = columns or {}
    for text in np.ravel(columns.get(MASK, [])).tolist():
        name, *chosen_flags = text.split(":")
        name, dataset = field_name(name)[0], fields.dataset
        if name not in dataset.data_vars:
            given = f"{fields.path} with mask={name}"
            expected = f"one of {', '.join(map(str, dataset.data_vars))}"
            raise UserError(given, expected, "change the name")
        flag = dataset[name].variable
        what = f"{fields.path} with mask={text}"
        pairs, good, meaning = _conditions(what, flag, chosen_flags)
        targets = [n for n in _targets(fields, name) if n != name and n in dataset]
        changed = {}
        for target in targets:
            values = dataset[target].variable
            if not {*flag.dims} <= {*values.dims}:
                given = f"{fields.path} with the flag {name} along {flag.dims}"
                expected = f"those of {target}, {values.dims}, or some of them"
                raise UserError(given, expected, f"leave out mask={name}")
            dtype = np.result_type(values.dtype, np.float32)
            read = partial(_masked, values, spread(flag, values.sizes), pairs, good)
            whole = deferred([*values.dims], values.shape, dtype, read, values.attrs)
            changed[target] = dataset[target].copy(data=whole)
        which = f"{', '.join(targets)} missing where {name} is {meaning}"
        logger.warning("%s: %s", fields.path, which)
        fields = replace(fields, dataset=dataset.assign(changed).drop_vars(name))
    named = {str(name) for names in columns.values() for name in np.ravel(names)}
    flags = [n for n in fields.component_names if n not in named and _marks(fields, n)]
    if flags:
        left_out(fields.path, [f"{', '.join(flags)} ({FLAGGED})"])
        fields = replace(fields, dataset=fields.dataset.drop_vars(flags))
    return fields, {kind: names for kind, names in columns.items() if kind != MASK}


def _marks(fields: Fields, name: str) -> bool:
    """Return whether whole numbers are called as another field, with ``_qc``."""
    if "nfsgeo_layout" in fields.dataset.attrs or not _owner(fields, name):
        return False
    values = fields.read_values([name], 0, slice(0, LOOKED_AT))
    return bool(np.all((values == np.round(values)) | np.isnan(values)))


def _targets(fields: Fields, name: str) -> list[str]:
    """The fields that a flag is about: by attributes, by its name, or else all."""
    if about := fields.dataset[name].attrs.get(FLAGS_OF):
        return str(about).split()
    owner, names = _owner(fields, name), fields.component_names
    return [owner] if owner else [n for n in names if not NAME.fullmatch(n)]


def _owner(fields: Fields, name: str) -> str:
    """The field with the name of a flag, without ``_qc``; empty where there is none."""
    match = NAME.fullmatch(name)
    stem = (match["stem"] or match["of"] or "") if match else ""
    return stem if stem in fields.component_names else ""


def _conditions(
    what: str, flag: Variable, chosen_flags: list[str]
) -> tuple[list[tuple[int, int]], bool, str]:
    """Bits and the value in them of flags, whether these are good, and their text."""
    attrs = flag_attrs(flag.attrs)
    words = str(attrs.get(FLAGS[1], "")).split()
    bits = np.ravel(attrs.get(BITS, [])).tolist()
    values = np.ravel(attrs.get(FLAGS[0], bits)).tolist()
    pairs = [*zip(bits or [-1] * len(values), values, strict=False)]
    pairs = [(int(mask), int(value)) for mask, value in pairs]
    meanings = dict(zip(words, pairs, strict=False))
    listed = ", ".join(f"{value} {word}" for word, (_, value) in meanings.items())
    if good := not chosen_flags and FLAGS[0] in attrs:
        chosen_flags = [word for word in meanings if GOOD.fullmatch(word)]
    if not chosen_flags:
        expected = "to be told which flags mark bad values"
        expected += f", of {listed}" if listed else ""
        todo = "say it by numbers or meanings, as in mask=NAME:3:4"
        raise UserError(what, expected, todo)
    chosen = list[tuple[int, int]]()
    for word in chosen_flags:
        number = int(word) if re.fullmatch(r"-?\d+", word) else None
        if word in meanings:
            fits = {meanings[word]}
        elif bits:  # a number may be a value in several of them
            fits = {pair for pair in pairs if pair[1] == number}
        else:
            fits = {(-1, number)} if number is not None else set()
        if len(fits) != 1:
            numbers = "" if bits else "numbers, or "
            listed = listed or ", ".join(str(value) for _, value in pairs)
            expected = f"{numbers}one of {listed or 'the meanings, which it lacks'}"
            raise UserError(what, expected, "change it")
        chosen += fits
    return chosen, good, "not " * good + " or ".join(chosen_flags)


def _masked(
    values: Variable, flag: Variable, pairs: Any, good: bool, key: Key
) -> NDArray[Any]:
    marks = flag[key].values
    absent = np.isnan(marks) if marks.dtype.kind == "f" else np.False_
    whole = np.where(absent, 0, marks).astype(np.int64)
    matches = np.logical_or.reduce([(whole & bits) == value for bits, value in pairs])
    bad = ~(matches & ~absent) if good else matches & ~absent
    return np.where(bad, np.float32(np.nan), values[key].values)


def quantities(
    path: Path,
    dataset: Dataset,
    kinds: Mapping[str, str],
    coordinates: set[str],
    time: str | None,
) -> Dataset:
    """The data set without what is no quantity, of which a line tells, and, if users
    choose a field that changes in time, without others that do.
    """
    chosen = [name for name, kind in kinds.items() if kind == "field"]
    choice = time and any(time in dataset[name].dims for name in chosen)
    about = {n: v.attrs.get("ancillary_variables") for n, v in dataset.items()}
    flags_of = {n: str(listed or "").split() for n, listed in about.items()}
    ancillary = {flag for flags in flags_of.values() for flag in flags}
    meshes = [v.attrs for v in dataset.values() if "topology_dimension" in v.attrs]
    parts = [part for attrs in meshes for part in attrs.items()]
    cells = {name for key, name in parts if key.endswith("_connectivity")}
    unread: dict[str, list[str]] = {"": [], "flag": [], "other": []}
    for name, values in dataset.data_vars.items():
        in_time = time in values.dims
        if kinds.get(str(name)) == MASK:
            owners = [str(n) for n, flags in flags_of.items() if name in flags]
            dataset = dataset.assign({name: _mask(values.variable, owners)})
        elif name not in kinds and name not in coordinates:
            kind = _kind_of(str(name), values.variable, ancillary, in_time=in_time)
            kind = "other" if name in cells else kind
            if kind or (choice and in_time):
                unread["" if choice and in_time else kind].append(str(name))
    rest = dataset.drop_vars([name for names in unread.values() for name in names])
    others = [*unread["other"], *_terms(dataset)]
    other = f"no fields by CF, {option('columns', 'field=NAME')} predicts one"
    reasons = (unread["flag"], FLAGGED), (others, other)
    left_out(path, [f"{', '.join(names)} ({why})" for names, why in reasons if names])
    if unread["flag"] and not any(v.dtype.kind in "biuf" for v in rest.values()):
        given = f"{path} with no fields beside flags, {unread['flag'][0]}"
        todo = f"say it: {option('columns', 'field=' + unread['flag'][0])}"
        raise UserError(given, "a field to predict, or to be told that one is", todo)
    return rest


def _terms(dataset: Dataset) -> list[str]:
    """Coordinates along several dimensions that formulas or cell measures name."""
    keys, variables = ("formula_terms", "cell_measures"), dataset.variables.values()
    texts = [str(v.encoding.get(key, "")) for v in variables for key in keys]
    terms = {*re.findall(r": *(\w+)", " ".join(texts))} & {*dataset.coords}
    return sorted(name for name in terms if dataset[name].ndim > 1)


def with_node_types(fields: Fields, names: Mapping[int, str] | None) -> Fields:
    """The fields with names of the node types, such as ``{1: "wall"}``.

    Blanks in names become underscores, as ``flag_meanings`` of CF are separated by
    blanks. Types without a name keep their numbers.

    Raises:
        UserError: There are no node types, or the names are not those of whole numbers.
    """
    if not names:
        return fields
    if fields.node_types is None:
        given = f"names of node types of {fields.path}, which has none"
        todo = "give the types as static={'node_type': types}, or data.node_type"
        raise UserError(given, "a static input node_type of whole numbers", todo)
    types = fields.dataset[fields.node_types]
    texts = ["_".join(str(name).split()) for name in names.values()]
    whole = all(isinstance(number, int | np.integer) for number in names)
    if not (whole and all(texts)):
        todo = "correct it, for example {0: 'interior', 1: 'wall'}"
        raise UserError(f"node_types {dict(names)}", "names by whole numbers", todo)
    types.attrs[FLAGS[0]] = np.array([*names], types.dtype)
    types.attrs[FLAGS[1]] = " ".join(texts)
    return replace(fields)  # categories are read anew
