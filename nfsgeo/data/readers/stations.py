"""Tables with a column for each station, whose positions are in another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.fields import SPACE
from nfsgeo.data.readers.cells import is_table, read_cells, values_of
from nfsgeo.data.readers.columns import (
    ROLES,
    Columns,
    bare_name,
    check_roles,
    column_of,
    kinds_of,
    listed,
)
from nfsgeo.errors import UserError

__all__ = ["POINTS", "by_station"]

POINTS = "points"  # the role of the table of positions
OWN = ("time", "sample")


def by_station(
    path: Path, cells: Mapping[str, Any], given: Columns
) -> tuple[dict[str, Any], dict[str, str]]:
    """The same table with a row for each station and time step.

    All columns are those of stations but ``time``, ``sample`` and what is to be
    ignored. The table of positions has a row for each station, with coordinates in
    columns ``x``, ``y``, ``z`` (or ``lon`` and ``lat``) and the station's name in
    another; stations without a column are left out.

    Args:
        path: The table.
        cells: Its columns.
        given: The table of positions, ``points``; optionally columns of ``time`` and
            ``sample``, an empty name where there is none, and those to ``ignore``.

    Returns:
        Columns of equal length, and which of them are ``x``, ``y``, ``z``, ``time``,
        ``sample`` and, named as the file, the ``field``.

    Raises:
        UserError: A column or a station is not there, or has no position.
    """
    roles, ignored = _roles(path, list(cells), given)
    own = {*roles.values(), *ignored}
    stations = [name for name in cells if name not in own]
    if not stations:
        raise UserError(
            f"{path} with columns {listed(list(cells))}",
            "a column for each station",
            "leave out points=, or correct time= and ignore=",
        )
    positions = _positions(Path(str(given[POINTS])), stations)
    columns = [values_of(path, name, cells[name], any_text=False) for name in stations]
    field = path.stem if path.stem not in (*roles, *positions) else "field"
    times = len(columns[0])
    table: dict[str, Any] = {field: np.stack(columns, axis=1).reshape(-1)}
    for name, values in positions.items():
        table[name] = np.tile(values, times)
    for role, name in roles.items():
        values = values_of(path, name, cells[name], any_text=role == "sample")
        table[role] = np.repeat(values, len(stations))
    told = {role: role if role in roles else "" for role in OWN}
    return table, {**told, **dict(zip(SPACE, positions, strict=False)), "field": field}


def _roles(
    path: Path, names: Sequence[str], given: Columns
) -> tuple[dict[str, str], list[str]]:
    """Columns of the time and the sample, and those to ignore."""
    if "" in names:
        raise UserError(
            f"{path} with a column without a name",
            "a name for each column",
            "name it, as pandas does with index_label='time'",
        )
    for role in given:
        if role not in (*OWN, POINTS, "ignore"):
            raise UserError(
                f"{role}= beside points={given[POINTS]}",
                f"one of {', '.join((*OWN, 'ignore'))}: all other columns are those "
                "of stations",
                f"leave out {role}=",
            )
    others = {role: name for role, name in given.items() if role != POINTS}
    ignored, told = kinds_of(path, names, others)
    check_roles(path, names, told)
    left = [name for name in names if name not in (*ignored, *told.values())]
    found = {
        role: told[role] if role in told else column_of(path, role, left)
        for role in OWN
    }
    return {role: name for role, name in found.items() if name}, list(ignored)


def _positions(path: Path, stations: Sequence[str]) -> dict[str, Any]:
    """Each coordinate of the stations, by the name of its column, x first."""
    if not path.is_file() or not is_table(path):
        raise UserError(
            f"points={path}",
            "a table with the name and the coordinates of each station",
            "check the name",
        )
    cells = read_cells(path)
    space = {
        role: [name for name in cells if bare_name(name) in ROLES[role]]
        for role in SPACE
    }
    found = [names[0] for names in space.values() if names]
    filled = [bool(names) for names in space.values()]
    if (
        not filled[0]
        or filled == [True, False, True]
        or len(found) < sum(map(len, space.values()))
    ):
        raise UserError(
            f"{path} with columns {listed(list(cells))}",
            "one column each for x[, y[, z]], or lon and lat, and one of names",
            "rename or remove columns",
        )
    rows = _rows(path, {n: c for n, c in cells.items() if n not in found}, stations)
    return {
        name: values_of(path, name, cells[name], any_text=False)[rows] for name in found
    }


def _rows(path: Path, cells: Mapping[str, Any], stations: Sequence[str]) -> list[int]:
    """The row of each station, by the one column that has all of their names."""
    missing: list[str] = list(stations)
    found = []
    for column in cells.values():
        rows = Counter(map(str, column))
        lacking = [name for name in stations if name not in rows]
        missing = min(missing, lacking, key=len)
        if not lacking:
            found.append((rows, {str(cell): row for row, cell in enumerate(column)}))
    if missing:
        raise UserError(
            f"{path} without {listed(missing)}",
            "each of the stations' names in one and the same column",
            "add them, or leave out columns that are no stations: ignore=COLUMN",
        )
    if len(found) > 1:
        raise UserError(
            f"{path} with the names of all stations in {len(found)} columns",
            "one column with their names",
            "remove the others",
        )
    count, row_of = found[0]
    twice = next((name for name in stations if count[name] > 1), None)
    if twice is not None:
        raise UserError(
            f"{path} with {count[twice]} rows for {twice}",
            "one for each station",
            "leave the others out",
        )
    return [row_of[name] for name in stations]
