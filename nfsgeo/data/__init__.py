"""Fields on grids and at points: files, meshes, splits and windows in time.

- :class:`Fields`: samples of fields in space and time, over a data set of xarray
- :func:`open`: any file of fields, recognised by its content
- :func:`convert`: files of fields into one file
- :class:`Mesh` and the samplers in :mod:`nfsgeo.data.meshes`
- :class:`WindowDataset`: samples as PyTorch Geometric graphs
- :func:`split_in_order`: training, validation and test samples
- :mod:`nfsgeo.data.io`: formats that are read and written
- :mod:`nfsgeo.data.pde`: solvers
"""

from __future__ import annotations

from nfsgeo.data.fields import Fields
from nfsgeo.data.io.opening import convert, open
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.splits import split_in_order
from nfsgeo.data.windows import WindowDataset

__all__ = [
    "Fields",
    "Mesh",
    "WindowDataset",
    "convert",
    "open",
    "split_in_order",
]
