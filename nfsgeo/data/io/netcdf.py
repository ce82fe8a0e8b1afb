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
from xarray import DataArray, Dataset

from nfsgeo.data.checks import as_real
from nfsgeo.data.conventions import FIELD, FLAGS, STATIC, is_static
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import (
    check_filters,
    decoded,
    default_fill,
    marked,
    units_of,
    with_default_fill,
    within_range,
)
from nfsgeo.data.io.cf_places import Places
from nfsgeo.data.io.cf_roles import (
    Roles,
    check_dims,
    coordinate_roles,
    dimension,
    is_coordinate,
    is_longitude,
    station_names,
    with_times,
)
from nfsgeo.data.io.cf_times import is_text, times_of, times_of_text
from nfsgeo.data.io.flags import flag_attrs, quantities
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.labelled import field_names, to_fields
from nfsgeo.data.io.own_files import own_fields, structure_attrs
from nfsgeo.data.io.roles import Columns, chosen, mark_longitude
from nfsgeo.data.io.ugrid import with_centres
from nfsgeo.data.lazy import deferred, opened_hdf5, read_hdf5
from nfsgeo.data.other_files import check_size
from nfsgeo.data.splits import part_of, split_of
from nfsgeo.errors import UserError, option

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
        for name, added in dataset.data_vars.items():
            role = FIELD if "time" in added.dims else STATIC
            role = structure_attrs(str(name)).get("role", role)
            added.attrs.setdefault("role", role)
        return own_fields(path, dataset)
    dataset = dataset.reset_coords([n for n in kinds if n in dataset.coords])
    dataset = _without_others(with_centres(path, dataset, kinds), kinds)
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
    places = Places.of(path, dataset, roles, sample, time)
    named = station_names(dataset, tuple(places.dims), kinds)
    stations = dataset[named[0]].values if named else None
    named += [n for n, v in dataset.items() if is_coordinate(v) and n not in kinds]
    others = dataset.drop_vars([*roles.values(), *named], errors="ignore")
    _tell_unused(path, others, places)
    data, parameters = _arrays(others, places, dataset.sizes.get(sample, 1))
    samples = {sample} if "sample" in user_roles else set()
    dims = {sample, time, *places.dims}
    check_dims(path, dataset, data, kinds, time, samples, dims, len(places.space))
    for name in [n for n, values in data.items() if values.dims == (sample,)]:
        parameters[name] = data.pop(name).values
    x = "longitude" if is_longitude(places.space["x"]) else roles["x"]
    if places.is_grid:
        places, data = places.ascending(data)
    places.tell_absent()
    called = field_names([*data])
    variables = {
        name: (*places.variable(v), _attributes(v, kinds.get(name), time, called[name]))
        for name, v in data.items()
    }
    times: tuple[Any, dict[str, Any]] = dates, {}
    when = dataset.variables.get(roles.get("time"))
    if when is not None and (dates is None or not is_text(when)):
        times = times_of(path, when)
    coordinates = places.coordinates()
    coordinates["time"] = "time", *times
    coordinates["station"] = "point", None if places.is_grid else stations
    fields = to_fields(path, variables, coordinates, parameters=parameters, split=split)
    return mark_longitude(fields, x)


def _tell_unused(path: Path, dataset: Dataset, places: Places) -> None:
    """Tell in a line which coordinates of the points are no axis, and of their text."""
    along = (*places.dims,)
    words = [n for n, v in dataset.items() if v.dtype.kind in "OSU"]
    here = [n for n in words if {*dataset[n].dims} & {*along}]
    left_out(path, [f"{n}, which is text" for n in here])
    numeric = [n for n, v in dataset.coords.items() if v.dtype.kind in "iuf"]
    unused = [n for n in numeric if dataset[n].dims == along != (n,)]
    for_input = {n: option("columns", f"static={n}") for n in unused}
    if len(along) == 1:
        what = "the coordinate {} ({} takes it as an input)"
        left_out(path, [what.format(n, say) for n, say in for_input.items()])


