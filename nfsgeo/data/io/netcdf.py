"""NetCDF and Zarr by xarray: gridded fields, stations and unstructured meshes."""

from __future__ import annotations

import warnings
from functools import partial
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import xarray
from numpy.typing import NDArray
from xarray import DataArray, Dataset, Variable

from nfsgeo.data.conventions import FIELD, FLAGS, SPACE, STATIC, field_name, is_static
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import (
    check_filters,
    decoded,
    default_fill,
    marked,
    with_default_fill,
    within_range,
)
from nfsgeo.data.io.cf_roles import (
    LARGE,
    Roles,
    Sizes,
    check_dims,
    closed,
    coordinate_roles,
    dimension,
    is_coordinate,
    is_longitude,
    located,
    rising,
    station_names,
    still,
    with_times,
    without_repeats,
)
from nfsgeo.data.io.cf_times import times_of, times_of_text
from nfsgeo.data.io.flags import flag_attrs, quantities
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.own_files import own_fields
from nfsgeo.data.io.roles import Columns, chosen, mark_longitude, unwrapped
from nfsgeo.data.lazy import Key, deferred, opened_hdf5, read_hdf5, spread
from nfsgeo.data.other_files import check_size
from nfsgeo.data.splits import part_of, split_of
from nfsgeo.errors import UserError

__all__ = ["NETCDF", "ZARR", "fields_of"]

# Files that are taken for NetCDF, by how they begin, and what turns them into it.
OTHER_FORMATS = {
    b"GRIB": (
        "a GRIB file",
        "convert it: grib_to_netcdf -o NAME.nc {0}, cdo -f nc4 copy {0} NAME.nc, or "
        'nfsgeo.from_xarray(xarray.open_dataset("{0}", engine="cfgrib"))',
    ),
    b"\x0e\x03\x13\x01": (
        "an HDF4 file",
        "convert it: h4toh5 {0} NAME.h5, or ncl_convert2nc {0}",
    ),
}
STORE = {".zgroup", ".zmetadata", "zarr.json"}


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
    dataset = _decoded(dataset.assign(_numpy_variables(dataset)))
    names = [*map(str, dict.fromkeys([*dataset.variables, *dataset.dims]))]
    kinds, user_roles = chosen(path, names, columns)
    if "nfsgeo_layout" in dataset.attrs:
        for added in dataset.data_vars.values():
            role = FIELD if "time" in added.dims else STATIC
            added.attrs.setdefault("role", role)
        return own_fields(path, dataset)
    dataset = dataset.reset_coords([n for n in kinds if n in dataset.coords])
    dataset = _without_others(dataset, kinds)
    roles = coordinate_roles(path, dataset, user_roles, kinds)
    sample, time = (dimension(path, dataset, r, roles) for r in ("sample", "time"))
    split = None
    if "part" in dataset and dataset["part"].dims == (sample,):
        part = dataset["part"].variable.copy(deep=False)
        part.dims, dataset = ("sample",), dataset.drop_vars("part")
        split = split_of(part_of(part, path))
    dataset = with_times(path, dataset, roles.get("time", ""))
    dates = times_of_text(dataset, time) if time else None
    dataset = quantities(path, dataset, kinds, {*roles.values()}, time)
    space = {a: still(path, dataset[roles[a]], time) for a in SPACE if a in roles}
    space = {a: located(path, values) for a, values in space.items()}
    space, hidden = without_repeats(path, space)
    sizes = {str(d): num for at in space.values() for d, num in at.sizes.items()}
    places = {dim: num for dim, num in sizes.items() if dim != sample}
    dims, num = {sample, time, *places}, dataset.sizes.get(sample, 1)
    data, parameters = dict[str, DataArray](), dict[str, Any]()
    named = station_names(dataset, tuple(places), kinds)
    stations = [dataset[name].values for name in named]
    named += [n for n, v in dataset.items() if is_coordinate(v) and n not in kinds]
    others = dataset.drop_vars([*roles.values(), *named], errors="ignore")
    left_out(
        path,
        [
            f"the coordinate {name} (--columns static={name} takes it as an input)"
            for name, values in others.coords.items()
            if len(places) == 1
            and values.dims == (*places,) != (name,)
            and values.dtype.kind in "iuf"
        ],
    )
    for name, values in others.items():
        single = [d for d, num in values.sizes.items() if num == 1 and d not in dims]
        values = values.squeeze(single, drop=True)
        if values.ndim and values.dtype.kind in "biufcm":
            data[str(name)] = values
        elif values.dtype.kind in "iuf" and "grid_mapping_name" not in values.attrs:
            parameters[str(name)] = np.repeat(values.values, num)
    samples = {sample} if "sample" in user_roles else set()
    check_dims(path, dataset, data, kinds, time, samples, dims, len(space))
    parameters |= {
        n: data.pop(n).values for n, v in data.copy().items() if v.dims == (sample,)
    }
    first = space["x"]
    grid = len(places) == len(space) == sum(at.ndim for at in space.values())
    grid &= len(space) > 1 or first.name == first.dims[0]
    longitudes = is_longitude(first)
    if grid:
        space["x"] = unwrapped(path, first) if longitudes else first
        if longitudes and (ends := closed(path, first, [*data.values()])):
            space["x"] = space["x"].isel(ends)
            data = {n: v.isel(ends, missing_dims="ignore") for n, v in data.items()}
        ascending = {at.dims[0]: rising(path, at) for at in space.values()}
        for arrays in (data, space):
            arrays |= {
                n: v.isel(ascending, missing_dims="ignore") for n, v in arrays.items()
            }

    def flat(values: DataArray, dims: Any) -> Variable:
        ahead = {str(d): dataset.sizes[d] for d in (sample, time) if d in dims}
        return _at_points(values.variable, ahead, places)

    absent: Any = np.zeros(0, bool)
    if not grid and sample not in sizes:
        absent = sum(np.isnan(flat(at, at.dims).values) for at in space.values()) > 0
    hidden = np.broadcast_to(hidden, absent.shape)
    if absent.any():
        left_out(path, [f"{absent.sum()} of {absent.size} points, without coordinates"])
    labels = {str(sample): "sample", str(time): "time", "point": "point"}
    labels |= dict(zip(places, SPACE, strict=False)) if grid else {}
    variables = dict[str, Any]()
    for name, values in data.items():
        kind, in_time = kinds.get(name), time in values.dims
        attrs = flag_attrs(values.attrs)
        fixed = bool(time) and not in_time and kind != "field"
        fixed |= not kind and (is_static(name) or (FLAGS[0] in attrs and not in_time))
        called = field_name(name)[0] if kind or in_time else name
        attrs |= {"role": STATIC if fixed else FIELD, "components": [called]}
        placed = not grid and (not places or bool(places.keys() & {*values.dims}))
        variable = flat(values, values.dims) if placed else values.variable
        whole = placed and places.keys() <= {*values.dims}
        if whole and absent.any() and variable.dtype.kind == "f":
            read = partial(_at_existing, variable, absent, hidden)
            shape, dtype = variable.shape, variable.dtype
            variable = deferred(variable.dims, shape, dtype, read)
        along = [labels[str(dim)] for dim in variable.dims]
        variables[name] = along, variable, attrs | _units(values.variable)
    when = dataset.variables.get(roles.get("time"))
    times, unit = times_of(path, when) if when is not None else (None, {})
    times = dates if when is None else times
    coordinates, along = dict[str, Any](), ["sample", "point"][sample not in sizes :]
    for axis, values in space.items():
        place = (axis, values.values) if grid else (along, flat(values, sizes))
        coordinates[axis] = *place, _units(values.variable)
    coordinates["time"] = "time", times, unit
    coordinates["station"] = "point", None if grid or not stations else stations[0]
    fields = to_fields(path, variables, coordinates, parameters=parameters, split=split)
    return mark_longitude(fields, "longitude" if longitudes else roles["x"])


