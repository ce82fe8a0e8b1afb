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
    ``a_...``; one number, or one for each sample, is a parameter. Values that fill
    values mark become NaN (CF 1.11, section 2.5.1), dates seconds since 1970. A point
    whose coordinates are NaN does not exist. Text along points names them.

    Args:
        path: The file, for messages.
        dataset: The variables.
        columns: Names of variables by role or kind, see :func:`nfsgeo.data.open`.

    Raises:
        UserError: A dimension is neither time, space nor sample, points move, or a
            variable can be read in two ways, or is complex.
    """
    if not dataset.variables:
        raise ValueError("no variables")
    joined = [n for n, index in dataset.indexes.items() if index.nlevels > 1]
    dataset = dataset.reset_index([n for n in joined if n in dataset.dims])
    dataset = _decoded(dataset.assign(_of_numpy(dataset)))
    names = [*map(str, dict.fromkeys([*dataset.variables, *dataset.dims]))]
    kinds, user_roles = chosen(path, names, columns)
    if "nfsgeo_layout" in dataset.attrs:
        for added in dataset.data_vars.values():
            role = FIELD if "time" in added.dims else STATIC
            added.attrs.setdefault("role", role)
        return own_fields(path, dataset)
    dataset = _without_others(dataset, kinds)
    roles = _roles(path, dataset, user_roles)
    sample, time = (_dimension(path, dataset, r, roles) for r in ("sample", "time"))
    split = None
    if "part" in dataset and dataset["part"].dims == (sample,):
        part = dataset["part"].variable.copy(deep=False)
        part.dims, dataset = ("sample",), dataset.drop_vars("part")
        split = split_of(part_of(part, path))
    space = {a: _still(path, dataset[roles[a]], time) for a in SPACE if a in roles}
    sizes = {str(d): num for at in space.values() for d, num in at.sizes.items()}
    places = {dim: num for dim, num in sizes.items() if dim != sample}
    dims, num = {sample, time, *places}, dataset.sizes.get(sample, 1)
    data, parameters = dict[str, DataArray](), dict[str, Any]()
    for name, values in dataset.drop_vars(roles.values(), errors="ignore").items():
        single = [d for d, num in values.sizes.items() if num == 1 and d not in dims]
        values = values.squeeze(single, drop=True)
        if values.ndim and values.dtype.kind in "biufcm":
            data[str(name)] = values
        elif values.dtype.kind in "iuf" and "grid_mapping_name" not in values.attrs:
            parameters[str(name)] = np.repeat(values.values, num)
    samples = {sample} if "sample" in user_roles else set()
    _check_dims(path, data, time, samples, dims)
    parameters |= {
        n: data.pop(n).values for n, v in data.copy().items() if v.dims == (sample,)
    }
    first = space["x"]
    grid = len(places) == len(space) == sum(at.ndim for at in space.values())
    grid &= len(space) > 1 or first.name == first.dims[0]
    if grid:
        falling = [at.dims[0] for at in space.values() if at.values[0] > at.values[-1]]
        turn = dict.fromkeys(falling, slice(None, None, -1))
        for arrays in (data, space):
            arrays |= {
                n: v.isel(turn, missing_dims="ignore") for n, v in arrays.items()
            }

    def flat(values: DataArray, dims: Any) -> Variable:
        ahead = {str(d): dataset.sizes[d] for d in (sample, time) if d in dims}
        return _at_points(values.variable, ahead, places)

    labels = {str(sample): "sample", str(time): "time", "point": "point"}
    labels |= dict(zip(places, SPACE, strict=False)) if grid else {}
    variables = dict[str, Any]()
    for name, values in data.items():
        kind, in_time = kinds.get(name), time in values.dims
        attrs = {k: v for k, v in values.attrs.items() if k in FLAGS}
        fixed = bool(time) and not in_time and kind != "field"
        fixed |= not kind and (is_static(name) or (FLAGS[0] in attrs and not in_time))
        called = field_name(name)[0] if kind or in_time else name
        attrs |= {"role": STATIC if fixed else FIELD, "components": [called]}
        placed = not grid and (not places or bool(places.keys() & {*values.dims}))
        variable = flat(values, values.dims) if placed else values.variable
        along = [labels[str(dim)] for dim in variable.dims]
        variables[name] = along, variable, attrs | _units(values.variable)
    when = dataset.variables.get(roles.get("time"))
    times = None if when is None else _times(when)
    if when is not None and times is None:
        about = f"{when.attrs['units']} ({when.attrs.get('calendar', 'standard')})"
        left_out(path, [f"times in {about}, which tell no clear date"])
    coordinates, along = dict[str, Any](), ["sample", "point"][sample not in sizes :]
    for axis, values in space.items():
        place = (axis, values.values) if grid else (along, flat(values, sizes))
        coordinates[axis] = *place, _units(values.variable)
    coordinates["time"] = "time", times, {} if when is None else _units(when)
    text = [v for v in dataset.variables.values() if v.dtype.kind in "OSU"]
    stations = [v.values for v in text if not grid and v.dims == tuple(places)]
    coordinates["station"] = "point", stations[0] if stations else None
    fields = to_fields(path, variables, coordinates, parameters=parameters, split=split)
    if _is_degrees(first) or first.attrs.get("standard_name") == "longitude":
        fields.dataset["x"].attrs["standard_name"] = "longitude"
    return mark_longitude(fields, roles["x"])


def _without_others(dataset: Dataset, kinds: Mapping[str, str]) -> Dataset:
    """The variables that users leave in, along dimensions of the fields they name."""
    fields = [name for name, kind in kinds.items() if kind == "field"]
    dims = {d for name in fields for d in dataset[name].dims} or {*dataset.dims}
    names = [n for n, v in dataset.data_vars.items() if dims.issuperset(v.dims)]
    kept = [name for name in names if kinds.get(str(name)) != "ignore"]
    return dataset[kept] if kept else dataset


def _check_dims(
    path: Path,
    data: Mapping[str, DataArray],
    time: str | None,
    samples: set[str | None],
    dims: set[str | None],
) -> None:
    """Raise a UserError if fields have other dimensions than time, space and samples,
    or some of them lack the dimension that a user has named as that of samples.
    """
    moving = [n for n, values in data.items() if not time or time in values.dims]
    for dim in samples | {d for values in data.values() for d in values.dims} - dims:
        along = [name for name, values in data.items() if dim in values.dims]
        without = [name for name in moving if dim not in data[name].dims]
        if along and without:
            raise UserError(
                f"{path} with {along[0]} along {dim}, and {without[0]} not",
                "fields on one grid",
                f"choose: --columns field={without[0]}, or ignore={along[0]}",
            )
        if dim not in samples:
            raise UserError(
                f"{path} with {along[0]} along {dim}, of {data[along[0]].sizes[dim]}",
                "dimensions of samples, time and space alone",
                f"say what it is, --columns sample={dim}, or choose among variables, "
                f"field=NAME or ignore={along[0]}; in Python "
                f'columns={{"sample": "{dim}"}}',
            )


def _units(variable: Variable) -> dict[str, str]:
    """The attribute of the units of a variable, if it has any."""
    unit = str(variable.attrs.get("units", ""))
    return {"units": unit} if unit else {}


def _of_numpy(dataset: Dataset) -> dict[Any, Any]:
    """Convert variables of types that only pandas has: dates of a time zone to UTC,
    categories to their names, integers with missing values to floats with NaN.
    """
    converted = {}
    for name, variable in dataset.variables.items():
        if not isinstance(variable.dtype, np.dtype):
            values: Any = variable.to_index()
            if isinstance(variable.dtype, pandas.DatetimeTZDtype):
                values = values.tz_convert("UTC").tz_localize(None)
            numbers = pandas.api.types.is_numeric_dtype(variable.dtype)
            options = {"dtype": "f8", "na_value": np.nan} if numbers else {}
            array = values.to_numpy(**options)
            converted[name] = variable.dims, array, variable.attrs
    return converted


def _decoded(dataset: Dataset) -> Dataset:
    """Mask missing values, and tell coordinates from fields."""
    whole = dataset.assign(
        {
            name: decoded(v if name in dataset.dims else within_range(v))
            for name, v in dataset.variables.items()
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xarray.decode_cf(whole, decode_times=False, decode_coords="all")


def _roles(path: Path, dataset: Dataset, user_roles: Roles) -> dict[str, str]:
    """The coordinate, or the dimension without one, of each role that there is.

    Users tell it, or else the attributes ``axis``, ``standard_name`` and ``units``, or
    else the name (CF 1.11, section 4).
    """
    names = [*dataset.coords, *dataset.dims]
    names += [n for n, v in dataset.data_vars.items() if _is_degrees(v, "en")]
    free = [str(name) for name in names if name not in user_roles.values()]
    roles = {name: _role(name, dataset) for name in free}
    times = [name for name in roles if roles[name] == "time"]
    # The axis goes before other times, such as the start of a forecast.
    with_axes = {name for name, v in dataset.variables.items() if v.ndim}
    for better in (dataset.variables, with_axes, dataset.dims):
        times = [name for name in times if name in better] or times
    axes = [n for n in roles if n in dataset.variables and dataset[n].ndim]
    fitting = {"time": times, "sample": roles, **dict.fromkeys(SPACE, axes)}
    # A single level is no axis, nor is a dimension without a coordinate.
    fitting["z"] = [n for n in axes if dataset[n].size > 1 or dataset[n].dims != (n,)]
    roles = {n: role for n, role in roles.items() if n in fitting.get(role, ())}
    return roles_of(path, [*map(str, dataset.variables)], user_roles, roles)


def _role(name: str, dataset: Dataset) -> str:
    """The role that attributes of a coordinate tell, or else its name."""
    values = dataset[name]
    about = {key: str(value).lower() for key, value in values.attrs.items()}
    standard, axis = about.get("standard_name", ""), about.get("axis", "")
    if axis in AXES or standard in STANDARD:
        return AXES.get(axis) or STANDARD[standard]
    if _is_degrees(values, "en"):
        return "x" if _is_degrees(values) else "y"
    if "since" in about.get("units", "").split() or values.dtype.kind == "M":
        return "time"
    return role_of(name)


def _is_degrees(values: DataArray, directions: str = "e") -> bool:
    match = DEGREES.fullmatch(str(values.attrs.get("units", "")).lower())
    return match is not None and match[1] in directions


def _dimension(path: Path, dataset: Dataset, role: str, roles: Roles) -> str | None:
    """The dimension of time or samples, None where there is none."""
    name = roles.get(role)
    dims = dataset[name].dims if name in dataset.variables else (name,)
    if len(dims) > 1:
        given = f"{path} with {role} {name} along {' and '.join(map(str, dims))}"
        raise UserError(given, "one dimension", f"name another, --columns {role}=NAME")
    return str(dims[0]) if dims and dims[0] else None


def _still(path: Path, values: DataArray, time: str | None) -> DataArray:
    """A coordinate without the dimension of time, along which it has to be constant."""
    first = values.isel({time: 0}, drop=True, missing_dims="ignore")
    if not first.variable.broadcast_equals(values.variable):
        given = f"{path} with points that move, {values.name} along {time}"
        todo = "leave out time steps at other points, or interpolate to fixed ones"
        raise UserError(given, "points that stay where they are", todo)
    return first


def _at_points(values: Variable, ahead: Sizes, places: Sizes) -> Variable:
    """Flatten the dimensions of space into one, repeating values where one lacks."""
    whole = spread(values, {**ahead, **places})
    dims, shape = [*ahead, "point"], [*ahead.values(), prod(places.values())]
    if len(places) == 1:
        return Variable(dims, whole)
    return deferred(dims, shape, values.dtype, partial(_flat, whole, len(ahead)))


def _flat(values: Variable, num: int, key: Key) -> NDArray[Any]:
    taken = values[key[:num]].values
    ahead = taken.shape[: sum(isinstance(index, slice) for index in key[:num])]
    return np.asarray(taken.reshape(*ahead, -1)[..., key[-1]])


def _times(variable: Variable) -> Any:
    """Dates, or numbers where the file tells no date; None where dates are unclear: in
    months, in a calendar with other years, since a date that does not exist.
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
        arrays = [item for item in file.values() if isinstance(item, h5py.Dataset)]
        scales = [item.attrs.get("CLASS") == b"DIMENSION_SCALE" for item in arrays]
        return "_NCProperties" in file.attrs or any(scales)


def _netcdf(path: Path, columns: Columns | None = None) -> Fields:
    """Read a NetCDF file, with a warning that names its groups, which are not read."""
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
    for name, variable in dataset.variables.items():
        marked = "_FillValue" in group[str(name)].attrs
        if not marked and variable.attrs.get("_FillValue") == 0:
            del variable.attrs["_FillValue"]
    return fields_of(path, dataset, columns)


def _is_zarr(probe: FileProbe) -> bool:
    return bool(probe.zipped & STORE) or any((probe.path / n).exists() for n in STORE)


NETCDF = Format("NetCDF (.nc)", _is_netcdf, _netcdf, columns="roles")
ZARR = Format("Zarr (.zarr)", _is_zarr, _zarr, columns="roles", needs=("zarr",))
