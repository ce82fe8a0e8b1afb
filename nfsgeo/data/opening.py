"""Recognises a file by its content."""

from __future__ import annotations

from pathlib import Path

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.heaps import check_heaps
from nfsgeo.data.native import NativeFile
from nfsgeo.data.readers import READERS
from nfsgeo.errors import UserError

__all__ = ["open_file"]


def open_file(path: str | Path) -> FieldFile:
    """Opens the file of fields at ``path``, whatever its format.

    Raises:
        UserError: The file does not exist, is damaged, or no reader knows it.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}", "an existing file", "check the name")
    check_heaps(path)
    if NativeFile.recognise(path):
        return NativeFile(path)
    for reader in READERS:
        if reader.recognise(path):
            return reader.read(path)
    raise UserError(
        f"{path}",
        "an undamaged file of nfsgeo or of a format that it reads",
        "see `nfsgeo datasets` for the formats",
    )
