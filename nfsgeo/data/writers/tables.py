"""Tables of text and Parquet: a row for each sample, point and time step.

Parameters, the domain and cells have no place in them. Static inputs are called
``a_NAME`` and forcings ``forcing_NAME``, by which they are known again. A unit follows
in brackets, ``T [K]``, where it is read back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas

from nfsgeo.data.conventions import STATION, TIME_ZONE, axis_unit, field_name, role_of
from nfsgeo.data.times import EPOCH, dates
from nfsgeo.data.writers.writer import Writer, marked_names
from nfsgeo.errors import UserError
from nfsgeo.files import growing
from nfsgeo.progress import Progress

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["CSV", "PARQUET"]


def _write_csv(fields: Fields, out: Path, progress: Progress) -> None:
    """A table of text: a row for each sample, point and time step."""
    ahead, names = _header(fields, out)
    with growing(out) as partial:
        head = pandas.DataFrame(columns=_with_units(fields, ahead, names))
        head.to_csv(partial, index=False)
        for table in _tables(fields, ahead, names, progress):
            if table["time"].dtype.kind == "M":  # ISO 8601
                at, z = table["time"].to_numpy(), "Z" * _has_zone(fields)
                units = ("s", "us") if z else ("D", "s", "us")
                fits = (u for u in units if (at.astype(f"M8[{u}]") == at).all())
                texts = at.astype(f"M8[{next(fits)}]").astype(str)
                table["time"] = np.char.add(texts, z)
            table.to_csv(partial, mode="a", header=False, index=False)


def _write_parquet(fields: Fields, out: Path, progress: Progress) -> None:
    """The columns of a ``.csv``."""
    ahead, names = _header(fields, out)
    tables = _tables(fields, ahead, names, progress)
    with growing(out) as partial:
        whole = pandas.concat(tables, ignore_index=True)
        if _has_zone(fields):
            whole["time"] = whole["time"].dt.tz_localize("UTC")
        whole.columns = pandas.Index(_with_units(fields, ahead, names))
        whole.to_parquet(partial, engine="pyarrow", index=False)


def _has_zone(fields: Fields) -> bool:
    """Return whether the dates of fields come with a time zone, which is UTC."""
    times = fields.dataset.variables.get("time")
    return times is not None and fields.time_unit == EPOCH and TIME_ZONE in times.attrs


def _header(fields: Fields, out: Path) -> tuple[list[str], list[str]]:
    """Names of the columns, which have to be read back as what they are."""
    ahead = ["sample"] * (fields.num_samples > 1) + ["time"]
    space = [*fields.space]
    if fields.dataset["x"].attrs.get("standard_name") == "longitude":
        space[:2] = ["lon", "lat"][: len(space)]
    ahead += [STATION] * bool(fields.stations()) + space
    names = marked_names(fields, out, ahead)
    for name in names:
        if role_of(name) or {*name} & {*",;\t"}:
            raise UserError(
                f"a field named {name!r} in {out}",
                "names that are not taken for those of coordinates, time or sample, "
                "without commas, semicolons and tabs",
                "rename the component or choose .nc",
            )
    return ahead, names


def _with_units(fields: Fields, ahead: list[str], names: list[str]) -> list[str]:
    """Names of columns with units, where readers take these for what they are."""
    units = {name: fields.units.get(name, "") for name in ahead}
    inputs = [*fields.forcing_names, *fields.input_names]
    for name, source in zip(names, [*fields.component_names, *inputs], strict=True):
        units[name] = fields.units.get(source, "")

    def label(name: str) -> str:
        column, unit = f"{name} [{units[name]}]", units[name]
        alike = field_name(column) == (name, unit) and not role_of(column)
        if name in ahead:
            alike = axis_unit(column) == unit and role_of(column) == role_of(name)
        return column if unit and alike and not {*unit} & {*",;\t"} else name

    return [label(name) for name in [*ahead, *names]]


def _tables(
    fields: Fields, ahead: list[str], names: list[str], progress: Progress
) -> Iterator[pandas.DataFrame]:
    """The columns of one sample after the other."""
    times, total = dates(fields.times, fields.time_unit), fields.num_samples
    for sample in range(total):
        u, a = fields.read_all(sample, slice(None)), fields.read_inputs(sample)
        points, steps = fields.coordinates(sample), len(times)
        values = [np.full(len(u) * steps, sample)] * (total > 1)
        values += [np.tile(times, len(u))]
        if STATION in ahead:
            values.append(np.repeat(fields.stations(sample), steps))
        values += [*np.repeat(points, steps, axis=0).T]
        values += [*u.reshape(-1, u.shape[-1]).T, *np.repeat(a, steps, axis=0).T]
        yield pandas.DataFrame(dict(zip([*ahead, *names], values, strict=True)))
        progress("exporting samples", sample + 1, total)


CSV = Writer("tables of points (.csv)", (".csv",), _write_csv)
PARQUET = Writer(
    "tables of points (.parquet)", (".parquet",), _write_parquet, ("pyarrow",)
)
