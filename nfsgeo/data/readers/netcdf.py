"""NetCDF and Zarr by xarray: gridded fields, stations and unstructured meshes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.numbers import EPOCH, with_gaps
from nfsgeo.data.readers.cf import ABOUT, is_longitude, roles_of_variables, times_of
from nfsgeo.data.readers.clouds import HALF_CIRCLE, CloudFile, Lazy
from nfsgeo.data.readers.gridded import ArrayFile, Field
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.static_names import changing, is_static, no_field
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

if TYPE_CHECKING:
    import xarray

__all__ = ["ABOUT", "NETCDF", "ZARR", "fields_of", "is_store"]

STORE = (".zgroup", ".zmetadata", "zarr.json")
PACKING = ("scale_factor", "add_offset")  # left in attributes where not decoded
CLASSIC = (b"CDF\1", b"CDF\2", b"CDF\5")


def is_store(path: Path) -> bool:
    """Whether a folder, or a zip file, is a Zarr store."""
    if path.is_dir():
        return any((path / name).exists() for name in STORE)
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name in STORE for name in archive.namelist())


def fields_of(
    path: Path, dataset: xarray.Dataset, columns: Mapping[str, str] | None = None
) -> FieldFile:
    """The fields of a data set whose times are not decoded.

    Coordinates on axes of their own make a grid, those on shared dimensions (stations,
    cells of an unstructured mesh, curvilinear grids) a point cloud. Fields that vary
    in time are the solution, the others a static input, and so are those named ``a`` or
    ``a_...``, unless nfsgeo wrote the file; a variable of samples alone is a parameter,
    one of time alone an input that somebody has to call known ahead.
    Values that the file marks as missing become NaN, decoded or not. Dates become
    seconds since 1970. A point whose coordinates are missing does not exist: so samples
    may differ in their number of points. Text is not read.

    Args:
        path: The file, for messages.
        dataset: What is in it.
        columns: Variables by what they are, see
            :func:`~nfsgeo.data.readers.cf.roles_of_variables`.

    Raises:
        UserError: A dimension is neither time, space nor sample, a variable can be
            read in two ways, is complex, or is packed.
    """
    if not dataset.variables:
        raise ValueError("no variables")
    for name, variable in dataset.variables.items():
        if packed := [key for key in PACKING if key in variable.attrs]:
            raise UserError(
                f"{path} with {name} as stored, with {' and '.join(packed)} to apply",
                "the values themselves",
                "open it with mask_and_scale=True, or call xarray.decode_cf",
            )
    roles = roles_of_variables(path, dataset, columns)
    dataset = dataset.set_coords([n for n in roles.values() if n in dataset.variables])
    space = [dataset[roles[role]] for role in SPACE if role in roles]
    sample, time = (_dimension(path, dataset, r, roles) for r in ("sample", "time"))
    places = [str(d) for each in space for d in each.dims if d not in (sample, time)]
    told = json.loads(dataset.attrs.get(ABOUT, "{}"))
    found = _Found(path, sample, time, list(dict.fromkeys(places)), space, told)
    for name, values in dataset.data_vars.items():
        if values.dtype.kind == "m" and values.ndim:  # decoded from seconds, days ...
            values = values / np.timedelta64(1, "s")
            values.attrs["units"] = "s"
        if values.dtype.kind not in "biufc" or not values.ndim:
            continue  # text, and variables that only carry attributes
        if values.dtype.kind == "c":
            raise UserError(
                f"{path} with {name} of type {values.dtype}",
                "real numbers",
                "give real and imaginary part as two variables",
            )
        values = found.without_others(values)
        if values.dims == (sample,):
            found.parameters[str(name)] = with_gaps(values.values, values)
        elif time and time not in values.dims:
            found.static.append(values)
        elif found.says_static(str(name)):
            if time and values.sizes[time] > 1:
                raise changing(path, str(name))
            found.static.append(values.isel({time: 0}) if time else values)
        else:
            found.fields.append(values)
    if not found.fields:
        raise no_field(path, [str(values.name) for values in found.static])
    found.describe(dataset, roles.get("time", ""))
    single = len(found.places) == len(space) == sum(each.ndim for each in space)
    on_axes = single and (len(space) > 1 or space[0].name == space[0].dims[0])
    file = found.grid() if on_axes else found.cloud()
    nowhere = {found.sample, found.time}
    file.series_names = [
        str(f.name) for f in found.fields if nowhere.issuperset(f.dims)
    ]
    file.know(found.known)
    degrees = float(np.nanmax(space[0].values) - np.nanmin(space[0].values))
    longitude = is_longitude(roles["x"], space[0].attrs)
    if not file.domain_is_known and longitude and degrees > HALF_CIRCLE:
        file.longitude = degrees
    return file


def _dimension(
    path: Path, dataset: xarray.Dataset, role: str, roles: Mapping[str, str]
) -> str | None:
    """The dimension of time or samples, None where there is none."""
    name = roles.get(role)
    if name is None or name not in dataset.variables:
        return name
    dims = dataset[name].dims
    if len(dims) > 1:
        raise UserError(
            f"{path} with {role} {name} along {' and '.join(map(str, dims))}",
            "one dimension",
            f"name another variable, --columns {role}=VARIABLE, in Python "
            f'columns={{"{role}": ...}}',
        )
    return str(dims[0]) if dims else None


@dataclass
class _Found:
    """What a data set holds, and by which dimensions."""

    path: Path
    sample: str | None
    time: str | None
    places: list[str]
    space: list[xarray.DataArray]
    told: Mapping[str, Any]
    fields: list[xarray.DataArray] = field(default_factory=list)
    static: list[xarray.DataArray] = field(default_factory=list)
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    domain: Domain | None = None
    about: dict[str, Any] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)

    def says_static(self, name: str) -> bool:
        """Whether nfsgeo wrote a static input, or else the name is that of one."""
        return name in self.told["static"] if "static" in self.told else is_static(name)

    def without_others(self, values: xarray.DataArray) -> xarray.DataArray:
        """The variable without further dimensions, which must be of length one."""
        known = {self.sample, self.time, *self.places}
        others = [dim for dim in values.dims if dim not in known]
        values = values.squeeze([d for d in others if values.sizes[d] == 1], drop=True)
        odd = next((dim for dim in values.dims if dim not in known), None)
        if odd is not None:
            raise UserError(
                f"{self.path} with {values.name} along {odd}, of {values.sizes[odd]}",
                "dimensions of samples, time and space alone",
                f"say what it is, sample, time, x, y or z: --columns sample={odd}, in "
                f'Python columns={{"sample": "{odd}"}}; or leave {values.name} out',
            )
        return values

    def describe(self, dataset: xarray.Dataset, when: str) -> None:
        """Times, units, and what nfsgeo itself has written into an attribute."""
        times: Any = None if self.time else np.zeros(1)
        units: dict[str, Any] = {}
        if when in dataset.variables:
            times = times_of(dataset[when])
            times = None if times is None else np.atleast_1d(times)
            dates = times is not None and times.dtype.kind == "M"
            units["time"] = EPOCH if dates else dataset[when].attrs.get("units")
        names = [*SPACE[: len(self.space)]]
        names += [str(each.name) for each in (*self.fields, *self.static)]
        arrays = [*self.space, *self.fields, *self.static]
        for name, each in zip(names, arrays, strict=True):
            units[name] = each.attrs.get("units")
        units = {name: str(unit) for name, unit in units.items() if unit is not None}
        told = self.told
        self.domain = Domain.from_dict(told["domain"]) if "domain" in told else None
        self.known = told.get("known", [])
        self.about = {
            "times": times,
            "equation": told.get("equation", ""),
            "static_role": told.get("static_role", "coefficient")
            if self.static
            else None,
            "parameters": self.parameters,
            "provenance": told.get("provenance", {})
            | ({"units": units} if units else {}),
            "split": {
                k: np.array(v, np.int64) for k, v in told.get("split", {}).items()
            },
            "handle": dataset,
        }

    def grid(self) -> FieldFile:
        """Fields on the grid of the axes; one that decreases is turned round."""
        axes = [each.values.astype(np.float64) for each in self.space]
        letters = dict(zip(self.places, SPACE, strict=False))
        letters |= {str(self.sample): "n", str(self.time): "t"}
        turned = {
            dim: slice(None, None, -1)
            for dim, axis in zip(self.places, axes, strict=True)
            if axis[0] > axis[-1]
        }

        def named(values: xarray.DataArray) -> Field:
            order = "".join(letters[str(dim)] for dim in values.dims)
            along = {dim: turned[str(dim)] for dim in values.dims if dim in turned}
            return Field(values.isel(along), order, [str(values.name)])

        axes = [
            axis[turned.get(dim, slice(None))]
            for dim, axis in zip(self.places, axes, strict=True)
        ]
        lower, upper = ([float(e(a)) for a in axes] for e in (np.nanmin, np.nanmax))
        file = ArrayFile(
            self.path,
            fields=list(map(named, self.fields)),
            static=list(map(named, self.static)),
            axes=axes,
            domain=self.domain
            or Domain(tuple(lower), tuple(upper), (False,) * len(axes)),
            **self.about,
        )
        file.domain_is_known = self.domain is not None
        return file

    def cloud(self) -> FieldFile:
        """Fields at points, on a mesh of each sample's own if coordinates differ."""
        sizes: dict[str, int] = {}
        for each in (*self.fields, *self.static, *self.space):
            sizes |= {str(dim): size for dim, size in each.sizes.items()}
        everywhere = {dim: sizes[dim] for dim in self.places}
        steps = sizes[self.time] if self.time else 1
        meshes, u, a = [], [], []
        for sample in range(sizes.get(str(self.sample), 1)):
            if not sample or any(self.sample in each.dims for each in self.space):
                parts = [self._at(each, sample, everywhere) for each in self.space]
                points = np.stack(parts, axis=-1).reshape(-1, len(parts))
                there = np.isfinite(points).all(axis=1)
            meshes.append(points[there])
            read = partial(self._rows, sample, there, everywhere)
            u.append(Lazy((int(there.sum()), steps, len(self.fields)), read))
            if self.static:
                parts = [self._at(each, sample, everywhere) for each in self.static]
                a.append(np.stack(parts, -1).reshape(-1, len(parts))[there])
        return CloudFile(
            self.path,
            meshes=meshes,
            u=u,
            a=a,
            component_names=[str(each.name) for each in self.fields],
            static_names=[str(each.name) for each in self.static],
            domain=self.domain,
            **self.about,
        )

    def _rows(
        self,
        sample: int,
        there: NDArray[np.bool_],
        everywhere: Mapping[str, int],
        steps: slice,
    ) -> NDArray[Any]:
        """Some time steps of a sample at the points that exist, ``[n, T', C]``."""
        num = {str(self.time): len(range(steps.stop)[steps])}
        parts = [
            self._at(each, sample, {**everywhere, **num}, steps).reshape(len(there), -1)
            for each in self.fields
        ]
        values = np.stack(parts, axis=-1)
        if np.isfinite(values[~there]).any():
            raise ValueError("values at points without coordinates")
        return values[there]

    def _at(
        self,
        values: xarray.DataArray,
        sample: int,
        wanted: Mapping[str, int],
        steps: slice = slice(None),
    ) -> NDArray[Any]:
        """Values of a sample along the wanted dimensions, the same where constant."""
        index = {self.sample: sample, self.time: steps}
        taken = values.isel({d: i for d, i in index.items() if d in values.dims})
        constant = {dim: num for dim, num in wanted.items() if dim not in taken.dims}
        taken = taken.load().expand_dims(constant).transpose(*wanted)
        return with_gaps(taken.values, values)


