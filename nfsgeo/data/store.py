"""nfsgeo's own file: CF NetCDF-4, laid out as :mod:`nfsgeo.data.fields` says.

It opens in xarray, ParaView, Panoply and ncdump. Values have the precision that they
came in, a checksum in each chunk, and are compressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray
from numpy.typing import NDArray

from nfsgeo.data.disk import check_room, new_hdf5
from nfsgeo.data.fields import FIELD, INITIAL, KNOWN, STATIC, Fields
from nfsgeo.data.lazy import Key, deferred
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["is_own", "is_older", "read_own", "refuse_older", "write_own"]

LAYOUT = 4  # of the file, its attribute `nfsgeo_layout`
CHUNK_BYTES = 2**19
COMPRESSION = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
WHOLE = "a whole file of nfsgeo"


def is_own(path: Path) -> bool:
    """Whether nfsgeo wrote the file."""
    with h5py.File(path, "r") as file:
        return "nfsgeo_layout" in file.attrs


def is_older(path: Path) -> bool:
    """Whether an nfsgeo wrote the file before its files were NetCDF."""
    with h5py.File(path, "r") as file:
        return np.bytes_(file.attrs.get("format", b"")) == b"nfsgeo"


def refuse_older(path: Path) -> Fields:
    """HDF5 of nfsgeo before its files were NetCDF, which is refused.

    Raises:
        UserError: Always.
    """
    raise UserError(
        f"{path}, which an older nfsgeo wrote",
        "a NetCDF file of this version, or of a format that it reads",
        "make it again, or export it to .nc or .csv with the nfsgeo that wrote it",
    )


def read_own(path: Path) -> Fields:
    """The fields of a file that nfsgeo wrote, whose values are read when asked for."""
    found: dict[str, xarray.Variable] = {}
    with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
        about = _read_attrs(file)
        if int(about.pop("nfsgeo_layout")) != LAYOUT:
            raise UserError(
                f"{path} of another layout than {LAYOUT}",
                WHOLE,
                "make it again or use the nfsgeo that wrote it",
            )
        for name, source in file.variables.items():
            attrs, dims = _read_attrs(source), source.dimensions
            if attrs.get("role") in (FIELD, KNOWN, STATIC, INITIAL) or "obs" in dims:
                values = _Values(path, name)
                found[name] = deferred(dims, source.shape, source.dtype, values)
                found[name].attrs = attrs
            else:
                found[name] = xarray.Variable(dims, source[...], attrs)
    coords = {n: v for n, v in found.items() if n in ("time", "x", "y", "z")}
    rest = {n: v for n, v in found.items() if n not in coords}
    return Fields(xarray.Dataset(rest, coords, about), path, reopens=True)


class _Values:
    """Reads from an array of an HDF5 file, which stays open between two reads."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._file: h5py.File | None = None

    def __call__(self, key: Key) -> NDArray[Any]:
        if not self._file:
            self._file = h5py.File(self.path, "r")
        return np.asarray(self._file[self.name][key])

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "name": self.name, "_file": None}


def _read_attrs(source: Any) -> dict[str, Any]:
    """Attributes as they were before :func:`_describe`."""
    found = {name: source.attrs[name] for name in source.attrs}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}


def write_own(fields: Fields, out: Path, progress: Progress = silent) -> None:
    """Writes fields sample by sample; the file appears whole or not at all.

    Raises:
        UserError: ``out`` exists, its folder does not, or the disk is full.
    """
    source, total = fields.dataset, fields.num_samples
    ragged = fields.axes is None and fields._own_meshes
    place = ("obs",) if ragged else fields.places
    sizes = [fields.num_points(sample) for sample in range(total if ragged else 1)]
    lengths = [sum(sizes)] if ragged else fields.shape or sizes
    dims = {"sample": total, "time": len(fields.times)}
    dims |= dict(zip(place, lengths, strict=True))
    with new_hdf5(out) as handle, h5netcdf.File(handle, "w") as file:
        file.dimensions = dims
        whole = {**source.attrs, "Conventions": "CF-1.11", "nfsgeo_layout": LAYOUT}
        _describe(file, whole)
        _put_small(
            file, "time", ("time",), fields.times, _about(source, "time", axis="T")
        )
        for i, axis in enumerate(fields.space):
            about = _about(source, axis, axis=axis.upper())
            if fields.axes is not None:
                _put_small(file, axis, (axis,), fields.axes[i], about)
            elif not ragged:
                _put_small(file, axis, place, fields.coordinates()[:, i], about)
            else:
                _create(file, axis, place, "f8", sizes[0], about)
        if ragged:
            about = {"role": "rows", "sample_dimension": "obs"}
            _put_small(file, "row_size", ("sample",), np.array(sizes), about)
        for name in _small(fields):
            _put_whole(file, source[name].variable, name)
        bulk = _bulk(fields)
        room = 0
        for name, along in bulk.items():
            kind = np.result_type(np.float32, source[name].dtype)
            about = _about(source, name)
            if fields.axes is None:
                about["coordinates"] = " ".join(fields.space)
            made = _create(file, name, (*along, *place), kind, sizes[0], about)
            room += made._h5ds.size * kind.itemsize
        # Open until flushed: HDF5 closes what it cannot write without an error.
        held = [handle[name] for name in (*bulk, *(fields.space if ragged else ()))]
        start = 0
        for sample in range(total):
            rows = slice(start, start + sizes[sample if ragged else 0])
            start = rows.stop if ragged else 0
            if ragged:
                for i, axis in enumerate(fields.space):
                    file[axis][rows] = fields.coordinates(sample)[:, i]
            for name, along in bulk.items():
                if sample and not ragged and "sample" not in along:
                    continue
                values = fields._read([name], sample, slice(None), None)[..., 0]
                _put(file[name], values.T, sample, rows if ragged else None)
            handle.flush()
            if not sample and total > 1:  # the others will be about as large
                used = sum(array.id.get_storage_size() for array in held)
                check_room(out, min(room, used * (total - 1)))
            progress("writing samples", sample + 1, total)


