"""Files that appear whole or not at all, full disks, locks, and the user's cache."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError

__all__ = [
    "cache_folder",
    "check_room",
    "check_target",
    "exhausted",
    "growing",
    "new_hdf5",
    "only_here",
    "safe_name",
    "save_array",
    "write_bytes",
]

ADVICE = "free some space and try again, or choose another place"
FULL = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), ("the disk is full", ADVICE))
FULL |= {errno.EFBIG: ("files of limited size", "raise the limit, ulimit -f")}
# Libraries say this where nothing is left; beside it stands the line for users.
EXHAUSTED = {
    "OutOfMemoryError": (
        "out of device memory",
        "it to fit",
        "give smaller batches, or use --device cpu",
    ),
    r"Too many open files|ancdata": (
        "too many open files",
        "a higher limit",
        "raise it, as in ulimit -n 4096, or give fewer files or worker processes",
    ),
    r"MemoryError|llocate memory|emory allocation|bad_alloc|not enough memory"
    r"|Unable to allocate|start new thread|failed to map segment|create a primitive": (
        "not enough memory",
        "more of it, or a higher limit, ulimit -v",
        "give fewer points, samples or worker processes, or smaller batches",
    ),
}


def exhausted(error: BaseException) -> UserError | None:
    """The error instead of one that comes of a full disk or a limit of the system.

    Args:
        error: Any error; those that it came of count as well.
    """
    chain: list[BaseException | None] = [error]
    while chain[-1] is not None:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    others = [one for one in chain if not isinstance(one, UserError | None)]
    for one in others:
        for signs, line in EXHAUSTED.items():
            if re.search(signs, f"{type(one).__name__}: {one}"):
                return UserError(*line)
        if isinstance(one, OSError) and one.errno in FULL and error in others:
            given, todo = FULL[one.errno]
            return UserError(given, "room to write", todo)
    return None


SEPARATORS = '/\\<>:"|?*'  # of this system and of others
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # on Windows


def safe_name(name: str, longest: int = 100) -> str:
    """A name from data as one part of a path, which stays in its folder.

    A name that no system takes for another path stays as it is. Any other is changed
    and ends in a digest, so that different names remain different.

    Args:
        name: Any text.
        longest: The number of bytes that a name may have.
    """
    text = "".join(c if c.isprintable() and c not in SEPARATORS else "-" for c in name)
    text = text.strip(" .")
    if DEVICES.fullmatch(text):
        text = f"_{text}"
    if text == name != "" and len(text.encode()) <= longest:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return text.encode()[: longest - 9].decode(errors="ignore") + f"-{digest}"


def check_target(path: Path, *endings: str) -> None:
    """Raises a UserError if a path is taken, its folder does not exist, or its name
    promises another format: it ends in something else than one of ``endings``.
    """
    if path.suffix and path.suffix.lower() not in endings:
        raise UserError(
            f"{path} to write",
            f"a name that ends in {' or '.join(endings)}, the format written here",
            f"choose {path.with_suffix(endings[0]).name}",
        )
    if path.exists():
        raise UserError(f"{path}", "a new file", "remove it or choose another name")
    _check_folder(path)


def check_room(path: Path, size: int) -> None:
    """Raises a UserError if the disk cannot hold ``size`` more bytes at a path."""
    folder = path if path.is_dir() else path.parent
    free = shutil.disk_usage(folder).free
    if free < size:
        given = f"the disk is full, with {free / 1e6:,.1f} MB free"
        raise UserError(given, f"{size / 1e6:,.1f} MB for {path}", ADVICE)


@contextmanager
def growing(path: Path) -> Iterator[Path]:
    """A name to write to beside ``path``, moved over it when the block ends well.

    File and folder are on the disk then, whatever becomes of the machine.

    Each process writes under a name of its own. The file of a failed block is removed.

    Raises:
        UserError: The folder does not exist, or the disk is full.
    """
    _check_folder(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        _sync(partial)
        os.replace(partial, path)
        with suppress(OSError):  # not every file system knows folders
            _sync(path.parent)
    except OSError as error:
        if error.errno not in FULL:
            raise
        given, todo = FULL[error.errno]
        raise UserError(given, f"room to write {path}", todo) from error
    finally:
        partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Writes a file in one step; an old one stays as it is where that fails."""
    with growing(path) as partial:
        partial.write_bytes(content)


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Writes an array in one step."""
    content = io.BytesIO()  # numpy itself does not tell that a disk is full
    np.save(content, values)
    write_bytes(path, content.getbuffer())


class _Unfailing(io.FileIO):
    """A file that keeps the first error of writing, and drops what comes after it.

    HDF5 cannot close a file that it could not write to: it tries again when the
    process ends, and crashes there.
    """

    error: OSError | None = None

    def write(self, content: Any) -> int:
        rest = memoryview(content)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0


@contextmanager
def new_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file that takes its name when the block ends well, as :func:`growing`."""
    # Metadata with checksums: a damaged file gives an error, not another file.
    layout: dict[str, Any] = {"libver": ("v110", "v110"), "track_order": True}
    with growing(path) as partial, _Unfailing(partial, "w+") as stream:
        try:
            with h5py.File(stream, "w", **layout) as file:
                yield file
        finally:
            if stream.error is not None:
                raise stream.error


@contextmanager
def only_here(folder: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Locks a folder against other processes; the lock ends with its process.

    No file is added. ``what`` is the work that only one process may do there; another
    one may ``wait`` for it.

    Raises:
        UserError: Another process works there.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise UserError(
                f"{folder}",
                f"{what} that no other process works on",
                "wait for that process, or stop it",
            ) from None
        except OSError:
            pass  # a disk without locks
        yield
    finally:
        os.close(descriptor)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise UserError(f"folder {path.parent}", "an existing folder", "make it first")


def cache_folder() -> Path:
    """The user's cache, ``$XDG_CACHE_HOME/nfsgeo`` or ``~/.cache/nfsgeo``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nfsgeo"
