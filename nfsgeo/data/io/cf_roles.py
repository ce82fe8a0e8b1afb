"""Roles of coordinates in a data set, time, space and sample, by the CF conventions."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from xarray import DataArray, Dataset

from nfsgeo.data.conventions import (
    LONGITUDE,
    SPACE,
    bare_name,
    counts_from_date,
    role_of,
)
from nfsgeo.data.io.format import left_out
from nfsgeo.data.io.roles import likely_columns, roles_of
from nfsgeo.errors import UserError, option

__all__ = ["LARGE", "check_dims", "coordinate_roles", "dimension", "is_coordinate"]
__all__ += [
    "closed",
    "without_repeats",
    "is_longitude",
    "located",
    "rising",
    "station_names",
    "still",
    "with_times",
]

Roles = Mapping[str, str]
Sizes = Mapping[str, int]

AXES = {"t": "time", "x": "x", "y": "y", "z": "z"}
STANDARD = {
    "realization": "sample",
    "time": "time",
    **dict.fromkeys(("longitude", "grid_longitude", "projection_x_coordinate"), "x"),
    **dict.fromkeys(("latitude", "grid_latitude", "projection_y_coordinate"), "y"),
}
LARGE = 1e20
BLOCK = 2**22  # values that are read at once to compare them
SHARED = 4  # points of a curvilinear grid at one place, where it is folded
# Fill values of models, nearly: powers of ten, netCDF's, the largest of all numbers.
FILLED = re.compile(r"(1\.00000|9\.96921|3\.40282|1\.79769)e\+\d+")
RADIANS = re.compile("(?i)[cev]?(lon|lat)")
MEMBERS = "(?i)(ensemble|member|number|realization|realisation|sample|expver|run|model)"
MEMBERS += "s?(_?(id|number|member|index))?"
LEAD = "forecast_period"
PLATFORMS = ("platform_id", "platform_name", "station_wmo_id")
DEGREES = re.compile("degrees?_?(e|n)(ast|orth)?")


def coordinate_roles(
    path: Path, dataset: Dataset, user_roles: Roles, kinds: Mapping[str, str]
) -> dict[str, str]:
    """The coordinate, or the dimension without one, of each role that there is.

    Users tell it, or else the attributes ``axis``, ``standard_name`` and ``units``, or
    else the name (CF 1.11, section 4). Those that ``coordinates`` of the fields name go
    before others.
    """
    names = [*dataset.coords, *dataset.dims]
    names += [n for n, v in dataset.data_vars.items() if is_coordinate(v)]
    free = [str(name) for name in names if name not in user_roles.values()]
    roles = {name: _role(name, dataset) for name in free}
    times = [name for name in roles if roles[name] == "time"]
    axes = [n for n in roles if n in dataset.variables and dataset[n].ndim]
    # The axis goes before other times, such as the start of a forecast.
    for better in (dataset.variables, axes, dataset.dims):
        times = [name for name in times if name in better] or times
    fitting = {"time": times, "sample": roles, **dict.fromkeys(SPACE, axes)}
    # A single level is no axis, nor is a dimension without a coordinate.
    fitting["z"] = [n for n in axes if dataset[n].size > 1 or dataset[n].dims != (n,)]
    fields = [n for n, kind in kinds.items() if kind == "field"] or [*dataset]
    named = {n for f in fields for n in _coordinates_of(dataset[f])} | {*dataset.dims}
    for role in SPACE:
        several = [n for n in fitting[role] if roles[n] == role]
        best = [n for n in several if n in named] or several
        fitting[role] = best if named.isdisjoint(user_roles.values()) else several
    roles = {n: role for n, role in roles.items() if n in fitting.get(role, ())}
    bare = [str(d) for d in dataset.dims if d not in {*dataset.variables, *roles}]
    if "x" not in {*roles.values(), *user_roles} and bare:
        raise _unplaced(path, dataset, fields, bare)
    return roles_of(path, [*map(str, dataset.variables)], user_roles, roles)


def _unplaced(path: Path, dataset: Dataset, fields: Any, bare: list[str]) -> UserError:
    """Return the error about ``bare`` dimensions, which have no coordinates."""
    last = max((dataset[name].dims for name in fields), key=len, default=bare)
    along = [d for d in reversed(last) if d in bare] or bare[::-1]
    dims = ",".join(f"{a}={d}" for a, d in zip(SPACE, along, strict=False))
    likely = likely_columns([*map(str, dataset.variables)], "xy")
    answer = ",".join(f"{axis}={likely.get(axis, 'NAME')}" for axis in "xy")
    given = f"{path} with {', '.join(bare)} without coordinates"
    todo = f"name variables that hold them, {option('columns', answer)}, or "
    todo += f"number the steps along dimensions, {option('columns', dims)}"
    return UserError(given, "coordinates x[, y[, z]]", todo)


def is_coordinate(values: DataArray) -> bool:
    """Return whether attributes mark a variable as a coordinate."""
    marked = values.attrs.get("axis") in ("X", "Y", "Z", "T")
    marked |= values.attrs.get("standard_name") in STANDARD
    return bool(values.ndim) and (marked or _is_degrees(values, "en"))


def _role(name: str, dataset: Dataset) -> str:
    """The role that attributes of a coordinate tell, or else its name."""
    values = dataset[name]
    about = {key: str(value).lower() for key, value in values.attrs.items()}
    standard, axis = about.get("standard_name", ""), about.get("axis", "")
    if axis in AXES or standard in STANDARD:
        return AXES.get(axis) or STANDARD[standard]
    if _is_degrees(values, "en"):
        return "x" if _is_degrees(values) else "y"
    if counts_from_date(about.get("units", "")) or values.dtype.kind == "M":
        return "time"
    return role_of(name)


def _coordinates_of(field: DataArray) -> list[str]:
    """The coordinates that the attribute ``coordinates`` of a field names."""
    return str({**field.attrs, **field.encoding}.get("coordinates", "")).split()


def is_longitude(values: DataArray) -> bool:
    """Return whether attributes or the name of a coordinate call it a longitude."""
    called = values.attrs.get("standard_name", bare_name(str(values.name)))
    return _is_degrees(values) or called in LONGITUDE


def _is_degrees(values: DataArray, directions: str = "e") -> bool:
    match = DEGREES.fullmatch(str(values.attrs.get("units", "")).lower())
    return match is not None and match[1] in directions


def dimension(path: Path, dataset: Dataset, role: str, roles: Roles) -> str | None:
    """The dimension of time or samples, None where there is none."""
    name = roles.get(role)
    dims = dataset[name].dims if name in dataset.variables else (name,)
    if role == "sample" and name in dims:  # levels of FVCOM have heights at each point
        dims = (name,)
    if len(dims) > 1:
        given = f"{path} with {role} {name} along {' and '.join(map(str, dims))}"
        todo = f"name another, {option('columns', f'{role}=NAME')}"
        raise UserError(given, "one dimension", todo)
    return str(dims[0]) if dims and dims[0] else None


def still(path: Path, values: DataArray, time: str | None) -> DataArray:
    """A coordinate without the dimension of time, along which it has to be constant."""
    if time and values.dims == (time,) and values.size > 1:
        given = f"{path} with a place of its own at each {time}, by {values.name}"
        todo = "interpolate profiles or trajectories to points, at common times; make "
        todo += "a table of stations, xarray.open_dataset(...).to_dataframe().to_csv()"
        raise UserError(given, "points that stay where they are", todo)
    first = values.isel({time: 0}, drop=True, missing_dims="ignore")
    if not first.variable.broadcast_equals(values.variable):
        given = f"{path} with points that move, {values.name} along {time}"
        todo = "leave out time steps at other points, or interpolate to fixed ones"
        raise UserError(given, "points that stay where they are", todo)
    return first


def with_times(path: Path, dataset: Dataset, name: str) -> Dataset:
    """The data set without time steps whose time is missing, of which a line tells."""
    when = dataset.variables.get(name)
    if when is None or when.ndim != 1:
        return dataset
    absent = pandas.isnull(when.values)
    if not absent.any():
        return dataset
    left_out(path, [f"{absent.sum()} of {absent.size} time steps, without {name}"])
    return dataset.isel({when.dims[0]: np.flatnonzero(~absent)})


def located(path: Path, values: DataArray) -> DataArray:
    """A coordinate with NaN for fill values that no attribute tells, in degrees where
    it is a longitude or latitude in radians.
    """
    here = values.values
    if here.dtype.kind != "f":
        return values
    large = np.unique(here[np.abs(here) >= LARGE])
    fills = [v for v in large.tolist() if FILLED.fullmatch(f"{abs(v):.5e}")]
    here = np.where(np.isin(here, fills), np.nan, here) if fills else here
    if np.isnan(here).all():
        given = f"{path} with {values.name}, none of whose values was written"
        other = option("columns", "x=NAME,y=NAME")
        todo = f"write them, or name other coordinates, {other}"
        raise UserError(given, "coordinates of the points", todo)
    placed = values.copy(data=here) if fills else values
    if str(values.attrs.get("units", "")).startswith("rad") and (
        RADIANS.match(str(values.attrs.get("standard_name", values.name)))
    ):
        placed = placed.copy(data=np.degrees(here)).assign_attrs(units="degrees")
    return placed


def without_repeats(
    path: Path, space: Mapping[str, DataArray]
) -> tuple[dict[str, DataArray], Any]:
    """Coordinates of a curvilinear grid, NaN at a place that more than a few points
    have, such as (0, 0) of points on land in NEMO, of which a line tells.

    Returns:
        The coordinates, and which of the points, one after the other, lost theirs.
    """
    first, *others = space.values()
    if not others or first.ndim < 2 or any(at.dims != first.dims for at in others):
        return dict(space), np.False_
    points = np.stack([at.values.ravel() for at in space.values()], -1).astype(float)
    exists = np.isfinite(points).all(axis=1)
    places, number, counts = np.unique(
        points, axis=0, return_inverse=True, return_counts=True
    )
    hidden = exists & (counts[number.reshape(-1)] > SHARED)
    if not hidden.any() or hidden[exists].all():
        return dict(space), np.False_
    where = np.unique(points[hidden], axis=0).tolist()
    some = ", ".join("({:g}, {:g})".format(*place[:2]) for place in where)
    left_out(path, [f"{hidden.sum()} of {hidden.size} points, which share {some}"])
    axes = {}
    for axis, at in space.items():
        axes[axis] = at.copy(data=np.where(hidden.reshape(at.shape), np.nan, at.values))
    return axes, hidden


def closed(path: Path, axis: DataArray, fields: list[DataArray]) -> Any:
    """The index without the last longitude where it is the first again, with the same
    values everywhere, of which a line tells; None elsewhere.
    """
    here, dim = np.asarray(axis.values, float), axis.dims[0]
    if here.size < 3 or not np.isclose(abs(here[-1] - here[0]), 360, rtol=0, atol=1e-3):
        return None
    for values in (v for v in fields if dim in v.dims):
        both = values.isel({dim: slice(None, None, here.size - 1)})
        along = next((d for d in both.dims if d != dim), dim)
        rows = max(1, BLOCK * both.sizes[along] // max(both.size, 1))
        for begin in range(0, both.sizes[along] if along != dim else 1, rows):
            part = slice(begin, begin + rows) if along != dim else slice(None)
            some = both.isel({along: part}).transpose(dim, ...).values.astype(float)
            least = 1e-6 * np.abs(some).max(initial=0, where=np.isfinite(some))
            first, last = some
            if not np.allclose(first, last, atol=least, equal_nan=True):
                return None
    left_out(path, [f"{axis.name} {here[-1]:g}, which is {here[0]:g} again"])
    return {dim: slice(0, -1)}


def rising(path: Path, axis: DataArray) -> Any:
    """The index by which an axis of a grid rises."""
    here = np.asarray(axis.values, float)
    if absent := int(np.isnan(here).sum()):
        given = f"{path} with {absent} of {here.size} values of {axis.name} missing"
        todo = f"leave these steps along {axis.dims[0]} out, or give their {axis.name}"
        raise UserError(given, "a coordinate for each step along an axis", todo)
    steps = np.diff(here)
    if (steps > 0).all() or (steps < 0).all():
        return slice(None, None, -1 if (steps < 0).any() else 1)
    return np.argsort(here, kind="stable")


def station_names(
    dataset: Dataset, dims: tuple[str, ...], kinds: Mapping[str, str]
) -> list[Hashable]:
    """The variables that name points: identifiers of CF, then text that tells apart."""
    fits = [
        n for n, v in dataset.variables.items() if v.dims == dims and n not in kinds
    ]
    ids = [n for n in fits if dataset[n].attrs.get("cf_role") == "timeseries_id"]
    ids += [n for n in fits if dataset[n].attrs.get("standard_name") in PLATFORMS]
    text = [n for n in fits if dataset[n].dtype.kind in "OSU"]
    text = [n for n in text if len(np.unique(dataset[n])) == dataset[n].size]
    return [*dict.fromkeys(ids + text)]


def _is_member(dataset: Dataset, dim: Any) -> bool:
    """Return whether steps along a dimension are samples by its name, or have names."""
    named = dim in dataset.variables and dataset[dim].dtype.kind in "OSU"
    return named or re.fullmatch(MEMBERS, str(dim)) is not None


def check_dims(
    path: Path,
    dataset: Dataset,
    data: Mapping[str, DataArray],
    kinds: Mapping[str, str],
    time: str | None,
    samples: set[str | None],
    dims: set[str | None],
    axes: int,
) -> None:
    """Raise a UserError if fields have other dimensions than time, space and samples,
    or some of them lack the dimension that a user has named as that of samples.
    """
    moving = [n for n, values in data.items() if not time or time in values.dims]
    field_dims = dict.fromkeys(d for values in data.values() for d in values.dims)
    for dim in dict.fromkeys([*samples, *(d for d in field_dims if d not in dims)]):
        along = [name for name, values in data.items() if dim in values.dims]
        without = [name for name in moving if dim not in data[name].dims]
        if along and without:
            answers = [f"field={without[0]}", f"field={along[0]}"]
            choice = option("columns", *answers, f"ignore={along[0]}")
            if "field" in kinds.values():
                choice = f"{option('columns', *answers)} alone"
            raise UserError(
                f"{path} with {along[0]} along {dim}, and {without[0]} not",
                "fields on one grid",
                f"choose: {choice}",
            )
        if dim not in samples:
            if dim == "expver":
                given = f"{path} along expver, final and preliminary values of ERA5"
                todo = "merge them: dataset.sel(expver=1).combine_first("
                todo += "dataset.sel(expver=5)), and nfsgeo.from_xarray"
                raise UserError(given, "one value at each time", todo)
            axis = SPACE[axes] if axes < 3 and not _is_member(dataset, dim) else ""
            readings = [f"{axis}={dim}"] if axis else []
            numbered = axis and dim in dataset.variables  # an axis rather than samples
            readings.insert(len(readings) if numbered else 0, f"sample={dim}")
            lead = dataset[dim] if dim in dataset.variables else DataArray()
            if lead.dtype.kind == "m" or lead.attrs.get("standard_name") == LEAD:
                readings = [f"time={dim},sample={time}"]
            several = [d for d in data[along[0]].dims if _is_member(dataset, d)]
            if len(several) > 1:
                members = " and ".join(map(str, several))
                given = f"{path} with {along[0]} along {members}"
                both = ", ".join(f'"{d}"' for d in several)
                one = f'dataset.stack(s=({both})), columns={{"sample": "s"}}'
                todo = f"make one of them, nfsgeo.from_xarray({one}), or "
                todo += f"dataset.isel({several[-1]}=0)"
                raise UserError(given, "one dimension of samples", todo)
            if "field" not in kinds.values():
                readings += [f"ignore={along[0]}"]
            answers = [option("columns", reading) for reading in readings]
            raise UserError(
                f"{path} with {along[0]} along {dim}, of {data[along[0]].sizes[dim]}",
                "dimensions of samples, time and space alone",
                f"say what it is, {', or '.join(answers)}, or choose one, "
                f"dataset.isel({dim}=0)",
            )
