"""The user's cache, and disks that are full, or fill up while a file is written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from nfsgeo.errors import UserError

__all__ = ["abandon", "cache_folder", "check_room", "occupied", "writing"]

FULL = (errno.ENOSPC, errno.EDQUOT)
ADVICE = "free some space and try again, or choose another place"


def check_room(path: Path, size: int) -> None:
    """Makes sure that the disk can hold what is about to be written.

    Args:
        path: The file or the folder that is written to.
        size: Bytes that will be added.

    Raises:
        UserError: It cannot.
    """
    folder = path if path.is_dir() else path.resolve().parent
    free = shutil.disk_usage(folder).free
    if free < size:
        given = f"the disk is full, with {_text(free)} free"
        raise UserError(given, f"{_text(size)} for {path}", ADVICE)


def occupied(path: Path) -> int:
    """Bytes that a file takes on the disk, fewer than its length where it has holes."""
    return path.stat().st_blocks * 512 if path.is_file() else 0


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says in one way that the disk is full, where HDF5 has several.

    Raises:
        UserError: In place of the error that a full disk caused inside the block.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        texts = [os.strerror(number) for number in FULL]
        full = getattr(error, "errno", None) in FULL
        if not full and not any(text in str(error) for text in texts):
            raise
        given, expected = "the disk is full", f"room to write {path}"
        raise UserError(given, expected, ADVICE) from error


def abandon(file: h5py.File) -> None:
    """Closes a file; what was not flushed before never reaches the disk.

    HDF5 cannot close a file that it cannot write to. It keeps it open, tries again
    when the process ends, and crashes there. So it is given memory to write to.
    """
    if not file:
        return
    with (
        os.fdopen(os.memfd_create("rest"), "w+b")
        if hasattr(os, "memfd_create")  # not everywhere
        else tempfile.TemporaryFile()
    ) as rest:
        os.dup2(rest.fileno(), file.id.get_vfd_handle())
        file.close()


def _text(size: int) -> str:
    megabytes = size / 1e6
    return f"{megabytes:.1f} MB" if megabytes < 1000 else f"{megabytes / 1e3:.1f} GB"


def cache_folder() -> Path:
    """The user's cache, ``$XDG_CACHE_HOME/nfsgeo`` or ``~/.cache/nfsgeo``."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "nfsgeo"