def _without_others(dataset: Dataset, kinds: Roles) -> Dataset:
    """The variables that users leave in, along dimensions of the fields they name."""
    fields = [name for name, kind in kinds.items() if kind == "field"]
    dims = {d for name in fields for d in dataset[name].dims} or {*dataset.dims}
    names = [n for n, v in dataset.data_vars.items() if dims.issuperset(v.dims)]
    selected = [name for name in names if kinds.get(str(name)) != "ignore"]
    return dataset[selected] if selected else dataset


def _units(variable: Variable) -> dict[str, str]:
    """The attribute of the units of a variable, if it has any."""
    unit = str(variable.attrs.get("units", ""))
    return {"units": unit} if unit else {}


def _numpy_variables(dataset: Dataset) -> dict[Any, Any]:
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
    variables = {n: v for n, v in dataset.variables.items()}
    if "nfsgeo_layout" not in dataset.attrs:
        variables = {n: with_default_fill(v) for n, v in variables.items()}
    whole = dataset.assign(
        {
            name: decoded(v if name in dataset.dims else within_range(v))
            for name, v in variables.items()
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xarray.decode_cf(whole, decode_times=False, decode_coords="all")


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


def _at_existing(values: Variable, absent: Any, hidden: Any, key: Key) -> NDArray[Any]:
    """Values at points, without fill values at those without coordinates, and without
    any at those that were ``hidden``.
    """
    here = values[key].values
    bad = absent[key[-1]] & ((np.abs(here) >= LARGE) | hidden[key[-1]])
    return np.where(bad, np.float32(np.nan), here)


def _is_netcdf(probe: FileProbe) -> bool:
    """Classic NetCDF, HDF5 with the dimension scales of NetCDF-4, or what is often
    taken for it.
    """
    if not probe.is_hdf5:
        classic = probe.head[:3] == b"CDF" and probe.head[3] in (1, 2, 5)
        return classic or probe.head.startswith((*OTHER_FORMATS,))
    with h5py.File(probe.path, "r") as file:
        arrays = [item for item in file.values() if isinstance(item, h5py.Dataset)]
        scales = [item.attrs.get("CLASS") == b"DIMENSION_SCALE" for item in arrays]
        return "_NCProperties" in file.attrs or any(scales)


def _netcdf(path: Path, columns: Columns | None = None) -> Fields:
    """Read a NetCDF file, with a warning that names its groups, which are not read."""
    options: dict[str, Any] = {"decode_cf": False, "cache": False}
    classic, filled, virtual = not h5py.is_hdf5(path), set[str](), list[str]()
    if not classic:
        engine = "h5netcdf"
        with h5py.File(path, "r") as file:
            groups = [n for n, v in file.items() if isinstance(v, h5py.Group)]
            arrays = {n: v for n, v in file.items() if isinstance(v, h5py.Dataset)}
            check_filters(path, [*arrays.values()])
            if groups and not any(v.ndim for v in arrays.values()):
                raise UserError(
                    f"{path} with all arrays in groups, {', '.join(groups)}",
                    "arrays outside of groups",
                    f"take one out: xarray.open_dataset({str(path)!r}, group="
                    f'"{groups[0]}").to_netcdf("NAME.nc")',
                )
            left_out(path, groups)
            for name, array in arrays.items():
                virtual += [name] * array.is_virtual
                fill_status = array.id.get_create_plist().fill_value_defined()
                if fill_status == h5py.h5d.FILL_VALUE_USER_DEFINED:
                    filled.add(name)
    else:
        head = FileProbe(path).head
        for start, (what, todo) in OTHER_FORMATS.items():
            if head.startswith(start):
                given = f"{path}, {what}"
                raise UserError(given, "NetCDF", todo.format(path))
        engine = "scipy"
        if head[3] == 5:
            engine = "netcdf4"
            if not find_spec("netCDF4"):
                given = f"{path}, NetCDF in the format CDF-5 (64-bit data)"
                todo = (
                    f"pip install netCDF4, or convert it: nccopy -k nc4 {path} NAME.nc"
                )
                raise UserError(given, "the package netCDF4, which reads it", todo)
    dataset = xarray.open_dataset(path, engine=engine, **options)
    for name in virtual:
        held = dataset.variables[name]
        read = partial(read_hdf5, opened_hdf5(path), name)
        dataset[name] = deferred(held.dims, held.shape, held.dtype, read, held.attrs)
    for name, variable in dataset.variables.items():
        fills = {*variable.attrs} & {"_FillValue", "_Unsigned"}
        byte = variable.dtype in ("i1", "u1") and (classic or name in filled)
        if byte and not fills:
            dataset[name] = marked(variable, default_fill(variable.dtype))
    return fields_of(path, dataset, columns)


def _zarr(path: Path, columns: Columns | None = None) -> Fields:
    """Read a folder or a zip file of Zarr as NetCDF is read.

    Values equal to the ``fill_value`` are missing; 0, Zarr's default, masks values only
    where an attribute says so.
    """
    import zarr

    store: Any = zarr.storage.ZipStore(path, mode="r") if path.is_file() else path
    group = zarr.open_group(store, mode="r", use_consolidated=False)
    stored = sum(file.lstat().st_size for file in [path, *path.rglob("*")])
    sizes = [(a.nbytes, prod(a.chunks) * a.dtype.itemsize) for _, a in group.arrays()]
    check_size(path, sum(map(max, sizes)), stored)
    options: dict[str, Any] = {"engine": "zarr", "consolidated": False}
    dataset = xarray.open_dataset(store, **options, decode_cf=False, cache=False)
    for name, variable in dataset.variables.items():
        array: Any = group[str(name)]
        if "_FillValue" in array.attrs or variable.dtype.kind not in "iuf":
            continue
        variable.attrs.pop("_FillValue", None)
        if array.fill_value:  # also of Zarr 3, which xarray leaves out
            variable.attrs["_FillValue"] = array.fill_value
    return fields_of(path, dataset, columns)


def _is_zarr(probe: FileProbe) -> bool:
    return bool(probe.zipped & STORE) or any((probe.path / n).exists() for n in STORE)


NETCDF = Format("NetCDF (.nc)", _is_netcdf, _netcdf, columns="roles")
ZARR = Format("Zarr (.zarr)", _is_zarr, _zarr, columns="roles", needs=("zarr",))
