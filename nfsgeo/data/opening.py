"""Opens files of fields: recognises a format by its content, joins several files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.heaps import check_heaps
from nfsgeo.data.joined import JoinedFile
from nfsgeo.data.numbers import as_times
from nfsgeo.data.readers import READERS
from nfsgeo.data.readers.table import TABLE, table_with
from nfsgeo.errors import UserError

__all__ = ["check_format", "check_path", "open_file", "open_sources"]

READ = "HDF5 of nfsgeo, .npz, .csv, .parquet, .vtu and those of `nfsgeo datasets`"
ZARR = (".zgroup", ".zarray", ".zattrs", "zarr.json")


def open_file(path: str | os.PathLike[str]) -> FieldFile:
    """Opens the file of fields at ``path``, whatever its format.

    Raises:
        UserError: The file does not exist, is damaged or does not tell its times, or
            no reader knows it.
    """
    return _with_times(_open_any(path), None)


def open_sources(
    sources: str | Path | Sequence[str | Path],
    *,
    series: str | None = None,
    times: ArrayLike | None = None,
    columns: Mapping[str, str] | None = None,
) -> FieldFile:
    """Opens a file, or several as one; arguments as in :func:`nfsgeo.data.convert`.

    Raises:
        UserError: One of them cannot be read, they differ in kind, or their times are
            not known.
    """
    if series not in (None, "samples", "time-steps"):
        raise ValueError(f"series {series!r}: expected 'samples' or 'time-steps'")
    several = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    paths: list[Path] = []
    for path in map(check_path, several):
        if path.is_dir():
            check_format(path)
        inside = [entry for entry in path.iterdir()] if path.is_dir() else [path]
        paths += sorted((entry for entry in inside if not entry.is_dir()), key=_natural)
    if not paths:
        raise UserError(f"{several}", "at least one file", "check the names")
    opener = partial(_open_any, columns=columns)
    if len(paths) == 1:
        return _with_times(opener(paths[0]), times)
    return _with_times(JoinedFile(paths, opener, along=series), times)


def _open_any(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None
) -> FieldFile:
    """Opens a file, which need not tell its times; ``columns`` are those of a table."""
    path = check_path(path)
    if not path.is_file():
        check_format(path)
        raise UserError(f"{path}", "an existing file", "check the name")
    check_heaps(path)
    reader = next((each for each in READERS if each.recognise(path)), None)
    if columns:
        if reader is not TABLE:
            raise UserError(
                f"columns of {path}",
                "a table, .csv or .parquet",
                "leave the columns out",
            )
        reader = table_with(columns)
    if reader is not None:
        return reader.read(path)
    check_format(path)
    raise UserError(
        f"{path}",
        "an undamaged file of nfsgeo or of a format that it reads",
        "see `nfsgeo datasets` for the formats",
    )


def _with_times(file: FieldFile, given: ArrayLike | None) -> FieldFile:
    """The file with the given times, or its own where it tells them; else closes it."""
    last = len(file.times) - 1
    try:
        if given is not None:
            times = as_times(given, "times")
            if times.shape != file.times.shape or not np.all(np.diff(times) > 0):
                raise UserError(
                    f"times {times.tolist() if times.size < 9 else times.shape}",
                    f"an increasing time for each of the {last + 1} time steps of "
                    f"{file.path}",
                    "change their number or order",
                )
            file.times, file.times_are_known = times, True
        if last and not file.times_are_known:
            raise UserError(
                f"{file.path} with {last + 1} time steps and no times",
                "a file that tells them",
                f"give them: nfsgeo convert {file.path} --out NAME.h5 --times "
                f"START:STOP:STEP, as in --times 0:{last}:1",
            )
    except UserError:
        file.close()
        raise
    return file


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


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Orders ``step_2`` before ``step_10``."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts]
