"""nfsgeo's own HDF5 file: fields on a grid or on point clouds, read and written.

- :class:`NativeFile`: reads it
- :class:`GridWriter`: writes samples on one grid, batch by batch
- :class:`PointWriter`: writes samples on meshes of their own
- :class:`MeshWriter`: writes samples that are made in any order, each with its mesh
- :class:`Header`: everything about a file but its values
"""

from __future__ import annotations

from nfsgeo.data.native.file import NativeFile
from nfsgeo.data.native.grid_writer import GridWriter
from nfsgeo.data.native.layout import Header
from nfsgeo.data.native.mesh_writer import MeshWriter
from nfsgeo.data.native.point_writer import PointWriter

__all__ = ["GridWriter", "Header", "MeshWriter", "NativeFile", "PointWriter"]
