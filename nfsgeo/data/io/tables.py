"""Tables: a row for each point, time step and sample, or a column for each station.

Rows come in any order. A value is NaN where its cell is empty or its row not there.
Points stay where they are, in the order of the names of stations, or else of their
coordinates. All samples have the same times; dates that a regular series lacks, such as
a day without any row, are time steps without values. See
:mod:`nfsgeo.data.io.roles` for what names tell, and
:mod:`nfsgeo.data.io.table_layouts` and :mod:`nfsgeo.data.io.table_wide` for tables of
other layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.checks import as_real, not_infinite
from nfsgeo.data.conventions import (
    KINDS,
    LONGITUDE,
    SPACE,
    STATION,
    TIME_ZONE,
    Floats,
    Indices,
    axis_unit,
    bare_name,
    is_static,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io import table_layouts as layouts
from nfsgeo.data.io import table_questions as questions
from nfsgeo.data.io import table_wide as wide
from nfsgeo.data.io.format import Format, left_out
from nfsgeo.data.io.frames import NoNumbers, frame_of, is_table, values_of
from nfsgeo.data.io.labelled import field_names, to_fields
from nfsgeo.data.io.roles import Columns, ask, chosen, mark_longitude, roles_of
from nfsgeo.data.io.table_cells import Cells
from nfsgeo.data.io.table_marks import check_marks, check_percentages
from nfsgeo.data.io.table_rows import Places, Steps
from nfsgeo.data.io.table_texts import has_zone, is_date, is_unread
from nfsgeo.data.io.table_times import check_times
from nfsgeo.data.io.timed_names import expanded
from nfsgeo.data.times import EPOCH
from nfsgeo.errors import UserError, option

EXPECTED = "columns x[, y[, z]], optionally sample and t, and one for each component"


def _read(
    path: Path, columns: Columns | None = None, known: Sequence[str] = ()
) -> Fields:
    """Read a row for each point, time step and sample, or a column for each station.

    See :func:`nfsgeo.data.open` for the arguments.
    """
    answers = dict(columns or {})
    marks = [str(mark) for mark in np.ravel(answers.pop("missing", []))]
    frame, answers, quantity = _arranged(path, answers, marks)
    units = frame.attrs.get("units") or {}
    called = field_names([*frame])
    station, answers = str(answers.pop(STATION, "")), _columns_of(path, answers, called)
    kinds, user_roles = chosen(path, list(frame), answers)
    free = [name for name in frame if name not in kinds and name != station]
    check_times(path, frame[free], user_roles)
    roles = roles_of(path, free, user_roles)
    if frame.empty:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    named = [role for role in ("time", *SPACE) if role in roles]
    of_axes = {
        axis: axis_unit(roles[axis]) or axis_unit(units.get(roles[axis], ""))
        for axis in named
    }
    zoned = "time" in roles and has_zone(path, frame[roles["time"]], units)
    steps = Steps.of(path, frame, roles)
    places = Places.of(path, frame, roles, kinds, steps, station, marks)
    cells = Cells.of(steps, places)
    frame = frame.drop(columns=[*roles.values()])
    _check_meaning(path, frame, roles, kinds, cells, places, station, quantity)
    ignored = [name for name in kinds if kinds[name] == "ignore"]
    frame = frame.drop(columns=[*ignored, *filter(None, [places.column])])
    if "time" not in roles and "field" not in kinds.values():
        wide.check_times_in_names(path, [n for n in frame if n not in kinds])
    values = _values(path, frame, kinds)
    for field in () if "" in marks else values:
        if "field" not in kinds.values() or field in kinds or is_static(field):
            check_marks(path, field, values[field], marks)
    if "field" not in kinds.values():
        values = _without_counts(path, frame, values, {*kinds, *known}, cells, places)
    variables = dict[str, Any]()
    for field, column in values.items():
        arranged = cells.arranged(column, quantity)
        if arranged is None:
            left_out(path, [f"{field}, which differs between quantities"])
            continue
        short, field_unit = called[field]
        attrs: dict[str, Any] = {"components": [short]}
        if field_unit := field_unit or units.get(field, ""):
            attrs["units"] = field_unit
        variables[field] = *arranged, attrs
    coordinates = cells.coordinates(places, timed="time" in roles)
    if zoned:
        coordinates["time"][2][TIME_ZONE] = "UTC"
    fields = to_fields(path, variables, coordinates, units=of_axes)
    return mark_longitude(fields, roles["x"])


def _columns_of(
    path: Path, answers: Mapping[str, Any], called: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Return the answers of users with whole names of columns, units included."""
    columns = {short: name for name, (short, _) in called.items()}
    whole = dict(answers)
    for kind in (kind for kind in KINDS if kind in answers):
        names = expanded(path, [*called], np.ravel(answers[kind]).tolist())
        whole[kind] = [n if n in called else columns.get(n, n) for n in names]
    return whole


