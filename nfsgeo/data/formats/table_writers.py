"""Writers of tables: a row for each sample, point and time step.

Parameters, cells and the domain have no place in them. Static inputs are called
``a_NAME`` and forcings ``forcing_NAME``, by which they are known again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas

from nfsgeo.data.disk import growing
from nfsgeo.data.fields import STATION, Fields
from nfsgeo.data.formats.cells import header
from nfsgeo.data.formats.columns import roles_of
from nfsgeo.data.formats.kinds import marked_names
from nfsgeo.data.times import dates
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress


def write_csv(fields: Fields, out: Path, progress: Progress) -> None:
    """A table of text, with dates of ISO 8601."""
    ahead, names = _header(fields, out)
    with growing(out) as partial:
        partial.write_text(_line([*ahead, *names]), encoding="utf-8", newline="")
        for table in _tables(fields, ahead, names, progress):
            if table["time"].dtype.kind == "M":
                at, units = table["time"].to_numpy(), ("D", "s", "us")
                fits = (u for u in units if (at.astype(f"M8[{u}]") == at).all())
                table["time"] = at.astype(f"M8[{next(fits)}]").astype(str)
            table.to_csv(
                partial, mode="a", header=False, index=False, lineterminator="\n"
            )


def write_parquet(fields: Fields, out: Path, progress: Progress) -> None:
    """The columns of a ``.csv``."""
    tables = _tables(fields, *_header(fields, out), progress)
    with growing(out) as partial:
        whole = pandas.concat(tables, ignore_index=True)
        whole.to_parquet(partial, engine="pyarrow", index=False)


def _header(fields: Fields, out: Path) -> tuple[list[str], list[str]]:
    """Names of the columns, once they are read back as what they are."""

    ahead = ["sample"] * (fields.num_samples > 1) + ["time"]
    ahead += [STATION] * bool(fields.stations()) + [*fields.space]
    names = marked_names(fields, out, ahead)
    found = roles_of(out, [*ahead, *names]).values()  # which refuses a second x or time
    taken = [name for name in found if name not in ahead]
    if not taken and header(_line([*ahead, *names]))[0] != [*ahead, *names]:
        taken = [name for name in names if set(name) & set(",;\t")]
    if taken:
        raise UserError(
            f"a field named {taken[0]!r} in {out}",
            "names that are not taken for those of coordinates, time or sample, "
            "without commas, semicolons and tabs",
            "rename the component or choose .nc",
        )
    return ahead, names


def _line(names: list[str]) -> str:
    return pandas.DataFrame(columns=names).to_csv(index=False, lineterminator="\n")


def _tables(
    fields: Fields, ahead: list[str], names: list[str], progress: Progress
) -> Iterator[pandas.DataFrame]:
    """The columns of one sample after the other."""
    times, total = dates(fields.times, fields.time_unit), fields.num_samples
    for sample in range(total):
        u, a = fields.read_all(sample, slice(None)), fields.read_static(sample)
        points, steps = fields.coordinates(sample), len(times)
        values = [np.full(len(u) * steps, sample)] * (total > 1)
        values += [np.tile(times, len(u))]
        if STATION in ahead:
            values.append(np.repeat(fields.stations(sample), steps))
        values += [*np.repeat(points, steps, axis=0).T]
        values += [*u.reshape(-1, u.shape[-1]).T, *np.repeat(a, steps, axis=0).T]
        yield pandas.DataFrame(dict(zip([*ahead, *names], values, strict=True)))
        progress("exporting samples", sample + 1, total)
