"""nfsgeo's own file: CF NetCDF-4, laid out as :mod:`nfsgeo.data.layout` says.

It opens in xarray, ParaView, Panoply and ncdump. Values have the precision that they
came in, and a checksum in each chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray
from xarray import Variable

from nfsgeo.data.disk import check_room, new_hdf5
from nfsgeo.data.fields import FIELD, INITIAL, KNOWN, STATIC, STATION, Fields, reading
from nfsgeo.data.lazy import deferred, opened_hdf5, read_hdf5
from nfsgeo.data.times import EPOCH, time_variable
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["is_own", "of_each_sample", "read_own", "write_own"]

LAYOUT = 4  # of the file, its attribute `nfsgeo_layout`
CHUNK_BYTES = 2**19
PACKED = {"scale_factor", "add_offset"}  # how xarray has unpacked values
FIELDS = (FIELD, KNOWN, STATIC, INITIAL)  # roles of what is at the points


def is_own(path: Path) -> bool:
    """Whether nfsgeo wrote the file, be it before its files were NetCDF."""
    with h5py.File(path, "r") as file:
        older = np.bytes_(file.attrs.get("format", b"")) == b"nfsgeo"
        exported = "nfsgeo" in file.attrs  # with JSON of its own
        return older or exported or "nfsgeo_layout" in file.attrs


def read_own(path: Path) -> Fields:
    """The fields of a file that nfsgeo wrote, whose values are read when asked for.

    Raises:
        UserError: The file has another layout.
    """
    with h5py.File(path, "r") as file:
        if int(np.ravel(file.attrs.get("nfsgeo_layout", 0))[0]) != LAYOUT:
            raise UserError(
                f"{path}, which an older nfsgeo wrote, or a newer one",
                f"a file of layout {LAYOUT}, or of a format that nfsgeo reads",
                "make it again, or export it to .csv with the nfsgeo that wrote it",
            )
    opened = opened_hdf5(path)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as dataset:
        found = dict(dataset.variables)
        for name, each in dataset.variables.items():
            # Another program may have packed values, and counts dates as it likes.
            plain = each.dtype.kind in "biuf" and each.dtype == each.encoding["dtype"]
            plain &= PACKED.isdisjoint(each.encoding)
            if plain and _is_large(each.dims, each.attrs):
                # By h5py alone, in half the time that h5netcdf takes.
                read = partial(read_hdf5, opened, str(name))
                found[name] = deferred(
                    each.dims, each.shape, each.dtype, read, each.attrs
                )
            elif each.load().dtype == object:  # names, as text of numpy
                found[name] = each.astype(str)
        unit = dataset["time"].attrs.get("units", "") if "time" in found else ""
        if "since" in unit and unit != EPOCH:
            when = xarray.decode_cf(dataset[["time"]])["time"].values
            found["time"] = time_variable(when, f"time of {path}")
    about = {k: v for k, v in dataset.attrs.items() if k != "nfsgeo_layout"}
    whole = xarray.Dataset(found, attrs=about).set_coords(dataset.coords)
    return Fields(whole, path, reopens=True)


def write_own(fields: Fields, out: Path, progress: Progress = silent) -> None:
    """Writes fields sample by sample; the file appears whole or not at all.

    Raises:
        UserError: The folder of ``out`` does not exist, or the disk is full.
    """
    source, total = fields.dataset, fields.num_samples
    if "time" not in source.variables:
        source = source.assign_coords(time=("time", fields.times, {"axis": "T"}))
    ahead, places = ("sample", "time", *fields.places), [*fields.space]
    if fields.stations():
        names = _letters(source[STATION].variable)
        source, places = source.assign_coords(station=names), [*places, STATION]
        fields = replace(fields, dataset=source)
    with new_hdf5(out) as handle, h5netcdf.File(handle, "w") as file:
        file.dimensions = {str(dim): size for dim, size in source.sizes.items()}
        whole = {**source.attrs, "Conventions": "CF-1.11", "nfsgeo_layout": LAYOUT}
        _describe(file, whole)
        for name, each in source.variables.items():
            if each.dtype.kind not in "biuf" and each.dtype != "S1":
                continue
            dims = [d for d in ahead if d in each.dims]
            dims += [d for d in map(str, each.dims) if d not in dims]
            about = dict(each.attrs)
            if name in fields.space:
                about["axis"] = str(name).upper()
            elif fields.axes is None and {*dims}.intersection(fields.places):
                about["coordinates"] = " ".join(p for p in places if p != name)
            _create(file, str(name), dims, each.dtype, fields.num_points(0), about)
        # Open until flushed: HDF5 closes what it cannot write without an error.
        held = [handle[name] for name in file.variables]
        check_room(out, sum(array.nbytes for array in held))
        file["time"][...] = fields.times
        for sample in range(total):
            for name, index, values in of_each_sample(fields, sample):
                if name in file.variables and name != "time":
                    dims = file[name].dimensions
                    key = tuple(index.get(dim, slice(None)) for dim in dims)
                    file[name][key] = values.transpose(*dims).values
            handle.flush()
            progress("writing samples", sample + 1, total)


def of_each_sample(
    fields: Fields, sample: int
) -> Iterator[tuple[str, dict[str, slice], Variable]]:
    """Name of each variable, where it is a sample's by dimension, and its values there.

    Variables that samples share, and those of one number each, are the first's.
    """
    for name, variable in fields.dataset.variables.items():
        index = {}
        rows = fields.rows(sample)
        if rows is not None and "obs" in variable.dims:
            index["obs"] = rows
        elif "sample" in variable.dims and variable.ndim > 1:
            index["sample"] = slice(sample, sample + 1)
        elif sample:
            continue
        with reading(fields.path, f"sample {sample} to be readable"):
            taken = variable.isel(index)
            whole = Variable(taken.dims, np.asarray(taken.values))
        yield str(name), index, whole


def _letters(names: Variable) -> Variable:
    """Names as CF holds them for all programs, along a dimension of letters."""
    coded = np.char.encode(names.values.astype(str), "utf-8")
    apart = np.ascontiguousarray(coded)[..., None].view("S1")
    return Variable((*names.dims, "letter"), apart, {"_Encoding": "utf-8"})


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
) -> None:
    """A variable to be filled, in chunks of about half a megabyte where it is large."""
    chunks = {dim: file.dimensions[dim].size for dim in dims}
    if _is_large(dims, attrs) and dtype.kind != "S":
        if dtype.kind != "i" or attrs.get("role") != STATIC:  # of categories
            dtype = np.result_type(dtype, np.float32)
        for dim, most in (("sample", 1), ("obs", rows)):
            if dim in chunks and len(dims) > 1 - (dim == "obs"):
                chunks[dim] = min(most, chunks[dim])
        if steps := chunks.pop("time", 0):
            step = dtype.itemsize * max(1, prod(chunks.values()))
            most = max(1, CHUNK_BYTES // step)  # as many in each, or the last is padded
            chunks["time"] = -(-steps // -(-steps // most))
    packed: dict[str, Any] = {}
    if dims and all(chunks.values()):
        packed = {"fletcher32": True, "chunks": tuple(chunks[dim] for dim in dims)}
    made = file.create_variable(name, tuple(dims), dtype, **packed)
    _describe(made, {k: v for k, v in attrs.items() if k != "_FillValue"})


def _describe(target: Any, about: Mapping[str, Any]) -> None:
    """Gives attributes; text as ParaView reads it, which has a checksum, too."""
    for name, value in about.items():
        if isinstance(value, str):
            raw = value.encode()
            kind = h5py.string_dtype("utf-8", len(raw))
            value = np.bytes_(raw) if value.isascii() else np.array(raw, kind)
        target.attrs[name] = value
