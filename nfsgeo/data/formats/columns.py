"""What columns of tables, arrays of meshes and variables are, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nfsgeo.data.checks import check_distinct
from nfsgeo.errors import UserError

Names = Sequence[str]
Roles = dict[str, str]
Columns = Mapping[str, str | Names]  # the column of each role, and those of each kind

LONGITUDE = ("lon", "long", "lng", "longitude")
# The names that a column of each role may have, in any case, with a unit after them.
ROLES: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "time": ("t", "time", "times", "timestamp", "datetime", "date"),
    "x": ("x", *LONGITUDE, "easting"),
    "y": ("y", "lat", "latitude", "northing"),
    "z": ("z",),
}
# Names of columns that tell points apart, though they are numbers.
STATIONS = ("station", "station_id", "site", "site_id", "sensor", "id", "name", "code")
# What a column without a role is: an input that never changes, a component, nothing.
KINDS = ("static", "field", "ignore")
SHOWN = 3  # columns, in a message
UNIT = re.compile(r"\s*[\[(].*[\])]$|_(s|sec|seconds|min|h|hours|d|days|m|km|deg)$")


def kinds_of(path: Path, names: Names, given: Columns) -> tuple[Roles, Roles]:
    """The kind of each column that is told to have one, and the column of each role
    that is told; all of them must be there, once.
    """
    told = {kind: given.get(kind, ()) for kind in KINDS}
    each = {k: [of] if isinstance(of, str) else list(of) for k, of in told.items()}
    roles = {role: str(name) for role, name in given.items() if role not in KINDS}
    chosen = [name for of in each.values() for name in of]
    _check_chosen(path, [*chosen, *roles.values()], [*names, *roles.values()])
    return {name: kind for kind, of in each.items() for name in of}, roles


def roles_of(path: Path, names: Names, given: Roles | None = None) -> Roles:
    """The column of each role that there is, by role.

    ``given`` are those that are told, an empty name where no column has the role.

    Raises:
        UserError: A column is not there, or the names can be read in two ways.
    """
    check_roles(path, names, given := given or {})
    left = [name for name in names if name not in given.values()]
    found = {r: given[r] if r in given else column_of(path, r, left) for r in ROLES}
    there = {role: name for role, name in found.items() if name}
    check_space(path, names, there)
    return there


def column_of(path: Path, role: str, names: Names) -> str | None:
    """The column whose name tells that it has a role, None if there is none.

    Raises:
        UserError: Several may have it, or one may have it or not: T may be a
            temperature, ``travel_time`` a field.
    """
    fits = [name for name in names if bare_name(name) in ROLES[role]]
    sure = [n for n in fits if role != "time" or bare_name(n) != "t" or n[0] == "t"]
    if role == "time" and not sure:
        words, each = set(ROLES["time"][1:]), re.compile("[a-z]+")
        fits += [n for n in names if words.intersection(each.findall(n.lower()))]
    if len(sure) > 1 or (fits and not sure):
        raise ask_role(path, role, sure or list(dict.fromkeys(fits)))
    return sure[0] if sure else None


def ask_role(path: Path, role: str, names: Names, kind: str = "column") -> UserError:
    """The question which of several columns has a role, or whether one has it."""
    what = f"coordinate {role}" if role in "xyz" else f"the {role}"
    which = f"{'each of ' * (len(names) > 1)}which may be {what}"
    told = f"the {kind} of {what}"
    say = f"{role}={names[0]}, or {role}= if there is none"
    return ask(path, names, kind, which, told, say)


def ask(
    path: Path, names: Names, kind: str, which: str, told: str, say: str
) -> UserError:
    """A question about columns, of a ``kind`` such as "column"."""
    several = listed(names) if len(names) > SHOWN else " and ".join(names)
    listed_ = f"{kind}{'s' * (len(names) > 1)} {several}"
    say = f"say it: nfsgeo convert {path} --out NAME.nc --columns {say}"
    say += " (or train --columns)" * (kind == "column")
    return UserError(f"{path} with {listed_}, {which}", f"to be told {told}", say)


def check_roles(path: Path, names: Names, given: Mapping[str, str]) -> None:
    """Makes sure that columns by role are there, and all columns have own names."""
    if wrong := [f"{role}={name}" for role, name in given.items() if role not in ROLES]:
        expected = f"one of {', '.join([*ROLES, *KINDS])} before the ="
        todo = "change it; all other columns are fields"
        raise UserError(f"columns with {wrong[0]}", expected, todo)
    if "" in names:
        todo = "leave row numbers out, index=False in pandas, or name it, index_label="
        raise UserError(f"{path} with a column without a name", "names of all", todo)
    check_distinct(path, names)
    _check_chosen(path, list(given.values()), names)


def check_space(
    path: Path, names: Names, found: Mapping[str, str], kind: str = "column"
) -> None:
    """Makes sure that names by role are there for x, for x and y, or for all three."""
    space = "".join(role for role in "xyz" if role in found)
    if not space or not "xyz".startswith(space):
        told = f"{kind}s x[, y[, z]] of coordinates"
        todo = f"name them: nfsgeo convert {path} --out NAME.nc --columns "
        todo += "x={0},y={0},time={0}".format(kind.upper())
        if kind == "column":
            todo += ", or, with one for each station, time=COLUMN,points=FILE, a table "
            todo += "of their names and coordinates"
        raise UserError(f"{path} with {kind}s {listed(names)}", told, todo)


def listed(names: Names) -> str:
    """The first of them, for a message."""
    return ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)


def bare_name(name: str) -> str:
    """In lower case, without a unit: ``Time [s]`` and ``time_s`` are ``time``."""
    return UNIT.sub("", name.strip()).lower()


def _check_chosen(path: Path, chosen: Names, names: Names) -> None:
    """Makes sure that columns which are told are there, each of them once."""
    check_distinct(f"columns of {path}", given := list(filter(None, chosen)))
    for name in {*given}.difference(names):
        there = f"one of {listed(names)}"
        raise UserError(f"no column {name!r} in {path}", there, "change the name")
