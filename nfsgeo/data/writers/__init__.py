"""Writers of all formats.

A format is a :class:`Writer` and one entry in ``WRITERS``; the ending of the file to
make chooses among them.
"""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.extras import require
from nfsgeo.data.native.layout import check_ending, partial_path
from nfsgeo.data.writers.native import NATIVE_FILE
from nfsgeo.data.writers.netcdf import NETCDF_FILE
from nfsgeo.data.writers.npz import NPZ
from nfsgeo.data.writers.table import CSV, PARQUET
from nfsgeo.data.writers.vtk import PVD, VTU
from nfsgeo.data.writers.writer import Writer

__all__ = ["NATIVE_FILE", "WRITERS", "Writer", "writer_of"]

WRITERS: tuple[Writer, ...] = (NATIVE_FILE, NETCDF_FILE, PVD, VTU, CSV, PARQUET, NPZ)


def writer_of(out: Path) -> Writer:
    """The writer of the format that a name promises; the native one without ending.

    Raises:
        UserError: No format has the ending, a package that writes it is not installed,
            or the file exists or cannot be made.
    """
    endings = [ending for writer in WRITERS for ending in writer.endings]
    check_ending(out, *endings)
    fitting = (w for w in WRITERS if out.suffix.lower() in w.endings)
    writer = next(fitting, NATIVE_FILE)
    for package in writer.needs:
        require(package, f"{out} to write")
    if writer is not NATIVE_FILE:  # whose partial files go on where they stopped
        partial_path(out, *endings)
    return writer
