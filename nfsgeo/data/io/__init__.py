"""All formats that are read.

A format is a :class:`Format` in a file of its own and one entry in ``FORMATS``, which
lists them in the order in which they are asked whether a file is theirs.
"""

from __future__ import annotations

from nfsgeo.data.io.described_arrays import ARRAYS
from nfsgeo.data.io.format import FileProbe, Format
from nfsgeo.data.io.graphs import GRAPHS
from nfsgeo.data.io.meshes import MESHES, OTHER_MESHES, SERIES
from nfsgeo.data.io.netcdf import NETCDF, ZARR
from nfsgeo.data.io.numpy_archives import NPZ
from nfsgeo.data.io.own_files import is_own, read_own
from nfsgeo.data.io.published import PUBLISHED
from nfsgeo.data.io.published_hdf5 import MESH_GRAPH_NETS, MP_PDE, PDE_BENCH, THE_WELL
from nfsgeo.data.io.tables import CSV

__all__ = ["ARRAYS", "FORMATS", "OWN", "Format", "FileProbe"]

OWN = Format(
    "nfsgeo, CF NetCDF-4 (.nc, .h5)",
    lambda probe: is_own(probe.path),
    read_own,
    "a whole file of nfsgeo",
)

FORMATS: tuple[Format, ...] = (
    OWN,
    *PUBLISHED,
    THE_WELL,
    MP_PDE,
    PDE_BENCH,
    MESH_GRAPH_NETS,
    GRAPHS,
    NPZ,
    MESHES,
    OTHER_MESHES,
    SERIES,
    NETCDF,
    ZARR,
    CSV,
)
