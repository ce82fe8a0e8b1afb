"""All formats that are read.

A format is a :class:`Format` in a file of its own and one entry in ``FORMATS``, which
lists them in the order in which they are asked whether a file is theirs.
"""

from __future__ import annotations

from nfsgeo.data.formats.arrays import ARRAYS
from nfsgeo.data.formats.format import Format, Look
from nfsgeo.data.formats.graphs import GRAPHS
from nfsgeo.data.formats.groups import MESH_GRAPH_NETS, MP_PDE, PDE_BENCH, THE_WELL
from nfsgeo.data.formats.meshes import MESHES, SERIES
from nfsgeo.data.formats.netcdf import NETCDF, ZARR
from nfsgeo.data.formats.npz import NPZ
from nfsgeo.data.formats.published import PUBLISHED
from nfsgeo.data.formats.tables import CSV
from nfsgeo.data.store import is_own, read_own

__all__ = ["ARRAYS", "FORMATS", "OWN", "Format", "Look"]

OWN = Format(
    "nfsgeo, CF NetCDF-4 (.nc, .h5)",
    lambda look: is_own(look.path),
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
    SERIES,
    NETCDF,
    ZARR,
    CSV,
)