def _bulk(fields: Fields) -> dict[str, tuple[str, ...]]:
    """Fields and static inputs, and their dimensions besides those of space."""
    names = [*fields.component_names, *fields.forcing_names, *fields.static_names]
    names += fields._named(INITIAL)
    ragged = fields.axes is None and fields._own_meshes
    found = {}
    for name in names:
        about, dims = fields.dataset[name].attrs["role"], fields.dataset[name].dims
        several = "sample" in dims and not ragged and fields.num_samples > 1
        along = ("sample",) if several else ()
        timed = about not in (STATIC, INITIAL)
        if about == KNOWN and not set(dims) - {"sample", "time"}:
            continue
        found[name] = along + (("time",) if timed else ())
    return found


def _small(fields: Fields) -> list[str]:
    """Variables that are written as they are: parameters, parts, cells, regions."""
    bulk = _bulk(fields)
    return [
        str(n) for n in fields.dataset.data_vars if n not in bulk and n != "row_size"
    ]


def _about(source: xarray.Dataset, name: str, **more: Any) -> dict[str, Any]:
    """Attributes of a variable, as NetCDF holds them."""
    known = source[name].attrs if name in source.variables else {}
    kept = {k: v for k, v in known.items() if k not in ("_FillValue", "coordinates")}
    return {**more, **kept}


def _describe(target: Any, about: Mapping[str, Any]) -> None:
    """Gives attributes; text as ParaView reads it, which has a checksum, too."""
    for name, value in about.items():
        if isinstance(value, str):
            raw = value.encode()
            kind = h5py.string_dtype("utf-8", len(raw))
            value = np.bytes_(raw) if value.isascii() else np.array(raw, kind)
        target.attrs[name] = value


def _create(
    file: h5netcdf.File,
    name: str,
    dims: tuple[str, ...],
    kind: Any,
    rows: int,
    about: dict[str, Any],
) -> h5netcdf.Variable:
    """A variable to be filled sample by sample, in chunks of half a megabyte."""
    sizes = {dim: file.dimensions[dim].size for dim in dims}
    chunks = {dim: 1 if dim == "sample" else size for dim, size in sizes.items()}
    if "obs" in chunks:
        chunks["obs"] = min(rows, chunks["obs"])
    size = np.dtype(kind).itemsize * int(np.prod(list(chunks.values())))
    if "time" in chunks:
        steps = CHUNK_BYTES * chunks["time"] // max(1, size)
        chunks["time"] = max(1, min(chunks["time"], steps))
    made = file.create_variable(
        name, dims, kind, chunks=tuple(chunks.values()), fletcher32=True, **COMPRESSION
    )
    _describe(made, about)
    return made


def _put_small(
    file: h5netcdf.File,
    name: str,
    dims: tuple[str, ...],
    values: NDArray[Any],
    about: dict[str, Any],
) -> None:
    """A variable of which all values are there."""
    checked = {"chunks": values.shape, "fletcher32": True} if values.size else {}
    made = file.create_variable(name, dims, values.dtype, data=values, **checked)
    _describe(made, about)


def _put_whole(file: h5netcdf.File, variable: xarray.Variable, name: str) -> None:
    """A variable with its own dimensions, made where they are not there yet."""
    for dim, size in variable.sizes.items():
        if dim not in file.dimensions:
            file.dimensions[dim] = size
    about = {k: v for k, v in variable.attrs.items() if k != "_FillValue"}
    dims = tuple(map(str, variable.dims))
    _put_small(file, name, dims, np.asarray(variable.values), about)


def _put(made: Any, values: NDArray[Any], sample: int, rows: slice | None) -> None:
    """Values ``[T, n]`` of a sample."""
    if "time" not in made.dimensions:
        values = values[0]
    if rows is not None:
        made[..., rows] = values
        return
    shape = [
        s for d, s in zip(made.dimensions, made.shape, strict=True) if d != "sample"
    ]
    if "sample" in made.dimensions:
        made[sample] = values.reshape(shape)
    else:
        made[...] = values.reshape(shape)
