"""Tables with a column for each station or time, as one with a row for each of them.

The coordinates of stations are in another table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.conventions import STATIONS, bare_name, is_static, listed, role_of
from nfsgeo.data.io.frames import frame_of, values_of
from nfsgeo.data.io.roles import ask, chosen, likely_columns
from nfsgeo.data.io.table_heads import is_number
from nfsgeo.data.io.timed_names import COMPACT, TIMED, matching
from nfsgeo.errors import UserError, option

__all__ = ["check_times_in_names", "point_table", "with_places"]
__all__ += ["with_rows_for_times"]

SWEPT = re.compile(r"(.*?) *@ *(?:\d+: *)?(\w+)=(\S+)")  # as COMSOL names columns


def with_rows_for_times(
    path: Path, frame: pandas.DataFrame, answers: Mapping[str, Any]
) -> pandas.DataFrame:
    """Give columns for several times rows of their own for each of them.

    Those are ``u @ t=0`` and ``u @ t=1`` of COMSOL, or ``u_0`` and ``u_1`` where users
    say ``time=u_*``. The column of the times has the name of what users say.

    Raises:
        UserError: They are of several parameters, or there are none.
    """
    parts = {name: SWEPT.fullmatch(name) for name in frame if " @ " in name}
    swept = {name: part.groups() for name, part in parts.items() if part}
    parameters = {parameter for _, parameter, _ in swept.values()}
    if len(swept) < len(parts) or len(parameters) > 1:
        odd = next((name for name in parts if name not in swept), "several parameters")
        todo = "export the solutions for the times alone, of one set of parameters"
        raise UserError(f"{path} with {odd}", "columns such as u @ t=0.5", todo)
    whole, units = str(answers.get("time", "")), frame.attrs.get("units") or {}
    if "*" in whole and whole not in frame:
        for form in whole.split("+"):
            names = matching(path, [*frame], form)
            _check_order_of_dates(path, [*names.values()])
            tries = re.sub(r"[-_=@. ]*\*", "", form), path.stem, "field"
            free = (n for n in tries if n and not (role_of(n) or is_static(n)))
            field = next(n for n in free if n not in frame)
            swept |= {name: (field, whole, time) for name, time in names.items()}
            units = {**units, field: _one_unit(path, units, [*names])}
            parameters = {whole}
    if not swept:
        return frame
    wide = frame[[*swept]]
    levels = [(name, value) for name, _, value in swept.values()]
    wide.columns = pandas.MultiIndex.from_tuples(levels, names=[None, *parameters])
    long = wide.stack(future_stack=True).reset_index(level=1)
    frame = frame.drop(columns=[*swept]).join(long)
    frame.attrs["units"] = units
    return frame


def _check_order_of_dates(path: Path, texts: Sequence[str]) -> None:
    """Raise a UserError if dates may begin with the day or the month."""
    for text in texts:
        if re.search("[./].*[./]", text):
            given = f"{path} with the date {text} in a name"
            todo = "rename the columns, as in pandas by table.rename(columns={n: "
            todo += "pandas.to_datetime(n, dayfirst=True).isoformat() for n in table "
            todo += "if n[0].isdigit()}), or dayfirst=False where the month is first"
            raise UserError(given, "dates such as 2026-01-31", todo)


def check_times_in_names(path: Path, names: Sequence[str]) -> None:
    """Ask about fields whose names differ in a date or a number, which may be a time.

    These are three dates, years or numbers with decimals, or four numbers, in equal
    steps. Fewer numbers are those of components.

    Raises:
        UserError: There are such fields.
    """
    forms = dict[str, list[str]]()
    for name in names:
        if part := TIMED.fullmatch(name):
            forms.setdefault(f"{part[1]}*{part[4] or ''}", []).append(part[2])
    for form, texts in [*forms.items()]:
        dates = [text for text in texts if not is_number(text) or COMPACT.match(text)]
        steps = np.diff([] if dates else np.array(texts, float))
        years = all(re.fullmatch("(18|19|20|21)\\d\\d", text) for text in texts)
        sure = years or "=" in form or any("." in text for text in texts)
        few = len(texts) < (3 if dates or sure else 4)
        if few or (len(steps) and not (steps[0] > 0 and np.allclose(steps, steps[0]))):
            del forms[form]
    if forms:
        found = [name for form in forms for name in matching(path, names, form)]
        which = "which may be fields, or fields at several times"
        fields = ",".join(f"field={form}" for form in forms)
        times = f"time={'+'.join(forms)}"
        raise ask(path, found, which, "what they are", fields, times)


def with_places(
    path: Path, frame: pandas.DataFrame, answers: dict[str, Any]
) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """Join a table with the coordinates in another one, ``points``.

    The table has a column of the names of stations, ``station``, or else a column for
    each station, and a row for each time. Then all columns but time, sample and ignored
    ones are stations, and ``field`` is the name of the values in them. ``x``, ``y`` and
    ``z`` are columns of the other table.

    Returns:
        The table with a row for each station and time, and the roles of its columns.
    """
    source, space = Path(str(answers["points"])), ("x", "y", "z", "station")
    about = {role: str(answers[role]) for role in space if answers.get(role)}
    others = {n: v for n, v in answers.items() if n not in ("points", *space)}
    ignored = [*np.ravel(others.get("ignore", []))]
    units = frame.attrs.get("units") or {}
    named = [about.get("station", "")] if about.get("station") in frame else []
    for name in named or [n for n in frame if bare_name(n) in STATIONS]:
        if name not in ignored:
            frame[name] = [str(cell).strip() for cell in frame[name]]
            names = sorted({*frame[name]})
            at = {role: n for role, n in about.items() if n not in named}
            places = _positions(source, names, at)
            frame = frame.drop(columns=[*places], errors="ignore")
            frame = frame.join(places, on=name)
            frame.attrs["units"] = units
            roles = {**others, **dict(zip("xyz", places, strict=False))}
            return frame, roles | {"station": name}
    for role in others.keys() - {"time", "sample", "ignore", "field"}:
        expected = "one of time, sample, ignore and field: other columns are stations"
        raise UserError(f"{role}= beside points=", expected, f"leave out {role}=")
    called = str(np.ravel(others.pop("field", path.stem))[0])
    _, roles = chosen(path, list(frame), others)
    left = [name for name in frame if name not in (*ignored, *roles.values())]
    for role in {"time", "sample"} - roles.keys():
        roles[role] = next((n for n in left if role_of(n) == role), "")
    stations = [name for name in left if name not in roles.values()]
    if not stations:
        todo = "leave out points=, or correct time= and ignore="
        raise UserError(f"{path} with columns {listed(left)}", "stations", todo)
    places = _positions(source, stations, about)
    field = called if called not in (*frame, *places) else "field"
    ids, sample = [name for name in roles.values() if name], roles["sample"]
    table = {n: values_of(path, frame[n], names=n == sample) for n in [*ids, *stations]}
    long = pandas.DataFrame(table).melt(ids, stations, "station", field)
    long = long.join(places, on="station")
    long["station"] = pandas.Categorical(long["station"], stations)
    long.attrs["units"] = {**units, field: _one_unit(path, units, stations)}
    axes = dict(zip("xyz", places, strict=False))
    return long, {**roles, **axes, "field": field}


def _one_unit(path: Path, units: Mapping[str, str], names: list[str]) -> str:
    """The unit of all columns in the row of units, empty if there is none."""
    found = sorted({units.get(name, "") for name in names} - {""})
    if len(found) > 1:
        given = f"{path} with columns in {listed(found)}"
        raise UserError(given, "one unit of all", "convert the values")
    return "".join(found)


def _positions(
    path: Path, stations: list[str], about: Mapping[str, str]
) -> pandas.DataFrame:
    """Coordinates, x first, by the names of stations."""
    if not path.is_file():
        expected = "a table with the name and the coordinates of each station"
        raise UserError(f"points={path}", expected, "check the name")
    places, table = point_table(path, about)
    table = table.apply(lambda column: column.str.strip())
    lacking = {name: sorted({*stations} - {*table[name]}) for name in table}
    num = table.isin(stations).sum()
    fits = [name for name in table if not lacking[name] and num[name] == len(stations)]
    fits = [about["station"]] if about.get("station") in fits else fits
    if len(fits) != 1:
        best = min(lacking, key=lambda name: len(lacking[name]), default="")
        twice = table[best][table[best].duplicated()] if best else ()
        odd = listed(lacking.get(best) or [*twice] or stations)
        todo = "add or remove rows or columns, or tell by time=, sample= or ignore= "
        todo += "which column is no station"
        if len(fits) > 1:
            todo = f"say which one is meant, station={fits[0]}"
        raise UserError(
            f"{path} with columns {listed([*places, *table])}, not once with {odd}",
            "each station once, by the name of its column, in one of them",
            todo,
        )
    return places.set_axis(table[fits[0]], axis=0)


def point_table(
    path: Path, about: Mapping[str, str] | None = None
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Read a table with a row for each point.

    Args:
        path: The file.
        about: Columns of coordinates ``x``, ``y`` and ``z``, and of names, ``station``,
            where their names do not tell.

    Returns:
        Coordinates, x first, and the other columns as text.

    Raises:
        UserError: It has not one column for each of x, y and z, in this order.
    """
    table, about = frame_of(path, str), about or {}
    user_roles = {role: name for role, name in about.items() if name}
    chosen(path, list(table), {"ignore": [*user_roles.values()]})
    axes = [
        [user_roles[a]] if a in user_roles else [n for n in table if role_of(n) == a]
        for a in "xyz"
    ]
    dim = sum(map(bool, axes))
    if not dim or [len(names) for names in axes] != [1] * dim + [0] * (3 - dim):
        given = f"{path} with columns {', '.join(table)}"
        expected = "coordinates x[, y[, z]] in one column each"
        say = ",".join(f"{r}={n}" for r, n in likely_columns(list(table), "xy").items())
        todo = f"rename columns, or say {option('columns', f'points={path},{say}')}"
        raise UserError(given, expected, todo)
    space = [name for names in axes for name in names]
    places = {name: values_of(path, table[name]) for name in space}
    return pandas.DataFrame(places), table.drop(columns=space)
