"""Opens files of fields: recognises a format by its content, joins several files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nfsgeo.data.axes import check_axes
from nfsgeo.data.fields import FieldFile
from nfsgeo.data.heaps import check_heaps
from nfsgeo.data.joined import JoinedFile
from nfsgeo.data.numbers import as_times, unit_of_times
from nfsgeo.data.readers import ARRAYS, READERS, Reader
from nfsgeo.data.readers.columns import Columns
from nfsgeo.data.readers.netcdf import is_store
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["check_path", "fitted", "is_source", "open_file", "open_sources"]

SERIES = ("samples", "time-steps")
PLACES = ("points", "cells")


def open_file(path: str | os.PathLike[str]) -> FieldFile:
    """Opens the file of fields at ``path``, whatever its format.

    Raises:
        UserError: The file does not exist, is damaged or does not tell its times, or
            no reader knows it.
    """
    return _settled(_open_any(path))


def open_sources(
    sources: str | Path | Sequence[str | Path],
    *,
    series: str | None = None,
    times: ArrayLike | None = None,
    columns: Columns | None = None,
    at: str | None = None,
    domain: Domain | None = None,
    known: Sequence[str] = (),
) -> FieldFile:
    """Opens a file, or several as one; arguments as in :func:`nfsgeo.data.convert`.

    Raises:
        UserError: One of them cannot be read, they differ in kind, or their times or
            the ends of their longitudes are not known.
    """
    for name, value, choices in (("series", series, SERIES), ("at", at, PLACES)):
        if value not in (None, *choices):
            raise ValueError(f"{name} {value!r}: expected {' or '.join(choices)}")
    several = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    paths: list[Path] = []
    for path in map(check_path, several):
        folder = path.is_dir() and not is_source(path)
        inside = [entry for entry in path.iterdir()] if folder else [path]
        inside = [entry for entry in inside if is_source(entry) or not folder]
        paths += _in_order(inside) if folder else inside
    if not paths:
        raise UserError(f"{several}", "at least one file", "check the names")
    if paths == sorted(paths, key=str):  # as a shell lists them: nobody's choice
        paths = _in_order(paths)
    options = {"columns": columns, "at": at}
    if len(paths) == 1:
        file = _open_any(paths[0], options | {"series": series})
    else:
        file = JoinedFile(paths, partial(_open_any, options=options), along=series)
    return _settled(file, times, domain, known)


def is_source(path: Path) -> bool:
    """Whether there is a file, or a folder that is a Zarr store."""
    return path.is_file() or is_store(path)


def _open_any(
    path: str | os.PathLike[str], options: Mapping[str, Any] | None = None
) -> FieldFile:
    """Opens a file, which need not tell its times; see :meth:`Reader.told`."""
    path = check_path(path)
    if not is_source(path):
        raise UserError(f"{path}", "an existing file", "check the name")
    if path.is_file():
        check_heaps(path)
    reader = _reader_of(path, options or {})
    if reader is None:
        raise UserError(
            f"{path}",
            "an undamaged file of nfsgeo or of a format that it reads",
            "see `nfsgeo datasets` for the formats",
        )
    return reader.told(path, options or {}).read(path)


def _reader_of(path: Path, options: Mapping[str, Any]) -> Reader | None:
    """The reader of the file's format, or that of any arrays where fields are told."""
    told = "field" in (options.get("columns") or {})
    for each in (*READERS, ARRAYS):
        if each.recognise(path) and (not told or "columns" in each.options):
            return each
    return None


def _settled(
    file: FieldFile,
    given: ArrayLike | None = None,
    domain: Domain | None = None,
    known: Sequence[str] = (),
) -> FieldFile:
    """The file with the given times, or its own where it tells them; else closes it.

    Likewise closes a file whose longitudes may be periodic or not, which only a domain
    can decide.
    """
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
            _rename_time(file, unit_of_times(given))
        if last and not file.times_are_known:
            raise UserError(
                f"{file.path} with {last + 1} time steps and no times",
                "a file that tells them",
                f"give them: nfsgeo convert {file.path} --out NAME.h5 --times "
                f"START:STOP:STEP, as in --times 0:{last}:1",
            )
        file.know(known)
        if domain is not None:
            domain = fitted(domain, file)
            if file.axes is not None:
                check_axes(file.path, file.axes, domain)
            file.domain, file.domain_is_known = domain, True
        if file.longitude is not None and domain is None:
            ends = f"{file.domain.lower[0]:g}:{file.domain.upper[0]:g}"
            rest = " --axis LOW:HIGH" * (file.domain.dim - 1)
            raise UserError(
                f"{file.path} with longitudes over {file.longitude:g} degrees",
                "to be told whether they close around the globe",
                f"give the domain: nfsgeo convert {file.path} --out NAME.h5 "
                f"--sphere, or --axis LOW:HIGH:periodic{rest}, as in --axis "
                f"0:360:periodic, or without :periodic, --axis {ends}",
            )
    except UserError:
        file.close()
        raise
    file.as_opened = told(file)
    return file


def told(file: FieldFile) -> tuple[Any, ...]:
    """What a file says of its parts, times and domain, which code may change."""
    split = sorted((name, [*map(int, part)]) for name, part in file.split.items())
    return split, file.times.tolist(), file.domain.to_dict()


def _rename_time(file: FieldFile, unit: str) -> None:
    """Gives the times of a file another unit, ``""`` for none."""
    units = file.provenance.get("units")
    if unit or isinstance(units, dict):
        kept = dict(units) if isinstance(units, dict) else {}
        kept.pop("time", None)
        units = kept | ({"time": unit} if unit else {})
        file.provenance = {**file.provenance, "units": units}


def fitted(domain: Domain, file: FieldFile) -> Domain:
    """The domain; a sphere begins where the longitudes of the file's grid do.

    Raises:
        UserError: It is a sphere, and the coordinates are in radians.
    """
    units = file.provenance.get("units") or {}
    if not domain.curved or not isinstance(units, dict):
        return domain
    if unit := next(
        (units[k] for k in "xy" if str(units.get(k)).startswith("rad")), ""
    ):
        raise UserError(
            f"{file.path} with coordinates in {unit} on a sphere",
            "longitude and latitude in degrees",
            "convert the coordinates",
        )
    whole = file.axes is not None and file.axes[0][0] >= 0
    return Domain.sphere(0.0) if whole else domain


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


def _in_order(paths: Sequence[Path]) -> list[Path]:
    """Files by the numbers in their names, ``step_2`` before ``step_10``.

    Raises:
        UserError: Numbers have a point, and their order depends on what it is.
    """
    whole, decimal = (
        sorted(paths, key=partial(_natural, number))
        for number in (r"\d+", r"\d+\.\d+|\d+")
    )
    if whole != decimal:
        one, other = next((a, b) for a, b in zip(whole, decimal, strict=True) if a != b)
        raise UserError(
            f"files {one.name} and {other.name}, of which either may come first",
            "names in one order, whether a point separates numbers or is a decimal one",
            "rename them with as many digits in each",
        )
    return whole


def _natural(number: str, path: Path) -> list[tuple[int, float, str]]:
    parts = re.findall(rf"{number}|\D", path.stem)
    text = [(0, float(p), "") if p[0].isdecimal() else (1, 0.0, p) for p in parts]
    return [(1, 0.0, str(path.parent)), *text, (1, 0.0, path.suffix)]
