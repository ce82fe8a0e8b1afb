"""What the columns of a table are: coordinates, time and sample, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = [
    "KINDS",
    "LONGITUDE",
    "ROLES",
    "Columns",
    "ask_kind",
    "ask_role",
    "bare_name",
    "check_roles",
    "check_space",
    "column_of",
    "kinds_of",
    "listed",
    "roles_of",
]

# The column of each role, and those of each kind.
Columns = Mapping[str, str | Sequence[str]]

# The names that a column of each role may have, in any case, with a unit after them.
ROLES: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "time": ("t", "time", "times", "timestamp", "datetime", "date"),
    "x": ("x", "lon", "long", "lng", "longitude", "easting"),
    "y": ("y", "lat", "latitude", "northing"),
    "z": ("z",),
}
# What a column without a role is: an input that never changes, a component, nothing.
KINDS = ("static", "field", "ignore")
SHOWN = 12  # columns, in a message
LONGITUDE = ("lon", "long", "lng", "longitude")
UNIT = re.compile(r"\s*[\[(].*[\])]$|_(s|sec|seconds|min|h|hours|d|days|m|km|deg)$")


def kinds_of(
    path: Path, names: Sequence[str], given: Columns
) -> tuple[dict[str, str], dict[str, str]]:
    """The kind of each column that is told to have one, and the given roles.

    Args:
        path: The table, for messages.
        names: Its columns.
        given: Columns by role, and one or several by kind.

    Raises:
        UserError: A column is not there, or is given twice.
    """
    roles = {role: str(name) for role, name in given.items() if role not in KINDS}
    kinds: dict[str, str] = {}
    for kind in KINDS:
        chosen = given.get(kind, ())
        for name in [chosen] if isinstance(chosen, str) else chosen:
            if name in kinds or name in roles.values():
                raise _twice([name])
            if name not in names:
                raise _absent(path, name, names)
            kinds[name] = kind
    return kinds, roles


def roles_of(
    path: Path, names: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role that there is, by role.

    Args:
        path: The table, for messages.
        names: Its columns.
        given: Columns by role, in place of what their names tell; an empty name where
            no column has the role.

    Raises:
        UserError: A column is not there, or the names can be read in two ways.
    """
    given = given or {}
    check_roles(path, names, given)
    found = {role: name for role, name in given.items() if name}
    left = [name for name in names if name not in found.values()]
    for role in ROLES:
        if role in given:
            continue
        if name := column_of(path, role, left):
            found[role] = name
    check_space(path, names, found)
    return found


def column_of(path: Path, role: str, names: Sequence[str]) -> str | None:
    """The column whose name tells that it has a role, None if there is none.

    Raises:
        UserError: Several may have it, or one may have it or not.
    """
    fitting = [name for name in names if bare_name(name) in ROLES[role]]
    if role == "time":
        fitting = _times(path, names, fitting)
    if len(fitting) > 1:
        raise ask_role(path, role, fitting)
    return fitting[0] if fitting else None


def _times(path: Path, names: Sequence[str], fitting: list[str]) -> list[str]:
    """Columns of the time; T may be a temperature, ``travel_time`` a field."""
    sure = [name for name in fitting if bare_name(name) != "t" or name[0] == "t"]
    if sure:
        return sure
    words = set(ROLES["time"][1:])
    maybe = [
        n for n in names if n in fitting or set(re.findall("[a-z]+", n.lower())) & words
    ]
    if maybe:
        raise ask_role(path, "time", maybe)
    return []


def ask_role(path: Path, role: str, names: Sequence[str]) -> UserError:
    """The question which of several columns has a role, or whether one has it."""
    what = {"time": "the time", "sample": "the sample"}.get(role, f"coordinate {role}")
    several = len(names) > 1
    return UserError(
        f"{path} with column{'s' * several} {' and '.join(names)}, "
        f"{'each of ' * several}which may be {what}",
        f"to be told the column of {what}",
        f"say it: nfsgeo convert {path} --out NAME.h5 --columns {role}={names[0]}, or "
        f"{role}= if there is none",
    )


def ask_kind(path: Path, names: Sequence[str]) -> UserError:
    """The question whether columns that never change in time are fields to predict.

    Args:
        path: The table.
        names: Those of the columns.
    """
    first, several = names[0], len(names) > 1
    return UserError(
        f"{path} with column{'s' * several} {' and '.join(names)}, which never "
        f"change{'s' * (not several)} in time",
        "to be told whether that is a static input, a field to predict, or neither",
        f"say it: nfsgeo convert {path} --out NAME.h5 --columns static={first}, or "
        f"field={first}, or ignore={first}"
        + f", and likewise {names[-1]}, separated by commas"
        * several,
    )


def _absent(path: Path, name: str, names: Sequence[str]) -> UserError:
    given = f"no column {name!r} in {path}"
    return UserError(given, f"one of {listed(names)}", "change the name")


def _twice(names: Sequence[str]) -> UserError:
    given = f"columns {', '.join(names)}"
    return UserError(given, "each of them once", "change a name")


def check_roles(path: Path, names: Sequence[str], given: Mapping[str, str]) -> None:
    """Makes sure that columns by role are there, and have names that differ.

    Raises:
        UserError: They do not.
    """
    for role, name in given.items():
        if role not in ROLES:
            raise UserError(
                f"columns with {role}={name}",
                f"one of {', '.join(ROLES)} before the =, or of a table one of "
                f"{', '.join(KINDS)}",
                "change it; all other columns are fields",
            )
        if name and name not in names:
            raise _absent(path, name, names)
    chosen = [name for name in given.values() if name]
    if len(set(chosen)) < len(chosen):
        raise _twice(chosen)
    if "" in names:
        raise UserError(
            f"{path} with a column without a name, of row numbers",
            "a name for each column",
            "leave it out, as pandas does with index=False",
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise UserError(
            f"{path} with two columns {twice!r}", "names that differ", "rename one"
        )


def check_space(
    path: Path, names: Sequence[str], found: Mapping[str, str], kind: str = "column"
) -> None:
    """Makes sure that names by role are there for x, for x and y, or for all three.

    Raises:
        UserError: They are not.
    """
    space = [role for role in "xyz" if role in found]
    if not space or space != list("xyz"[: len(space)]):
        one = kind.upper()
        raise UserError(
            f"{path} with {kind}s {listed(names)}",
            f"{kind}s x[, y[, z]] of coordinates",
            f"name them: nfsgeo convert {path} --out NAME.h5 --columns "
            f"x={one},y={one},time={one}"
            + ", or, with a column for each station, --columns time=COLUMN,points="
            "FILE, a table of their names and coordinates" * (kind == "column"),
        )


def listed(names: Sequence[str]) -> str:
    """The first of them, for a message."""
    return ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)


def bare_name(name: str) -> str:
    """In lower case, without a unit: ``Time [s]`` and ``time_s`` are ``time``."""
    return UNIT.sub("", name.strip()).lower()