def _is_netcdf(path: Path) -> bool:
    """Classic NetCDF, or HDF5 with the dimension scales of NetCDF-4."""
    with path.open("rb") as stream:
        if stream.read(4) in CLASSIC:
            return True
    with h5py.File(path, "r") as file:
        members = [each for each in file.values() if isinstance(each, h5py.Dataset)]
        scales = [each.attrs.get("CLASS") == b"DIMENSION_SCALE" for each in members]
        return "_NCProperties" in file.attrs or any(scales)


def _netcdf(path: Path, columns: Mapping[str, str] | None = None) -> FieldFile:
    """Grids, stations, unstructured and curvilinear meshes by the CF conventions:
    coordinates, dates, packed and missing values.
    """
    import xarray

    dataset = xarray.open_dataset(
        path,
        engine="h5netcdf" if h5py.is_hdf5(path) else "scipy",
        decode_times=False,
        decode_coords="all",
        cache=False,
    )
    return _or_close(path, dataset, columns)


def _zarr(path: Path, columns: Mapping[str, str] | None = None) -> FieldFile:
    """As NetCDF; a folder, or a zip file of it."""
    import xarray
    import zarr

    store: Any = path
    if path.is_file():
        store = zarr.storage.ZipStore(path, mode="r")
    dataset = xarray.open_dataset(
        store,
        engine="zarr",
        consolidated=False,
        decode_times=False,
        decode_coords="all",
        cache=False,
    )
    return _or_close(path, dataset, columns)


def _or_close(
    path: Path, dataset: xarray.Dataset, columns: Mapping[str, str] | None
) -> FieldFile:
    try:
        return fields_of(path, dataset, columns)
    except BaseException:
        dataset.close()
        raise


NETCDF = Reader(
    "NetCDF (.nc)", _is_netcdf, _netcdf, "", ("columns",), ("xarray", "h5netcdf")
)
ZARR = Reader("Zarr (.zarr)", is_store, _zarr, "", ("columns",), ("xarray", "zarr"))
