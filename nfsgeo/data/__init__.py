"""Fields on grids and point clouds: files, meshes, splits and data sets.

``open`` recognises a file by its content and returns a :class:`FieldFile`.
"""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.fields import FieldFile, GridFile
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.native import GridWriter, NativeFile, PointWriter
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.data.splits import split_in_order
from nfsgeo.errors import UserError

__all__ = [
    "FieldFile",
    "FieldNormaliser",
    "GridFile",
    "GridWriter",
    "Mesh",
    "NativeFile",
    "PointWriter",
    "WindowDataset",
    "open",
    "split_in_order",
]


def open(path: str | Path) -> FieldFile:
    """Opens a file of fields, whatever its format.

    Raises:
        UserError: The file does not exist or no reader knows it.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path}", "an existing file", "check the name")
    if NativeFile.recognise(path):
        return NativeFile(path)
    raise UserError(f"{path}", "a format that nfsgeo reads", "see `nfsgeo datasets`")
