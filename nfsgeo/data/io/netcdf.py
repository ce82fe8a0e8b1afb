"""NetCDF and Zarr by xarray: gridded fields, stations and unstructured meshes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import xarray
from numpy.typing import NDArray
from xarray import DataArray, Dataset, Variable

from nfsgeo.data.conventions import (
    FIELD,
    FLAGS,
    SPACE,
    STATIC,
    field_name,
    is_static,
    role_of,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import decoded, within_range
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.own_files import own_fields
from nfsgeo.data.io.roles import Columns, chosen, mark_longitude, roles_of
from nfsgeo.data.lazy import Key, deferred, spread
from nfsgeo.data.splits import part_of, split_of
from nfsgeo.errors import UserError

__all__ = ["NETCDF", "ZARR", "fields_of"]

Roles = Mapping[str, str]
Sizes = Mapping[str, int]

STORE = {".zgroup", ".zmetadata", "zarr.json"}
AXES = {"t": "time", "x": "x", "y": "y", "z": "z"}
STANDARD = {
    "realization": "sample",
    "time": "time",
    **dict.fromkeys(("longitude", "grid_longitude", "projection_x_coordinate"), "x"),
    **dict.fromkeys(("latitude", "grid_latitude", "projection_y_coordinate"), "y"),
}
DEGREES = re.compile("degrees?_?(e|n)(ast|orth)?")


def fields_of(path: Path, dataset: Dataset, columns: Columns | None = None) -> Fields:
    """The fields of a data set, decoded by xarray or as it is stored.

    Coordinates on axes of their own make a grid, those on shared dimensions (stations,
    cells of an unstructured mesh, curvilinear grids) a point cloud. Fields that vary
    in time are predicted, the others are static inputs, and so are those named ``a`` or
    ``a_...``; one number, or one for each sample, is a parameter. What the file marks
    by fill values becomes NaN (CF 1.11, section 2.5.1), dates seconds since 1970. A
    point whose coordinates are NaN does not exist. Text along points are their names.
    ``columns`` are those of :func:`nfsgeo.data.open`, ``path`` is for messages.

    Raises:
        UserError: A dimension is neither time, space nor sample, points move, or a
            variable can be read in two ways, or is complex.
    """
    if not dataset.variables:
        raise ValueError("no variables")
    joined = [n for n, each in dataset.indexes.items() if each.nlevels > 1]
    dataset = dataset.reset_index([n for n in joined if n in dataset.dims])
    dataset = _decoded(dataset.assign(_of_numpy(dataset)))
    there = [*map(str, dict.fromkeys([*dataset.variables, *dataset.dims]))]
    kinds, given = chosen(path, there, columns)
    if "nfsgeo_layout" in dataset.attrs:
        for added in dataset.data_vars.values():
            role = FIELD if "time" in added.dims else STATIC
            added.attrs.setdefault("role", role)
        return own_fields(path, dataset)
    wanted = [name for name, kind in kinds.items() if kind == "field"]
    along = {d for name in wanted for d in dataset[name].dims} or {*dataset.dims}
    fits = [n for n, v in dataset.data_vars.items() if along.issuperset(v.dims)]
    if left := [name for name in fits if kinds.get(str(name)) != "ignore"]:
        dataset = dataset[left]  # and their coordinates
    roles = _roles(path, dataset, given)
    sample, time = (_dimension(path, dataset, r, roles) for r in ("sample", "time"))
    split = None
    if "part" in dataset and dataset["part"].dims == (sample,):
        part = dataset["part"].variable.copy(deep=False)
        part.dims, dataset = ("sample",), dataset.drop_vars("part")
        split = split_of(part_of(part, path))
    space = {a: _still(path, dataset[roles[a]], time) for a in SPACE if a in roles}
    sizes = {str(d): num for each in space.values() for d, num in each.sizes.items()}
    places = {dim: num for dim, num in sizes.items() if dim != sample}
    known, data = {sample, time, *places}, dict[str, DataArray]()
    parameters, num = dict[str, Any](), dataset.sizes.get(sample, 1)
    for name, values in dataset.drop_vars(roles.values(), errors="ignore").items():
        alone = [d for d, num in values.sizes.items() if num == 1 and d not in known]
        values = values.squeeze(alone, drop=True)
        if values.ndim and values.dtype.kind in "biufcm":
            data[str(name)] = values
        elif values.dtype.kind in "iuf" and "grid_mapping_name" not in values.attrs:
            parameters[str(name)] = np.repeat(values.values, num)
    told = {sample} if "sample" in given else set()
    for dim in told | {d for each in data.values() for d in each.dims} - known:
        with_it = [name for name, each in data.items() if dim in each.dims]
        moving = [n for n, each in data.items() if not time or time in each.dims]
        without = [name for name in moving if dim not in data[name].dims]
        name = with_it[0] if with_it else ""
        if name and without:
            raise UserError(
                f"{path} with {name} along {dim}, and {without[0]} not",
                "fields on one grid",
                f"choose: --columns field={without[0]}, or ignore={name}",
            )
        if dim not in told:
            raise UserError(
                f"{path} with {name} along {dim}, of {dataset.sizes[dim]}",
                "dimensions of samples, time and space alone",
                f"say what it is, --columns sample={dim}, or choose among variables, "
                f'field=NAME or ignore={name}; in Python columns={{"sample": "{dim}"}}',
            )
    first = space["x"]
    grid = len(places) == len(space) == sum(each.ndim for each in space.values())
    grid &= len(space) > 1 or first.name == first.dims[0]
    if grid:
        falling = [v.dims[0] for v in space.values() if v.values[0] > v.values[-1]]
        turn = dict.fromkeys(falling, slice(None, None, -1))
        for each in (data, space):
            each |= {n: v.isel(turn, missing_dims="ignore") for n, v in each.items()}

    def flat(values: DataArray, dims: Any) -> Variable:
        ahead = {str(d): dataset.sizes[d] for d in (sample, time) if d in dims}
        return _at_points(values.variable, ahead, places)

    labels = {str(sample): "sample", str(time): "time", "point": "point"}
    labels |= dict(zip(places, SPACE, strict=False)) if grid else {}
    variables = dict[str, Any]()
    for name, values in data.items():
        if values.dims == (sample,):
            parameters[name] = values.values
            continue
        kind = kinds.get(name)
        fixed = bool(time) and time not in values.dims and kind != "field"
        attrs = {k: v for k, v in values.attrs.items() if k in FLAGS}
        marked = is_static(name) or FLAGS[0] in attrs and time not in values.dims
        fixed |= marked and not kind
        lies = not grid and (not places or bool(places.keys() & {*values.dims}))
        variable = flat(values, values.dims) if lies else values.variable
        called = field_name(name)[0] if kind or time in values.dims else name
        attrs |= {"role": STATIC if fixed else FIELD, "components": [called]}
        attrs |= _units(values.variable)
        variables[name] = [labels[str(dim)] for dim in variable.dims], variable, attrs
    when = dataset.variables.get(roles.get("time"))
    times = None if when is None else _times(when)
    if when is not None and times is None:
        about = f"{when.attrs['units']} ({when.attrs.get('calendar', 'standard')})"
        left_out(path, [f"times in {about}, which tell no clear date"])
    coordinates, dims = dict[str, Any](), ("sample", "point")[sample not in sizes :]
    for axis, values in space.items():
        place = (axis, values.values) if grid else (dims, flat(values, sizes))
        coordinates[axis] = *place, _units(values.variable)
    coordinates["time"] = "time", times, {} if when is None else _units(when)
    text = [v for v in dataset.variables.values() if v.dtype.kind in "OSU"]
    names = [v.values for v in text if not grid and v.dims == tuple(places)]
    coordinates["station"] = "point", names[0] if names else None
    fields = to_fields(path, variables, coordinates, parameters=parameters, split=split)
    if _is_degrees(first) or first.attrs.get("standard_name") == "longitude":
        fields.dataset["x"].attrs["standard_name"] = "longitude"
    return mark_longitude(fields, roles["x"])


def _units(variable: Variable) -> dict[str, str]:
    """The attribute of the units of a variable, if it has any."""
    unit = str(variable.attrs.get("units", ""))
    return {"units": unit} if unit else {}


def _of_numpy(dataset: Dataset) -> dict[Any, Any]:
    """Variables of types that pandas alone has, in those of numpy: dates of a time zone
    in UTC, categories as what they are called, numbers with NaN.
    """
    found = {}
    for name, each in dataset.variables.items():
        if not isinstance(each.dtype, np.dtype):
            values: Any = each.to_index()
            if isinstance(each.dtype, pandas.DatetimeTZDtype):
                values = values.tz_convert("UTC").tz_localize(None)
            numbers = pandas.api.types.is_numeric_dtype(each.dtype)
            options = {"dtype": "f8", "na_value": np.nan} if numbers else {}
            found[name] = (each.dims, values.to_numpy(**options), each.attrs)
    return found


def _decoded(dataset: Dataset) -> Dataset:
    """Mask missing values, and tell coordinates from fields."""
    found = {
        name: decoded(each if name in dataset.dims else within_range(each))
        for name, each in dataset.variables.items()
    }
    whole = dataset.assign(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xarray.decode_cf(whole, decode_times=False, decode_coords="all")


def _roles(path: Path, dataset: Dataset, given: Roles) -> dict[str, str]:
    """The coordinate, or the dimension without one, of each role that there is.

    Told by the attributes ``axis``, ``standard_name`` and ``units``, then by the name
    (CF 1.11, section 4), or by the user.
    """
    names = [*dataset.coords, *dataset.dims]
    names += [n for n, v in dataset.data_vars.items() if _is_degrees(v, "en")]
    told = {str(n): _role(str(n), dataset) for n in names if n not in given.values()}
    times = [name for name in told if told[name] == "time"]
    # The axis, before what else tells when the data are from, of a forecast its start.
    along = {name for name, v in dataset.variables.items() if v.ndim}
    for better in (dataset.variables, along, dataset.dims):
        times = [name for name in times if name in better] or times
    lie = [n for n in told if n in dataset.variables and dataset[n].ndim]
    kept = {"time": times, "sample": told, **dict.fromkeys(SPACE, lie)}
    # A single level is no axis, as one without attributes is none.
    kept["z"] = [n for n in lie if dataset[n].size > 1 or dataset[n].dims != (n,)]
    told = {n: role for n, role in told.items() if n in kept.get(role, ())}
    return roles_of(path, [*map(str, dataset.variables)], given, told)


def _role(name: str, dataset: Dataset) -> str:
    each = dataset[name]
    about = {key: str(value).lower() for key, value in each.attrs.items()}
    standard, axis = about.get("standard_name", ""), about.get("axis", "")
    if axis in AXES or standard in STANDARD:
        return AXES.get(axis) or STANDARD[standard]
    if _is_degrees(each, "en"):
        return "x" if _is_degrees(each) else "y"
    if "since" in about.get("units", "").split() or each.dtype.kind == "M":
        return "time"
    return role_of(name)


def _is_degrees(values: DataArray, towards: str = "e") -> bool:
    found = DEGREES.fullmatch(str(values.attrs.get("units", "")).lower())
    return found is not None and found[1] in towards


def _dimension(path: Path, dataset: Dataset, role: str, roles: Roles) -> str | None:
    """The dimension of time or samples, None where there is none."""
    name = roles.get(role)
    dims = dataset[name].dims if name in dataset.variables else (name,)
    if len(dims) > 1:
        given = f"{path} with {role} {name} along {' and '.join(map(str, dims))}"
        raise UserError(given, "one dimension", f"name another, --columns {role}=NAME")
    return str(dims[0]) if dims and dims[0] else None


def _still(path: Path, values: DataArray, time: str | None) -> DataArray:
    """A coordinate without time, along which it stays."""
    first = values.isel({time: 0}, drop=True, missing_dims="ignore")
    if not first.variable.broadcast_equals(values.variable):
        given = f"{path} with points that move, {values.name} along {time}"
        todo = "leave out time steps at other points, or interpolate to fixed ones"
        raise UserError(given, "points that stay where they are", todo)
    return first


def _at_points(values: Variable, ahead: Sizes, places: Sizes) -> Variable:
    """Its dimensions of space made one behind the others, the same where constant."""
    whole = spread(values, {**ahead, **places})
    dims, shape = [*ahead, "point"], [*ahead.values(), prod(places.values())]
    if len(places) == 1:
        return Variable(dims, whole)
    return deferred(dims, shape, values.dtype, partial(_flat, whole, len(ahead)))


def _flat(values: Variable, num: int, key: Key) -> NDArray[Any]:
    taken = values[key[:num]].values
    kept = sum(isinstance(each, slice) for each in key[:num])
    return np.asarray(taken.reshape(*taken.shape[:kept], -1)[..., key[-1]])


def _times(variable: Variable) -> Any:
    """Dates, or numbers where the file tells no date; None where it is not clear which:
    in months, in a calendar with other years, from a date that is none.
    """
    unit, values = str(variable.attrs.get("units", "")), np.atleast_1d(variable.values)
    if "since" in unit.split() and values.dtype.kind in "iuf":
        alone = Dataset({"when": ("time", values, variable.attrs)})
        try:
            values = xarray.decode_cf(alone, decode_timedelta=False)["when"].values
        except (ValueError, OverflowError):
            return None
        if values.dtype == np.dtype("M8[ns]"):  # fractions of a unit are not exact
            values = (values + np.timedelta64(500, "ns")).astype("M8[us]")
    return None if values.dtype == object else values


def _is_netcdf(probe: FileProbe) -> bool:
    """Classic NetCDF, or HDF5 with the dimension scales of NetCDF-4."""
    if not probe.is_hdf5:
        return probe.head[:3] == b"CDF" and probe.head[3] in (1, 2, 5)
    with h5py.File(probe.path, "r") as file:
        members = [each for each in file.values() if isinstance(each, h5py.Dataset)]
        scales = [each.attrs.get("CLASS") == b"DIMENSION_SCALE" for each in members]
        return "_NCProperties" in file.attrs or any(scales)


def _netcdf(path: Path, columns: Columns | None = None) -> Fields:
    """Fields of a NetCDF file; a warning names groups, which are not read."""
    classic = not h5py.is_hdf5(path)
    if not classic:
        with h5py.File(path, "r") as file:
            left_out(path, [n for n, v in file.items() if isinstance(v, h5py.Group)])
    engine = "scipy" if classic else "h5netcdf"
    dataset = xarray.open_dataset(path, engine=engine, decode_cf=False, cache=False)
    return fields_of(path, dataset, columns)


def _zarr(path: Path, columns: Columns | None = None) -> Fields:
    """Read a folder or a zip file of Zarr as NetCDF is read.

    A ``fill_value`` of 0, Zarr's default, masks values only where an attribute says so.
    """
    import zarr

    store: Any = zarr.storage.ZipStore(path, mode="r") if path.is_file() else path
    group = zarr.open_group(store, mode="r")
    options: dict[str, Any] = {"engine": "zarr", "consolidated": False}
    dataset = xarray.open_dataset(store, **options, decode_cf=False, cache=False)
    for name, each in dataset.variables.items():
        told = "_FillValue" in group[str(name)].attrs
        if not told and each.attrs.get("_FillValue") == 0:
            del each.attrs["_FillValue"]
    return fields_of(path, dataset, columns)


def _is_zarr(probe: FileProbe) -> bool:
    return bool(probe.zipped & STORE) or any((probe.path / n).exists() for n in STORE)


NETCDF = Format("NetCDF (.nc)", _is_netcdf, _netcdf, columns="roles")
ZARR = Format("Zarr (.zarr)", _is_zarr, _zarr, columns="roles", needs=("zarr",))
