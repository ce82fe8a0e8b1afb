"""Writes nfsgeo's own file, see :mod:`nfsgeo.data.io.own_files`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5netcdf
import h5py
import numpy as np
from xarray import Variable

from nfsgeo.data.checks import not_infinite, reading
from nfsgeo.data.conventions import (
    AT_POINTS,
    DERIVED,
    FILE_LAYOUT,
    STATIC,
    STATION,
    is_large,
)
from nfsgeo.data.writers.writer import Writer
from nfsgeo.files import check_room, new_hdf5
from nfsgeo.progress import Progress, silent

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["OWN", "of_each_sample", "write_own"]

CHUNK_BYTES = 2**19


def write_own(fields: Fields, out: Path, progress: Progress = silent) -> None:
    """Write fields sample by sample; the file appears whole or not at all.

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
        whole = {**source.attrs, "Conventions": "CF-1.11", "nfsgeo_layout": FILE_LAYOUT}
        _describe(file, whole)
        for name, variable in source.variables.items():
            if variable.dtype.kind not in "biuf" and variable.dtype != "S1":
                continue
            dims = [d for d in ahead if d in variable.dims]
            dims += [d for d in map(str, variable.dims) if d not in dims]
            about = {k: v for k, v in variable.attrs.items() if k != DERIVED}
            if name in fields.space:
                about["axis"] = str(name).upper()
            elif fields.axes is None and {*dims}.intersection(fields.places):
                about["coordinates"] = " ".join(p for p in places if p != name)
            _create(file, str(name), dims, variable.dtype, fields.num_points(0), about)
        check_room(out, sum(handle[name].nbytes for name in file.variables))
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
    """Read the variables of a sample.

    Variables that samples share, and those of one number each, belong to the first.

    Yields:
        Name of the variable, the index of the sample by dimension, and its values.
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
        if variable.attrs.get("role") in AT_POINTS:
            not_infinite(whole.values, f"{name} in sample {sample} of {fields.path}")
        yield str(name), index, whole


def _letters(names: Variable) -> Variable:
    """Names along a dimension of letters, as CF stores them for all programs."""
    coded = np.char.encode(names.values.astype(str), "utf-8")
    apart = np.ascontiguousarray(coded)[..., None].view("S1")
    return Variable((*names.dims, "letter"), apart, {"_Encoding": "utf-8"})


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
    if is_large(dims, attrs) and dtype.kind != "S":
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
    variable = file.create_variable(name, tuple(dims), dtype, **packed)
    _describe(variable, {k: v for k, v in attrs.items() if k != "_FillValue"})


def _describe(target: Any, about: Mapping[str, Any]) -> None:
    """Set attributes; text is stored as ParaView reads it, with a checksum."""
    for name, value in about.items():
        if isinstance(value, str):
            raw = value.encode()
            kind = h5py.string_dtype("utf-8", len(raw))
            value = np.bytes_(raw) if value.isascii() else np.array(raw, kind)
        target.attrs[name] = value


OWN = Writer(
    "nfsgeo, CF NetCDF-4 (.nc, .h5)",
    (".nc", ".h5", ".nc4", ".hdf5"),
    write_own,
    keeps_attributes=True,
)
