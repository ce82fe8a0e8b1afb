"""All formats that are written.

A format is a :class:`Writer` in a file of its own and one entry in ``WRITERS``. Writers
are functions of fields, and nothing that they write imports them.
"""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.writers.netcdf import OWN, of_each_sample, write_own
from nfsgeo.data.writers.npz import NPZ
from nfsgeo.data.writers.paraview import PVD, VTU
from nfsgeo.data.writers.tables import CSV, PARQUET
from nfsgeo.data.writers.writer import Writer
from nfsgeo.errors import require
from nfsgeo.files import check_target

__all__ = ["OWN", "WRITERS", "Writer", "of_each_sample", "write_own", "writer_of"]

WRITERS: tuple[Writer, ...] = (OWN, NPZ, PVD, VTU, PARQUET, CSV)


def writer_of(out: Path) -> Writer:
    """Return the writer for the ending of a path; NetCDF without an ending.

    Raises:
        UserError: No format has the ending, a package that writes it is not installed,
            or the file exists or cannot be made.
    """
    writers = {ending: writer for writer in WRITERS for ending in writer.endings}
    check_target(out, *writers)
    writer = writers.get(out.suffix.lower(), OWN)
    for package in writer.needs:
        require(package, f"{out} to write")
    return writer