def _check_meaning(
    path: Path,
    others: pandas.DataFrame,
    roles: Mapping[str, str],
    kinds: Mapping[str, str],
    cells: Cells,
    places: Places,
    station: str,
    quantity: Indices | None,
) -> None:
    """Raise a UserError if columns without a role may tell rows or samples apart."""
    steps = cells.steps
    unnamed = others.drop(columns=[places.column] if places.column else [])
    cells.check_unique(path, unnamed, roles, quantity)
    measured = steps.unit == EPOCH or places.names is not None
    questions.check_simulations(
        path,
        unnamed,
        steps,
        places,
        kinds,
        roles.get("sample", ""),
        measured=measured or bare_name(roles["x"]) in LONGITUDE,
    )
    check_percentages(path, others, kinds)
    if not station:
        questions.check_quantities(path, others, kinds, steps.time, places.column)
    steps.check_complete(path)


def _without_counts(
    path: Path,
    frame: pandas.DataFrame,
    values: dict[str, Floats],
    said: set[str],
    cells: Cells,
    places: Places,
) -> dict[str, Floats]:
    """Leave out columns that count rows or times, or are one number throughout."""
    short = {name: called for name, (called, _) in field_names([*values]).items()}
    left = [name for name in values if not ({name, short[name]} & said)]
    left = [name for name in left if not is_static(name)]
    counts = questions.check_numbers(path, frame, left, cells.steps, places)
    if not counts:
        return values
    keep, all_fields = (option("columns", f"{kind}=NAME") for kind in KINDS[:2])
    reason = f"one number throughout, or a count of rows or times: say {keep} to keep "
    reason += f"one as an input, or {all_fields} of all fields"
    left_out(path, [*counts, reason])
    return {name: column for name, column in values.items() if name not in counts}


def _arranged(
    path: Path, answers: dict[str, Any], marks: Sequence[str]
) -> tuple[pandas.DataFrame, dict[str, Any], Indices | None]:
    """A table with a row for each point, time step and sample, what its columns are as
    users say, and the number of the quantity of each row if it has rows for several.
    """
    quantity, kind = str(answers.pop("quantity", "")), None
    frame = wide.with_rows_for_times(path, frame_of(path, missing=marks), answers)
    frame = layouts.with_zone(path, layouts.joined(path, frame, answers), answers)
    if quantity:
        roles = [str(name) for names in answers.values() for name in np.ravel(names)]
        frame, kind = layouts.with_quantities(path, frame, quantity, roles)
    if "points" in answers:
        frame, answers = wide.with_places(path, frame, answers)
    elif answers.get(STATION):
        chosen(path, list(frame), {"field": answers[STATION]})
    return frame, answers, kind


def _values(
    path: Path, frame: pandas.DataFrame, kinds: Mapping[str, str]
) -> dict[str, Floats]:
    """The columns of numbers. Others are left out where users choose fields."""
    values, left = dict[str, Floats](), dict[str, UserError]()
    for name in frame:
        what = f"{path}: column {name}"
        try:
            numbers = values_of(path, frame[name])
            dated = name not in kinds and is_date(frame[name])  # such as 20260131
            if dated or numbers.dtype.kind in "mM":
                choices = [f"{role}={name}" for role in ("ignore", "time")]
                todo = f"say {option('columns', *choices)}"
                raise NoNumbers(f"{what} with dates", "numbers", todo)
            numbers = not_infinite(as_real(numbers, what, gaps=True), what)
        except UserError as error:
            if name in kinds:
                raise
            left[name] = error
            continue
        dtype = np.result_type(numbers, np.float32)
        values[name] = numbers.astype(dtype, copy=False)
    if left and "field" in kinds.values():
        left_out(path, [*left])
    elif left:
        texts = [n for n, error in left.items() if isinstance(error, NoNumbers)]
        texts = [n for n in texts if not is_unread(frame[n])]
        if len(left) == 1 or len(texts) < len(left):
            raise next(left[n] for n in left if len(left) == 1 or n not in texts)
        say = ",".join(f"ignore={name}" for name in texts), "field=NAME"
        raise ask(path, texts, "which are text or dates", "what they are", *say)
    return values


CSV = Format(
    "tables of points (.csv, .csv.gz, .parquet)",
    is_table,
    _read,
    EXPECTED,
    columns="roles",
    reads_marks=True,
)
