"""Recognises a file by its content."""

from __future__ import annotations

import os
from collections.abc import Mapping

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.foreign import check_format, check_path
from nfsgeo.data.heaps import check_heaps
from nfsgeo.data.native import NativeFile
from nfsgeo.data.readers import READERS, table
from nfsgeo.errors import UserError

__all__ = ["check_times", "open_any", "open_file"]


def open_file(path: str | os.PathLike[str]) -> FieldFile:
    """Opens the file of fields at ``path``, whatever its format.

    Raises:
        UserError: The file does not exist, is damaged or does not tell its times, or
            no reader knows it.
    """
    file = open_any(path)
    try:
        check_times(file)
    except UserError:
        file.close()
        raise
    return file


def open_any(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None
) -> FieldFile:
    """As :func:`open_file`, though the file may not tell its times.

    Args:
        path: The file.
        columns: For a table, see :func:`nfsgeo.data.readers.table.read`.
    """
    path = check_path(path)
    if not path.is_file():
        check_format(path)
        raise UserError(f"{path}", "an existing file", "check the name")
    check_heaps(path)
    native = NativeFile.recognise(path)
    reader = None if native else next((r for r in READERS if r.recognise(path)), None)
    if columns and reader is not table:
        raise UserError(
            f"columns of {path}",
            "a table, .csv or .parquet",
            "leave the columns out",
        )
    if native:
        return NativeFile(path)
    if reader is not None:
        return table.read(path, columns) if columns else reader.read(path)
    check_format(path)
    raise UserError(
        f"{path}",
        "an undamaged file of nfsgeo or of a format that it reads",
        "see `nfsgeo datasets` for the formats",
    )


def check_times(file: FieldFile) -> None:
    """Makes sure that the times of a file are its own.

    Raises:
        UserError: There are several, and the file does not tell them.
    """
    last = len(file.times) - 1
    if last and not file.times_are_known:
        raise UserError(
            f"{file.path} with {last + 1} time steps and no times",
            "a file that tells them",
            f"give them: nfsgeo convert {file.path} --out NAME.h5 --times "
            f"START:STOP:STEP, as in --times 0:{last}:1",
        )