def _arrays(
    dataset: Dataset, places: Places, num: int
) -> tuple[dict[str, DataArray], dict[str, Any]]:
    """The arrays of a data set by name, and numbers, which hold for ``num`` samples."""
    data, numbers = dict[str, DataArray](), dict[str, Any]()
    dims = {places.sample, places.time, *places.dims}
    for name, values in dataset.items():
        single = [d for d, size in values.sizes.items() if size == 1 and d not in dims]
        values = values.squeeze(single, drop=True)
        if values.ndim and values.dtype.kind in "biufcm":
            data[str(name)] = values
        elif values.dtype.kind in "iuf" and "grid_mapping_name" not in values.attrs:
            numbers[str(name)] = np.repeat(values.values, num)
    return data, numbers


def _attributes(
    values: DataArray, kind: str | None, time: str | None, named: tuple[str, str]
) -> dict[str, Any]:
    """The role of an array, with its units and the flags that its numbers stand for.

    The name of a field or of what users choose may have a unit, which is split off.
    """
    name, in_time = str(values.name), time in values.dims
    attrs = flag_attrs(values.attrs)
    fixed = bool(time) and not in_time and kind != "field"
    fixed |= not kind and (is_static(name) or (FLAGS[0] in attrs and not in_time))
    called, unit = named if kind or in_time else (name, "")
    attrs |= {"role": STATIC if fixed else FIELD, "components": [called]}
    return attrs | ({"units": unit} if unit else {}) | units_of(values)


def _without_others(dataset: Dataset, kinds: Roles) -> Dataset:
    """The variables that users leave in, along dimensions of the fields they name."""
    fields = [name for name, kind in kinds.items() if kind == "field"]
    dims = {d for name in fields for d in dataset[name].dims} or {*dataset.dims}
    names = [n for n, v in dataset.data_vars.items() if dims.issuperset(v.dims)]
    selected = [name for name in names if kinds.get(str(name)) != "ignore"]
    return dataset[selected] if selected else dataset


def _numpy_variables(dataset: Dataset) -> dict[Any, Any]:
    """Convert variables of types that only pandas has: dates of a time zone to UTC,
    categories to their names, integers with missing values to floats with NaN; and
    objects of Python that are numbers to floats.
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
        elif variable.dtype == object and variable._in_memory:
            kind = pandas.api.types.infer_dtype(variable.values.ravel())
            if kind in NUMBERS:
                array = as_real(variable.values, str(name), gaps=True)
                converted[name] = variable.dims, array, variable.attrs
    return converted


def _decoded(dataset: Dataset) -> Dataset:
    """Mask missing values, tell coordinates from fields, and find all units."""
    variables = dict[Any, Any]()
    for name, stored in dataset.variables.items():
        variable = stored.copy(deep=False)
        variable.attrs = {**stored.attrs, **units_of(stored)}
        if "nfsgeo_layout" not in dataset.attrs:
            variable = with_default_fill(variable)
        if name not in dataset.dims:
            variable = within_range(variable)
        variables[name] = decoded(variable)
    whole = dataset.assign(variables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xarray.decode_cf(whole, decode_times=False, decode_coords="all")


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
    """Read gridded fields, stations and unstructured meshes by the CF conventions.

    A warning names groups, which are not read.
    """
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
                todo = "pip install netCDF4, or convert it: "
                todo += f"nccopy -k nc4 {path} NAME.nc"
                raise UserError(given, "the package netCDF4, which reads it", todo)
    try:
        dataset = xarray.open_dataset(path, engine=engine, **options)
    except (IndexError, ValueError) as error:
        if engine != "scipy":
            raise
        raise ValueError("it ends too early, or is damaged") from error
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


NUMBERS = ("floating", "integer", "mixed-integer-float", "decimal", "boolean")
WHOLE = "an undamaged NetCDF file"
NETCDF = Format("NetCDF (.nc)", _is_netcdf, _netcdf, WHOLE, columns="roles")
ZARR = Format("Zarr (.zarr)", _is_zarr, _zarr, columns="roles", needs=("zarr",))
