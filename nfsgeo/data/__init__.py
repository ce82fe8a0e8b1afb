"""Fields on grids and point clouds: files, meshes, splits and data sets.

- :func:`open`: any file of fields, recognised by its content, as a :class:`FieldFile`
- :func:`convert`: any such file, or several, into the native HDF5 file or another
- :func:`export`: fields into a file of the format of its ending
- :class:`NativeFile`, :class:`GridWriter`, :class:`PointWriter`: the native file
- :class:`Mesh` and the samplers in :mod:`nfsgeo.data.meshes`
- :class:`WindowDataset`: samples as PyTorch Geometric graphs
- :class:`FieldNormaliser`: mean zero and standard deviation one for each component
- :func:`split_in_order`: training, validation and test samples
- :mod:`nfsgeo.data.readers`, :mod:`nfsgeo.data.writers`: foreign formats
- :mod:`nfsgeo.data.pde`: solvers
"""

from __future__ import annotations

from nfsgeo.data.convert import convert
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.export import export
from nfsgeo.data.fields import FieldFile
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.native import GridWriter, NativeFile, PointWriter
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.data.opening import open_file as open
from nfsgeo.data.splits import split_in_order

__all__ = [
    "FieldFile",
    "FieldNormaliser",
    "GridWriter",
    "Mesh",
    "NativeFile",
    "PointWriter",
    "WindowDataset",
    "convert",
    "export",
    "open",
    "split_in_order",
]
