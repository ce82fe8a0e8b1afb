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

from nfsgeo.data.disk import check_room, new_hdf5
from nfsgeo.data.fields import FIELD, INITIAL, KNOWN, STATIC, Fields
from nfsgeo.data.lazy import hdf5_variable, opened_hdf5
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["is_older", "is_own", "read_own", "refuse_older", "write_own"]

LAYOUT = 4  # of the file, its attribute `nfsgeo_layout`
CHUNK_BYTES = 2**19
COMPRESSION = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
FIELDS = (FIELD, KNOWN, STATIC, INITIAL)  # roles of what is at the points


def is_own(path: Path) -> bool:
    """Whether nfsgeo wrote the file."""
    with h5py.File(path, "r") as file:
        return "nfsgeo_layout" in file.attrs


def is_older(path: Path) -> bool:
    """Whether an nfsgeo wrote the file before its files were NetCDF."""
    with h5py.File(path, "r") as file:
        older = np.bytes_(file.attrs.get("format", b"")) == b"nfsgeo"
        return older or "nfsgeo" in file.attrs  # what it exported, with its own JSON


def refuse_older(path: Path) -> Fields:
    """HDF5 of nfsgeo before its files were NetCDF, which is refused.

    Raises:
        UserError: Always.
    """
    raise UserError(
        f"{path}, which an older nfsgeo wrote",
        "a NetCDF file of this version, or of a format that it reads",
        "make it again, or export it to .csv with the nfsgeo that wrote it",
    )


def read_own(path: Path) -> Fields:
    """The fields of a file that nfsgeo wrote, whose values are read when asked for."""
    found: dict[str, xarray.Variable] = {}
    opened = opened_hdf5(path)
    with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
        about = _attributes(file)
        if int(about.pop("nfsgeo_layout")) != LAYOUT:
            todo = "make it again or use the nfsgeo that wrote it"
            raise UserError(f"{path} of another layout", f"layout {LAYOUT}", todo)
        for name, source in file.variables.items():
            attrs, dims = _attributes(source), source.dimensions
            if _is_large(dims, attrs):
                found[name] = hdf5_variable(opened, name, dims)
                found[name].attrs = attrs
            else:
                found[name] = xarray.Variable(dims, source[...], attrs)
    dataset = xarray.Dataset(found, attrs=about)
    space = found.keys() & {"time", "x", "y", "z"}
    return Fields(dataset.set_coords(space), path, reopens=True)


def write_own(fields: Fields, out: Path, progress: Progress = silent) -> None:
    """Writes fields sample by sample; the file appears whole or not at all.

    Raises:
        UserError: ``out`` exists, its folder does not, or the disk is full.
    """
    source, total = fields.dataset, fields.num_samples
    if "time" not in source.variables:
        source = source.assign_coords(time=("time", fields.times, {"axis": "T"}))
    ahead = ("sample", "time", *fields.places)
    rows, room = fields.num_points(0), 0
    with new_hdf5(out) as handle, h5netcdf.File(handle, "w") as file:
        file.dimensions = {str(dim): size for dim, size in source.sizes.items()}
        whole = {**source.attrs, "Conventions": "CF-1.11", "nfsgeo_layout": LAYOUT}
        _describe(file, whole)
        for name, each in source.variables.items():
            if each.dtype.kind not in "biuf":  # names of stations
                continue
            dims = [d for d in ahead if d in each.dims]
            dims += [d for d in map(str, each.dims) if d not in dims]
            about = dict(each.attrs)
            if name in fields.space:
                about["axis"] = str(name).upper()
            elif fields.axes is None and {*dims}.intersection(fields.places):
                about["coordinates"] = " ".join(fields.space)
            made = _create(file, str(name), dims, each.dtype, rows, about)
            room += made._h5ds.size * made.dtype.itemsize
        # Open until flushed: HDF5 closes what it cannot write without an error.
        held = [handle[name] for name in file.variables]
        file["time"][...] = fields.times
        for sample in range(total):
            for name, index, values in fields.parts(sample):
                if name in file.variables and name != "time":
                    dims = file[name].dimensions
                    key = tuple(index.get(dim, slice(None)) for dim in dims)
                    file[name][key] = values.transpose(*dims).values
            handle.flush()
            if not sample and total > 1:  # the others will be about as large
                used = sum(array.id.get_storage_size() for array in held)
                check_room(out, min(room, used * (total - 1)))
            progress("writing samples", sample + 1, total)


def _is_large(dims: Any, attrs: Mapping[str, Any]) -> bool:
    """Whether a variable is read, and filled, sample by sample."""
    return attrs.get("role") in FIELDS or "obs" in dims


def _create(
    file: h5netcdf.File,
    name: str,
    dims: list[str],
    dtype: Any,
    rows: int,
    attrs: dict[str, Any],
) -> h5netcdf.Variable:
    """A variable to be filled, in chunks of about half a megabyte where it is large."""
    chunks = {dim: file.dimensions[dim].size for dim in dims}
    packed: dict[str, Any] = {"fletcher32": True} if all(chunks.values()) else {}
    if _is_large(dims, attrs):
        dtype, packed = np.result_type(dtype, np.float32), packed | COMPRESSION
        for dim, most in (("sample", 1), ("obs", rows)):
            if dim in chunks and len(dims) > 1 - (dim == "obs"):
                chunks[dim] = min(most, chunks[dim])
        if "time" in chunks:
            step = dtype.itemsize * int(np.prod([*chunks.values()])) // chunks["time"]
            chunks["time"] = max(1, min(chunks["time"], CHUNK_BYTES // max(1, step)))
    if packed and dims:
        packed["chunks"] = tuple(chunks.values())
    made = file.create_variable(name, tuple(dims), dtype, **packed if dims else {})
    _describe(made, {k: v for k, v in attrs.items() if k != "_FillValue"})
    return made


def _attributes(source: Any) -> dict[str, Any]:
    """Attributes as they were before :func:`_describe`."""
    found = {name: source.attrs[name] for name in source.attrs}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}


def _describe(target: Any, about: Mapping[str, Any]) -> None:
    """Gives attributes; text as ParaView reads it, which has a checksum, too."""
    for name, value in about.items():
        if isinstance(value, str):
            raw = value.encode()
            kind = h5py.string_dtype("utf-8", len(raw))
            value = np.bytes_(raw) if value.isascii() else np.array(raw, kind)
        target.attrs[name] = value
