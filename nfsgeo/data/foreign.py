"""Formats that are not read, each with the way to one that is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py

from nfsgeo.errors import UserError

__all__ = ["check_format", "check_path"]

READ = "HDF5 of nfsgeo, .npz, .csv, .parquet, .vtu and those of `nfsgeo datasets`"
ZARR = (".zgroup", ".zarray", ".zattrs", "zarr.json")


def check_path(path: Any) -> Path:
    """The path, where it is one.

    Raises:
        UserError: It is something else, such as an array.
    """
    if isinstance(path, (str, os.PathLike)):
        return Path(path)
    shape = getattr(path, "shape", None)
    raise UserError(
        f"data of type {type(path).__name__}"
        + ("" if shape is None else f" and shape {tuple(shape)}"),
        "the path of a file",
        'write arrays to one with numpy.savez("data.npz", coords=points, u=fields, '
        "t=times) or nfsgeo.data.PointWriter",
    )


def check_format(path: Path) -> None:
    """Refuses healthy files of formats that nfsgeo does not read.

    Raises:
        UserError: It is netCDF or Zarr; says how to convert it.
    """
    kind = "Zarr" if _is_zarr(path) else "netCDF" if _is_netcdf(path) else None
    if kind is None:
        return
    opened = "open_zarr" if kind == "Zarr" else "open_dataset"
    raise UserError(
        f"{path}, {kind}, which is not read",
        READ,
        f'convert it: ds = xarray.{opened}("{path.name}"); '
        f'numpy.savez("{path.stem}.npz", u=ds["NAME"].transpose("time", "x", "y")'
        '.values[None, ..., None], t=ds["time"], x=ds["x"], y=ds["y"])',
    )


def _is_zarr(path: Path) -> bool:
    if path.is_dir():
        return any((path / name).exists() for name in ZARR)
    return path.suffix == ".zip" and path.stem.endswith(".zarr")


def _is_netcdf(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            if stream.read(4) in (b"CDF\1", b"CDF\2", b"CDF\5"):
                return True
        if not h5py.is_hdf5(path):
            return False
        with h5py.File(path, "r") as file:
            scales = any(
                value.attrs.get("CLASS") == b"DIMENSION_SCALE"
                for value in file.values()
                if isinstance(value, h5py.Dataset)
            )
            return "_NCProperties" in file.attrs or scales
    except Exception:  # not there, or damaged: for the readers to say
        return False
