"""Roles of columns, arrays and variables: by choice, by name, or asked about.

Names tell what :mod:`nfsgeo.data.conventions` says. Masks, which are booleans or bytes
of zeros and ones, are static inputs as well. What else never changes in time is asked
about.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from xarray import DataArray, Variable

from nfsgeo.data.checks import check_distinct, finite
from nfsgeo.data.conventions import (
    COLUMN_NAMES,
    KINDS,
    KNOWN,
    LATITUDE,
    LONGITUDE,
    MARK,
    MASK,
    NODE_TYPE,
    PARAMETER,
    SHOWN,
    SPACE,
    STATIC,
    UNDECIDED,
    bare_name,
    field_name,
    is_static,
    listed,
    role_of,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.labelled import plain_name, whole_numbers
from nfsgeo.data.io.timed_names import expanded
from nfsgeo.errors import UserError, option

Names = Sequence[str]
Roles = dict[str, str]
Columns = Mapping[str, str | Names]  # the column of each role, and those of each kind

logger = logging.getLogger(__name__)

STEPS = 8  # read at once in search of what never changes


def chosen(path: Path, names: Names, columns: Columns | None) -> tuple[Roles, Roles]:
    """Return the kind of each column, and the column of each role, as a user chose.

    An empty name tells that no column has the role.

    Raises:
        UserError: A name is not there, or told twice; or there is no such role.
    """
    lists = {k: [v] if isinstance(v, str) else v for k, v in (columns or {}).items()}
    if MASK in lists:  # NAME:FLAG:FLAG
        lists[MASK] = [name.partition(":")[0] for name in lists[MASK]]
    named = [name for several in lists.values() for name in several if name]
    check_distinct(f"columns of {path}", named)
    if wrong := lists.keys() - {*COLUMN_NAMES, *KINDS, MASK}:
        expected = f"one of {', '.join([*COLUMN_NAMES, MASK, *KINDS])} before the ="
        todo = "change it; all other columns are fields"
        raise UserError(f"columns with {min(wrong)}=", expected, todo)
    for name in {*named}.difference(names):
        expected = f"one of {listed(names)}"
        raise UserError(f"no column {name!r} in {path}", expected, "change the name")
    roles = {role: lists[role][0] for role in COLUMN_NAMES if role in lists}
    kinds = {n: kind for kind in (*KINDS, MASK) for n in lists.get(kind, ())}
    return kinds, roles


def roles_of(
    path: Path,
    names: Names,
    user_roles: Mapping[str, str] | None = None,
    apparent: Mapping[str, str] | None = None,
) -> Roles:
    """The column of each role that there is, by role.

    Args:
        path: The file, for messages.
        names: Names of all columns.
        user_roles: Column of each role that a user tells, empty for none.
        apparent: Role of each column that has one; None where the names tell it.

    Raises:
        UserError: Two may have a role, or there are no coordinates.
    """
    user_roles = user_roles or {}
    apparent = {n: role_of(n) for n in names} if apparent is None else apparent
    roles = {role: name for role, name in user_roles.items() if name}
    for role in (role for role in COLUMN_NAMES if role not in user_roles):
        fits = [n for n, r in apparent.items() if r == role and n not in roles.values()]
        ys = [name for name in apparent if apparent[name] == "y"]
        if len(fits) > 1:
            what = f"coordinate {role}" if role in "xyz" else f"the {role}"
            which, says = f"each of which may be {what}", [f"{role}={fits[0]}"]
            if role == "x" and len(ys) > 1 and "y" not in user_roles:
                says = [f"x={x},y={y}" for x, y in zip(fits, ys, strict=False)]
                fits += ys
            raise ask(path, fits, which, f"which is {what}", *says)
        if fits:
            roles[role] = fits[0]
    space = "".join(role for role in "xyz" if role in roles)
    if not space or not "xyz".startswith(space):
        likely = {"x": "COLUMN", "y": "COLUMN", "time": "COLUMN"}
        likely |= {r: n for r, n in likely_columns(names).items() if r not in roles}
        if "COLUMN" not in (likely["x"], likely["y"]) and likely["time"] == "COLUMN":
            del likely["time"]  # as of a steady field
        say = ",".join(f"{role}={name}" for role, name in likely.items())
        todo = f"name them: {option('columns', say)}, "
        todo += "or, in a table with a column for each station, or of their names, "
        todo += "time=COLUMN,points=FILE, a table of these and of coordinates"
        given = f"{path} with {listed(names)}"
        raise UserError(given, "coordinates x[, y[, z]] among the columns", todo)
    return roles


def likely_columns(names: Names, roles: str | Names = ("x", "y", "time")) -> Roles:
    """Columns whose names have that of a role in them, as ``gauge_lon`` and ``XLONG``,
    or number the axes, as ``Points:0``; with z where its name is like that of x.
    """
    parted = {name: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower() for name in names}
    words = {name: re.split(r"[^a-z]+", parted[name]) for name in names}
    columns = dict[str, str]()
    for axis, role in enumerate(roles):
        numbered = re.compile(rf"(points?|coord\w*?|pos(itions?)?)\W?_?{axis}")
        called = {*COLUMN_NAMES[role], f"{role}coord"}
        fits = [n for n in names if {*words[n]} & called]
        ends = tuple(called & {*LONGITUDE, *LATITUDE})
        fits += [n for n in names if any(word.endswith(ends) for word in words[n])]
        fits += [n for n in names if role in SPACE and numbered.fullmatch(parted[n])]
        columns |= {role: fits[0]} if fits else {}
    for here, there in ("xz", "XZ", "02"):
        other = columns.get("x", "").replace(here, there)
        if other in names and other != columns.get("x"):
            columns["z"] = other
    return columns


def ask(
    path: Path, names: Names, which: str, expected: str, *answers: str
) -> UserError:
    """Return the error that asks what columns are, with answers to choose from."""
    several = listed(names) if len(names) > SHOWN else " and ".join(names)
    given = f"{path} with {several}, {which}"
    todo = f"say it: {option('columns', *answers)}"
    return UserError(given, f"to be told {expected}", todo)


def ask_kind(path: Path, names: Names, which: str) -> UserError:
    """Return the error that asks whether columns are static inputs or fields."""
    what = "whether that is a static input, a field to predict, or neither"
    return ask(path, names, which, what, *(f"{kind}={names[0]}" for kind in KINDS))


def mark_longitude(fields: Fields, name: str) -> Fields:
    """Mark the axis x as one of longitudes if its ``name`` in the source tells so, and
    keep points together that lie on both sides of a meridian where longitudes begin.
    """
    if bare_name(name) in LONGITUDE:
        x = fields.dataset["x"]
        x.attrs["standard_name"] = "longitude"
        if fields.axes is None and (whole := unwrapped(fields.path, x)) is not x:
            dataset = fields.dataset.assign_coords(x=whole.variable)
            fields = replace(fields, dataset=dataset)
    return fields


def unwrapped(path: Path, longitudes: DataArray) -> DataArray:
    """Longitudes that go on after 360 or 180 degrees, 350, 355, 360 for 350, 355, 0.

    Those within half of the globe become an interval, and so does an axis that rises or
    falls throughout but not around the globe; a line tells of it.
    """
    here = np.asarray(longitudes.values, float)
    ends = np.unique(here[np.isfinite(here)])
    gaps, whole = np.diff(ends), here
    usual = len(ends) > 1 and ends[0] >= -180 and ends[-1] <= 180 + 180 * (ends[0] >= 0)
    if usual and gaps.max() > 180 and ends[-1] - ends[0] < 360:
        whole = np.where(here <= ends[gaps.argmax()], here + 360, here)
    elif usual and here.ndim == 1 and np.ptp(np.sign(np.diff(here))):
        further = np.unwrap(here, period=360)
        steps = np.diff(further)
        throughout = (steps > 0).all() or (steps < 0).all()
        if throughout and np.ptp(further) + abs(steps).min() < 360:
            whole = further
    if whole is here:
        return longitudes
    low, high = np.nanmin(whole), np.nanmax(whole)
    logger.warning("%s: longitudes are read as %g to %g", path, low, high)
    return longitudes.copy(data=whole)


def with_kinds(
    fields: Fields,
    columns: Columns | None,
    *,
    roles: bool = False,
    known: Names = (),
) -> Fields:
    """Return the fields as users or names tell: static inputs, to predict, or left out.

    A kind is that of a component, or of all components ``NAME_0``, ``NAME_1``, ... of
    an array. Where users choose a field that changes in time, others are left out.
    Readers of formats with ``roles`` have left out what is to be ignored. In other
    formats the numbers of each sample become inputs.

    Args:
        fields: Fields as a reader made them.
        columns: Names of components by kind, as users give them.
        roles: Whether the format has a column for each role.
        known: Names of fields that are known ahead, which choosing fields keeps.

    Raises:
        UserError: One of several components without a kind differs between points and
            never in time, a static input changes, or a name or a kind does not exist.
    """
    has_roles = "nfsgeo_layout" in fields.dataset.attrs
    names = [*fields.component_names, *fields.static_names]
    parameters = [] if has_roles or roles else fields.names_of(PARAMETER)
    scalars = [n for n in parameters if fields.dataset[n].dims == ("sample",)]
    arrays = _arrays(names)
    every = [*dict.fromkeys([*names, *arrays.values(), *scalars])]
    choice = _choice(fields, columns, every, roles=roles)
    kinds = {name: choice.get(name) or choice.get(arrays[name], "") for name in names}
    early = {*known, *(_among(names, name) for name in known)}
    ahead = [n for n in fields.component_names if {n, arrays[n]} & early]
    kinds, marked = _kinds_of(fields, kinds, arrays, ahead, has_roles=has_roles)
    kinds |= {name: choice.get(name, "") for name in scalars}
    dataset = fields.dataset.drop_vars([n for n in kinds if kinds[n] == "ignore"])
    inputs = [name for name in scalars if name in dataset]
    changed: dict[str, Any] = {n: dataset[n].assign_attrs(role=KNOWN) for n in inputs}
    for name in (name for name in names if kinds[name] == "static"):
        changed[name] = _first(dataset[name].variable, fields.path, name)
    short = {name: name.removeprefix(MARK) or name for name in marked}
    short = {name: bare for name, bare in short.items() if bare not in dataset}
    dataset = dataset.assign(changed).rename(short)
    if {*choice.values()} - {"ignore"}:
        dataset.attrs.pop(UNDECIDED, None)
    elif not has_roles and len(fields.times) == 1:
        dataset.attrs[UNDECIDED] = [*dict.fromkeys(arrays.values())]
    if NODE_TYPE in dataset and dataset[NODE_TYPE].attrs.get("role") == STATIC:
        types = whole_numbers(NODE_TYPE, dataset[NODE_TYPE].variable)
        dataset = dataset.assign({NODE_TYPE: types})
    return replace(fields, dataset=dataset)


def check_roles(fields: Fields) -> None:
    """Raise a UserError if nobody told which of several fields at one time are inputs.

    Formats, names and users tell it, also by another input than a category.
    """
    undecided = [*map(str, np.ravel(fields.dataset.attrs.get(UNDECIDED, [])))]
    arrays = {*_arrays(fields.component_names).values()}
    names = [name for name in undecided if name in arrays]
    inputs = {*fields.input_names}.difference(fields.categories, [NODE_TYPE])
    if len(names) > 1 and len(fields.times) == 1 and not inputs:
        which = listed(names) if len(names) > SHOWN else " and ".join(names)
        raise UserError(
            f"{fields.path} with {which} at one time step",
            "to be told which of them are static inputs",
            "say it where the files of their origin are opened: "
            f"{option('columns', f'static={names[-1]}')}, or, "
            f"if none of them is, {option('columns', f'field={names[0]}')} and so on",
        )


def _kinds_of(
    fields: Fields,
    kinds: dict[str, str],
    arrays: Mapping[str, str],
    ahead: Names,
    *,
    has_roles: bool,
) -> tuple[dict[str, str], list[str]]:
    """Decide the kinds of fields and static inputs that users leave open.

    Args:
        fields: The fields.
        kinds: Kind of each field and static input that a user chose, else empty.
        arrays: The array of each of them, see :func:`_arrays`.
        ahead: Fields that are known ahead.
        has_roles: Whether the source has roles, which hold unless users choose others.

    Returns:
        The kinds, and the names that mark static inputs.
    """
    predicted = [] if has_roles else [n for n in fields.component_names if not kinds[n]]
    timed = [n for n in kinds if "time" in fields.dataset[n].dims]
    timed = timed if len(fields.times) > 1 else []
    marked = [name for name in predicted if is_static(name)]
    masks = {name for name in predicted if _is_mask(fields, name)}
    if masks.union(marked) >= {*fields.component_names}:  # one is to be predicted
        masks = set()
    marked += sorted(masks.difference(timed, marked))
    static = (*marked, *fields.static_names)
    kinds = kinds | {name: "static" for name in static if not kinds[name]}
    unread = ("ignore", "") if has_roles else ("ignore",)
    read = [name for name in timed if kinds[name] not in unread]
    differs = {name: _constant(fields, name) for name in read}
    still = {name for name in read if differs[name] is not None}
    kinds |= dict.fromkeys(masks & still, "static")
    if moved := [n for n in read if kinds[n] == "static" and n not in still]:
        given = f"{fields.path} with {', '.join(moved)}, which changes in time"
        same = "the same values at all time steps of a static input"
        raise UserError(given, same, "rename it if it is a field to predict")
    if any(kind == "field" and name not in still for name, kind in kinds.items()):
        kinds = {n: kind or ("ignore" * (n not in ahead)) for n, kind in kinds.items()}
    unclear = [n for n in read if differs[n] and not kinds[n]]
    if unclear and len(read) > 1:  # else there would be nothing to predict
        moving = {arrays[name] for name in kinds if name not in still}
        wholes = [n if arrays[n] in moving else arrays[n] for n in unclear]
        names = [*dict.fromkeys(wholes)]
        which = f"which never change{'s' * (len(names) == 1)} in time"
        raise ask_kind(fields.path, names, which)
    return kinds, marked


def _arrays(names: Names) -> dict[str, str]:
    """The array of each component: ``u`` of ``u_0`` where there is no other ``u``."""
    stems = {name: re.sub(r"_\d+$", "", name) for name in names}
    wholes = {s for s in stems.values() if s not in names and f"{s}_0" in names}
    return {name: stem if stem in wholes else name for name, stem in stems.items()}


def _choice(
    fields: Fields, columns: Columns | None, names: Names, *, roles: bool
) -> dict[str, str]:
    """The kinds that users choose, by the name of a component or an array."""
    lists = {
        kind: np.ravel(several).tolist() for kind, several in (columns or {}).items()
    }
    for kind, several in lists.items():
        short = [_among(names, str(name)) for name in several]
        lists[kind] = expanded(fields.path, names, short) if kind in KINDS else short
    if not roles and (wrong := lists.keys() - {*KINDS}):
        wrong_keys = f"columns with {', '.join(wrong)}= of {fields.path}"
        raise UserError(wrong_keys, "static=, field= or ignore=", "change it")
    checked = {kind: lists.get(kind, ()) for kind in (KINDS[:2] if roles else KINDS)}
    kinds, _ = chosen(fields.path, names, checked)
    return kinds | dict.fromkeys(lists.get("ignore", ()), "ignore")


def _among(names: Names, name: str) -> str:
    """The name by which fields are called for one that a source has given them."""
    tries = name, plain_name(name), plain_name(field_name(name)[0])
    return next((n for n in tries if n in names), tries[-1])


def _first(values: Variable, path: Path, name: str) -> Variable:
    """Return a static input: of each point the first value in time that is not NaN."""
    first = values.isel(time=0, missing_dims="ignore").copy(deep=False)
    for step in range(1, values.sizes.get("time", 1)):
        if not np.isnan(first.values).any():
            break
        first = first.where(first.notnull(), values.isel(time=step))
    if "time" in values.dims:
        finite(first.values, f"{path}: {name}")
    first.attrs = {**values.attrs, "role": STATIC}
    return whole_numbers(name, first)


def _is_mask(fields: Fields, name: str) -> bool:
    """Return whether a field is a mask: booleans, or bytes of zeros and ones."""
    dtype = fields.dataset[name].dtype
    if dtype.kind not in "iu" or dtype.itemsize > 1:
        return dtype.kind == "b"
    samples = range(fields.num_samples)
    return all(np.isin(fields.read_values([name], s), (0, 1)).all() for s in samples)


def _constant(fields: Fields, name: str) -> bool | None:
    """Return whether a field is constant in time and differs between points.

    It has to be known at several time steps. None if it changes in time.
    """
    constants, several = set[float](), False
    for sample in range(fields.num_samples):
        low, high, num = np.float32("nan"), np.float32("nan"), 0
        for start in range(0, len(fields.times), STEPS):
            stop = min(start + STEPS, len(fields.times))
            some = fields.read_values([name], sample, slice(start, stop))[..., 0]
            low = np.fmin(low, np.fmin.reduce(some, 1))
            high = np.fmax(high, np.fmax.reduce(some, 1))
            if (low < high).any():
                return None
            num = num + np.isfinite(some).sum(1)
        constants |= {np.fmin.reduce(low), np.fmax.reduce(high)}
        several |= bool(np.max(num) > 1)
    return bool(several and np.isfinite([*constants]).sum() > 1)
