"""Readers of all formats.

A format is a :class:`Reader` and one entry in ``READERS``, which lists them in the
order in which they are asked whether a file is theirs. ``ARRAYS`` reads files of none
of them, once it is told what is in them.
"""

from __future__ import annotations

from nfsgeo.data.native import NativeFile
from nfsgeo.data.readers import fno, geo_fno, npz, pdebench, vtk
from nfsgeo.data.readers.arrays import ARRAYS
from nfsgeo.data.readers.camlab import CAMLAB
from nfsgeo.data.readers.graphs import GRAPHS
from nfsgeo.data.readers.mesh_graph_nets import MESH_GRAPH_NETS
from nfsgeo.data.readers.mp_pde import MP_PDE
from nfsgeo.data.readers.netcdf import NETCDF, ZARR
from nfsgeo.data.readers.neuraloperator import NEURALOPERATOR
from nfsgeo.data.readers.nfs_pickle import NFS_PICKLE
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.readers.table import TABLE
from nfsgeo.data.readers.the_well import THE_WELL

__all__ = ["ARRAYS", "READERS", "Reader"]

READERS: tuple[Reader, ...] = (
    Reader("nfsgeo (.h5)", NativeFile.fits, NativeFile),
    fno.BURGERS,
    fno.BURGERS_SERIES,
    fno.NAVIER_STOKES,
    fno.DARCY,
    MP_PDE,
    pdebench.BURGERS,
    pdebench.DARCY,
    pdebench.NAVIER_STOKES,
    THE_WELL,
    CAMLAB,
    geo_fno.ELASTICITY,
    geo_fno.PIPE,
    geo_fno.AIRFOIL,
    MESH_GRAPH_NETS,
    GRAPHS,
    NEURALOPERATOR,
    NFS_PICKLE,
    npz.CLOUDS,
    npz.GRIDS,
    vtk.MESHES,
    vtk.SERIES,
    ZARR,
    NETCDF,
    TABLE,
)
