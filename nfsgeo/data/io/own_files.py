"""nfsgeo's own file: CF NetCDF-4, laid out as :mod:`nfsgeo.data.fields` says.

It opens in xarray, ParaView, Panoply and ncdump. Values have the precision that they
came in, and a checksum in each chunk.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray

from nfsgeo.data.conventions import (
    EDGE_WEIGHT,
    EDGES,
    FILE_LAYOUT,
    SPACE,
    TIME_ZONE,
    counts_from_date,
    is_large,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import deferred, opened_hdf5, read_hdf5
from nfsgeo.data.splits import part_of
from nfsgeo.data.times import EPOCH, time_variable
from nfsgeo.errors import UserError

__all__ = ["is_own", "own_fields", "read_own", "structure_attrs"]

PACKED = {"scale_factor", "add_offset"}  # how xarray has unpacked values


def is_own(path: Path) -> bool:
    """Return whether nfsgeo wrote the file, be it before its files were NetCDF."""
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
        arrays = {n: v for n, v in file.items() if isinstance(v, h5py.Dataset)}
        virtual = {name for name, array in arrays.items() if array.is_virtual}
        if int(np.ravel(file.attrs.get("nfsgeo_layout", 0))[0]) != FILE_LAYOUT:
            raise UserError(
                f"{path}, which an older nfsgeo wrote, or a newer one",
                f"a file of layout {FILE_LAYOUT}, or of a format that nfsgeo reads",
                "make it again, or export it to .csv with the nfsgeo that wrote it",
            )
    opened = opened_hdf5(path)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as dataset:
        lazy = dict[Any, xarray.Variable]()
        for name, variable in dataset.variables.items():
            # Another program may have packed values, and counts dates as it likes.
            stored, dtype = variable.encoding, variable.dtype
            plain = dtype.kind in "biuf" and PACKED.isdisjoint(stored)
            large = is_large(variable.dims, variable.attrs) or name in virtual
            if large and plain and dtype == stored["dtype"]:
                # By h5py alone, in half the time that h5netcdf takes.
                read = partial(read_hdf5, opened, str(name))
                dims, shape = variable.dims, variable.shape
                lazy[name] = deferred(dims, shape, dtype, read, variable.attrs)
            else:
                variable.load()
        del dataset.attrs["nfsgeo_layout"]
        return replace(own_fields(path, dataset.assign(lazy)), reopens=True)


def structure_attrs(name: str) -> dict[str, str]:
    """Attributes of a variable of mesh, graph or domain, which its name tells.

    Other programs than nfsgeo need not write them.
    """
    first, _, kind = name.removeprefix("row_size").partition("_")
    if name.startswith("row_size") and not first:
        along = {"": "obs", "edge": "edge"}.get(kind, f"cell_{kind}")
        return {"role": "rows", "sample_dimension": along}
    roles = {EDGES: "edges", EDGE_WEIGHT: "edges", "region": "facets"}
    role = "cells" if name.startswith("cells_") else roles.get(name, "")
    return {"role": role} if role else {}


def own_fields(path: Path, dataset: xarray.Dataset) -> Fields:
    """The fields of a data set of nfsgeo's own layout, as xarray opens it."""
    variables = {
        name: variable.astype(str) if variable.dtype.kind in "OSU" else variable
        for name, variable in dataset.variables.items()
    }
    for name, variable in variables.items():
        about = structure_attrs(str(name))
        if about and variable.attrs.get("role", about["role"]) == about["role"]:
            variable.attrs = about | variable.attrs
    if "part" in variables:
        variables["part"] = part_of(variables["part"], path)
    if "time" in variables:
        when: xarray.Variable = variables["time"]
        unit, values = str(when.attrs.get("units", "")), when.values
        if counts_from_date(unit) and unit != EPOCH:
            values = xarray.decode_cf(dataset[["time"]])["time"].values
        zone = {k: v for k, v in when.attrs.items() if k == TIME_ZONE}
        variables["time"] = time_variable(values, f"times of {path}", unit)
        variables["time"].attrs |= zone
    text = {name for name, variable in variables.items() if variable.dtype.kind == "U"}
    whole = xarray.Dataset(variables, attrs=dataset.attrs)
    return Fields(whole.set_coords({"time", *SPACE, *text} & variables.keys()), path)
