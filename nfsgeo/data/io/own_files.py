"""nfsgeo's own file: CF NetCDF-4, laid out as :mod:`nfsgeo.data.fields` says.

It opens in xarray, ParaView, Panoply and ncdump. Values have the precision that they
came in, and a checksum in each chunk.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import h5py
import numpy as np
import xarray

from nfsgeo.data.conventions import FILE_LAYOUT, is_large
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import deferred, opened_hdf5, read_hdf5
from nfsgeo.data.times import EPOCH, time_variable
from nfsgeo.errors import UserError

__all__ = ["is_own", "read_own"]

PACKED = {"scale_factor", "add_offset"}  # how xarray has unpacked values


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
        if int(np.ravel(file.attrs.get("nfsgeo_layout", 0))[0]) != FILE_LAYOUT:
            raise UserError(
                f"{path}, which an older nfsgeo wrote, or a newer one",
                f"a file of layout {FILE_LAYOUT}, or of a format that nfsgeo reads",
                "make it again, or export it to .csv with the nfsgeo that wrote it",
            )
    opened = opened_hdf5(path)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as dataset:
        found = dict(dataset.variables)
        for name, each in dataset.variables.items():
            # Another program may have packed values, and counts dates as it likes.
            plain = each.dtype.kind in "biuf" and each.dtype == each.encoding["dtype"]
            plain &= PACKED.isdisjoint(each.encoding)
            if plain and is_large(each.dims, each.attrs):
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
