"""The user's cache, and disks that are full, or fill up while a file is written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py

from nfsgeo.errors import UserError

__all__ = [
    "abandon",
    "cache_folder",
    "check_ending",
    "check_room",
    "growing",
    "new_hdf5",
    "partial_path",
    "writing",
]

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
        given = f"the disk is full, with {free / 1e6:,.1f} MB free"
        raise UserError(given, f"{size / 1e6:,.1f} MB for {path}", ADVICE)


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
    in_memory = hasattr(os, "memfd_create")  # not everywhere
    rest = os.memfd_create("rest") if in_memory else tempfile.mkstemp()[0]
    os.dup2(rest, file.id.get_vfd_handle())
    os.close(rest)
    with suppress(RuntimeError):  # a flush that failed has left its cache in disorder
        file.close()


@contextmanager
def growing(path: Path) -> Iterator[Path]:
    """A name to write a file under, which takes its own when the block ends well.

    Two processes have two names. What a failed block leaves is removed.

    Raises:
        UserError: The path is taken, its folder does not exist, or the disk is full.
    """
    partial = partial_path(path).with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with writing(path):
            yield partial
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file that takes its name when the block ends well, else is removed.

    Raises:
        UserError: As :func:`growing`.
    """
    with growing(path) as partial:
        # Metadata with checksums: a damaged file gives an error, not another file.
        file = h5py.File(partial, "w", libver=("v110", "v110"), track_order=True)
        try:
            yield file
            file.flush()
            os.fsync(file.id.get_vfd_handle())
            file.close()
        finally:
            abandon(file)


def check_ending(path: Path, *endings: str) -> None:
    """Makes sure that the name of a file to write does not promise another format.

    Raises:
        UserError: It ends in something else than one of ``endings``.
    """
    if path.suffix and path.suffix.lower() not in endings:
        raise UserError(
            f"{path} to write",
            f"a name that ends in {' or '.join(endings)}, the format written here",
            f"choose {path.with_suffix(endings[0]).name}",
        )


def partial_path(path: Path) -> Path:
    """Name under which a file grows until it is whole.

    Raises:
        UserError: The path is taken, or its folder does not exist.
    """
    if path.exists():
        raise UserError(f"{path}", "a new file", "remove it or choose another name")
    if not path.parent.is_dir():
        raise UserError(f"folder {path.parent}", "an existing folder", "make it first")
    return path.with_name(path.name + ".partial")


def cache_folder() -> Path:
    """The user's cache, ``$XDG_CACHE_HOME/nfsgeo`` or ``~/.cache/nfsgeo``."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "nfsgeo"
