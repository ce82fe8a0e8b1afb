"""Point clouds in tables: ``.csv`` and ``.parquet``."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np

from nfsgeo.data.fields import Doubles, FieldFile, reading
from nfsgeo.data.readers.clouds import CloudFile, is_static
from nfsgeo.errors import UserError

__all__ = ["NAME", "read", "recognise"]

NAME = "tables of points (.csv, .parquet)"
KEYS = ("sample", "t", "x", "y", "z")
COLUMNS = "columns x[, y[, z]], optionally sample and t, and one for each component"


def recognise(path: Path) -> bool:
    """A Parquet file, or text whose first line names a column ``x`` and others."""
    try:
        with path.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                return True
        names = _header(path)
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return "x" in names and bool(set(names) - set(KEYS))


def read(path: Path) -> FieldFile:
    """One row for each point, record and sample, in any order.

    Columns ``x``, ``y``, ``z`` are coordinates, ``t`` the time, ``sample`` tells the
    samples apart; columns ``a`` or ``a_...`` are the coefficient, all others are
    components. A sample has the same points at every time, and every sample the same
    times; points are sorted by their coordinates.
    """
    with reading(path, f"{NAME}: {COLUMNS}"):
        columns = _columns(path)
        space = [name for name in "xyz" if name in columns]
        if space != list("xyz"[: len(space)]) or not space:
            raise ValueError(f"coordinates {space}")
        num = len(columns["x"])
        zeros = np.zeros(num)
        sample, time = columns.get("sample", zeros), columns.get("t", zeros)
        points = np.stack([columns[name] for name in space], axis=1)
        order = np.lexsort((*points.T[::-1], time, sample))
        names = [name for name in columns if name not in KEYS and not is_static(name)]
        static = [name for name in columns if is_static(name)]
        values = {
            kind: np.stack([columns[n] for n in group], axis=1)[order]
            for kind, group in {"u": names, "a": static}.items()
            if group
        }
        times = np.unique(time)
        cuts = np.flatnonzero(np.diff(sample[order])) + 1
        meshes, u, a = [], [], []
        for rows in np.split(np.arange(num), cuts):
            each = len(rows) // len(times)
            block = points[order][rows].reshape(len(times), each, -1)
            at = time[order][rows].reshape(len(times), each)
            if not (at == times[:, None]).all() or not (block == block[0]).all():
                raise ValueError(
                    f"sample {sample[order][rows[0]]:g} does not have the same points "
                    "at each of the times"
                )
            meshes.append(block[0])
            u.append(values["u"][rows].reshape(len(times), each, -1).swapaxes(0, 1))
            if static:
                coefficient = values["a"][rows].reshape(len(times), each, -1)
                if not (coefficient == coefficient[0]).all():
                    raise ValueError("a coefficient that changes in time")
                a.append(coefficient[0])
        return CloudFile(
            path,
            read,
            meshes=meshes,
            u=u,
            a=a,
            times=times,
            component_names=names,
            static_names=static,
        )


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        line = stream.readline(2**16)
    return [name.strip() for name in next(csv.reader([line]), [])]


def _columns(path: Path) -> dict[str, Doubles]:
    with path.open("rb") as stream:
        parquet = stream.read(4) == b"PAR1"
    if parquet:
        table = _parquet(path)
    else:
        names = _header(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of no rows, which is refused below
            rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        if len(set(names)) != len(names) or rows.shape[1] != len(names):
            raise ValueError(f"{rows.shape[1]} columns under the names {names}")
        table = dict(zip(names, rows.T, strict=True))
    for name in ("sample", "t", "x", "y", "z"):
        if name in table and not np.isfinite(table[name]).all():
            raise ValueError(f"column {name} has values that are not finite")
    return table


def _parquet(path: Path) -> dict[str, Doubles]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(
            f"{path}, a Parquet file", "pyarrow", "pip install 'nfsgeo[formats]'"
        ) from error
    table = parquet.read_table(path)
    return {
        name: table.column(name).to_numpy().astype(np.float64)
        for name in table.column_names
    }
