"""Tables with a column for each station, and their positions in another table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.formats import columns as named
from nfsgeo.data.formats.cells import cells_of, values_of
from nfsgeo.data.formats.columns import Columns, listed
from nfsgeo.errors import UserError

__all__ = ["by_station"]


def by_station(
    path: Path, cells: dict[str, Any], given: Columns
) -> tuple[dict[str, Any], Columns]:
    """A table of a column for each station, with a row for each and for each time.

    All columns are those of stations but time, sample and what is to be ignored.

    Raises:
        UserError: There are none, or the other table has not each of them once.
    """
    for role in given.keys() - {"time", "sample", "ignore", "points"}:
        expected = "one of time, sample and ignore: all other columns are stations"
        raise UserError(f"{role}= beside points=", expected, f"leave out {role}=")
    others = {role: name for role, name in given.items() if role != "points"}
    ignored, told = named.kinds_of(path, list(cells), others)
    named.check_roles(path, list(cells), told)
    left = [name for name in cells if name not in (*ignored, *told.values())]
    for role in {"time", "sample"} - told.keys():
        told[role] = named.column_of(path, role, left) or ""
    stations = [name for name in left if name not in told.values()]
    if not stations:
        todo = "leave out points=, or correct time= and ignore="
        raise UserError(f"{path} with columns {listed(left)}", "stations", todo)
    places = _positions(Path(str(given["points"])), stations)
    columns = [values_of(path, name, cells[name]) for name in stations]
    taken = (*told.values(), *places, "station")
    field = path.stem if path.stem not in taken else "field"
    steps, num = len(columns[0]), len(stations)
    table = {field: np.stack(columns, axis=1).reshape(-1)}
    table |= {name: np.tile(values, steps) for name, values in places.items()}
    for role in (role for role, name in told.items() if name):
        values = values_of(path, told[role], cells[told[role]], names=role == "sample")
        table[told[role]] = np.repeat(values, num)
    codes = np.tile(np.arange(num), steps)
    table["station"] = pandas.Series(pandas.Categorical.from_codes(codes, stations))
    return table, {**told, **dict(zip("xyz", places, strict=False)), "field": field}


def _positions(path: Path, stations: list[str]) -> dict[str, Any]:
    """Each coordinate of the stations, by the name of its column, x first."""
    if not path.is_file():
        expected = "a table with the name and the coordinates of each station"
        raise UserError(f"points={path}", expected, "check the name")
    cells = cells_of(path, text=True)
    found = [n for r in "xyz" for n in cells if named.bare_name(n) in named.ROLES[r]]
    named.roles_of(path, found)
    texts = {
        n: [str(cell).strip() for cell in cells[n]] for n in cells if n not in found
    }
    lacking = {name: sorted({*stations}.difference(texts[name])) for name in texts}
    best = min(lacking, key=lambda name: len(lacking[name]), default="")
    rows = pandas.Index(texts.get(best, []))
    twice = rows[rows.duplicated()].intersection(stations)
    if not best or lacking[best] or len(twice) or [*lacking.values()].count([]) > 1:
        odd = listed(lacking.get(best) or [*twice] or stations)
        raise UserError(
            f"{path} with columns {listed(list(cells))}, not once with {odd}",
            "each station once, by the name of its column, in one of them",
            "add or remove rows or columns, or say ignore=COLUMN for no station",
        )
    at = [rows.get_loc(name) for name in stations]
    return {name: values_of(path, name, cells[name])[at] for name in found}
