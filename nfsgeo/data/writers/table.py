"""Tables: a row for each sample, point and time step."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.native.layout import growing
from nfsgeo.data.readers.cells import header
from nfsgeo.data.readers.columns import roles_of
from nfsgeo.data.writers.writer import Writer, dates, marked_names
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress

__all__ = ["CSV", "PARQUET"]


def _columns(
    file: FieldFile, out: Path, tick: Progress
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of one sample after the other, the first by names alone.

    The columns of static inputs are called ``a_NAME`` and those of forcings
    ``forcing_NAME``, by which they are known again.
    """
    axes, total = list(SPACE[: file.domain.dim]), file.num_samples
    ahead = ["sample"] * (total > 1) + ["time", *axes]
    names = marked_names(file, out, ahead)
    _check_header(out, ahead, names)
    yield dict.fromkeys([*ahead, *names], np.empty(0))
    steps, times = len(file.times), dates(file)
    for sample in range(total):
        u, a, points = (
            file.read_all(sample, slice(None)),
            file.read_static(sample),
            file.coordinates(sample),
        )
        num = len(points)
        values = [np.tile(times, num)]
        values += [np.repeat(column, steps) for column in points.T]
        values += [u[..., c].reshape(-1) for c in range(u.shape[-1])]
        values += [np.repeat(column, steps) for column in a.T]
        if total > 1:
            values.insert(0, np.full(num * steps, sample))
        yield dict(zip([*ahead, *names], values, strict=True))
        tick("exporting samples", sample + 1, total)


def _check_header(out: Path, ahead: list[str], names: list[str]) -> None:
    """Makes sure that the columns are read back as what they are.

    Raises:
        UserError: A field would be taken for a coordinate, the time or the sample, or
            the names cannot be told apart in the first line of the table.
    """
    found = roles_of(out, [*ahead, *names]).values()  # which refuses a second x or time
    taken = [name for name in found if name not in ahead]
    if not taken and header(_line([*ahead, *names]))[0] != [*ahead, *names]:
        taken = [name for name in names if set(name) & set(",;\t")]
    if taken:
        raise UserError(
            f"a field named {taken[0]!r} in {out}",
            "names that are not taken for those of coordinates, time or sample, "
            "without commas, semicolons and tabs",
            "rename the component or choose .h5",
        )


def _line(names: list[str]) -> str:
    """The first line of a table."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(names)
    return text.getvalue()


def _csv(file: FieldFile, out: Path, tick: Progress) -> None:
    """A row for each sample, point and time step; dates of ISO 8601. Parameters, cells
    and the domain are left out.
    """
    parts = _columns(file, out, tick)
    names = list(next(parts))
    with (
        growing(out) as partial,
        partial.open("w", encoding="utf-8", newline="") as stream,
    ):
        stream.write(_line(names))
        writer = csv.writer(stream, lineterminator="\n")
        for columns in parts:
            cells = [values.astype(str).tolist() for values in columns.values()]
            writer.writerows(zip(*cells, strict=True))


def _parquet(file: FieldFile, out: Path, tick: Progress) -> None:
    """The columns of a ``.csv``, in a row group for each sample."""
    import pyarrow
    from pyarrow import parquet

    parts = _columns(file, out, tick)
    next(parts)
    first = pyarrow.table(next(parts))
    with (
        growing(out) as partial,
        parquet.ParquetWriter(partial, first.schema) as writer,
    ):
        writer.write_table(first)
        for columns in parts:
            writer.write_table(pyarrow.table(columns))


CSV = Writer("tables of points (.csv)", (".csv",), _csv)
PARQUET = Writer("tables of points (.parquet)", (".parquet",), _parquet, ("pyarrow",))
