"""Other files that a file of data names, and the size that its values claim.

A file may come from a stranger. On its behalf only regular files beside it or in
folders below are opened, also where a symbolic link has their name. The file that a
user names may itself be a link: then files beside the one at its end are meant.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from math import inf, prod
from pathlib import Path, PurePath

import h5py

from nfsgeo.errors import UserError

__all__ = ["beside", "check_hdf5", "check_inside", "check_size", "check_source"]
__all__ += ["names_others"]

SMALL, RATIO = 2**30, 500  # bytes that may be claimed, and over those that are stored
# How files begin that list others: XML, JSON, and cases of EnSight.
LISTS = re.compile(rb"(?s)(\xef\xbb\xbf)?\s*[<{]|.*\bFORMAT\s+type:\s*ensight")
DEEPEST = 64  # groups of HDF5 in each other


def beside(path: Path, name: str) -> Path:
    """Return the file of this name that another file lists.

    Raises:
        UserError: It is not in the folder of that file or below, or is a pipe.
    """
    bare, given = PurePath(name.replace("\\", "/")), f"{path}, which lists {name}"
    if bare.is_absolute() or ".." in bare.parts:
        todo = "put them together in one folder, or list names without '..' and '/'"
        raise UserError(given, "files beside it or below", todo)
    folder = (path.resolve() if path.is_symlink() else path).parent
    check_inside(folder, [folder / bare], given)
    return folder / bare


def check_inside(folder: Path, paths: Iterable[Path], given: str = "") -> None:
    """Check that paths in a folder are files or folders there, not links out of it.

    Raises:
        UserError: One leads elsewhere, or is a pipe, a socket or a device.
    """
    for path in paths:
        end = Path(os.path.realpath(path))
        if not end.is_relative_to(folder.resolve()):
            todo = "copy it there, or if it is all you need, name it as the data"
            raise UserError(given or f"{path}, a link to {end}", f"in {folder}", todo)
        if end.exists() and not (end.is_file() or end.is_dir()):
            todo = "remove it, or write it into a file"
            raise UserError(given or f"{path}", "a regular file of that name", todo)


def check_source(path: Path) -> None:
    """Check a file, or the folder of a store, before anything else reads it.

    Raises:
        UserError: It needs files elsewhere, or claims more values than it can hold.
    """
    if path.is_dir():
        entries = path.rglob("*")  # which does not follow links
        odd = (e for e in entries if e.is_symlink() or not (e.is_file() or e.is_dir()))
        check_inside(path, odd)
    elif h5py.is_hdf5(path):
        check_hdf5(path)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))


def names_others(path: Path) -> bool:
    """Return whether a file may take values from others, which change without it."""
    if h5py.is_hdf5(path):
        about = path.stat()
        return bool(_described(path, about.st_size, about.st_mtime_ns)[1])
    with path.open("rb") as stream:
        head = stream.read(4096)
    return LISTS.match(head) is not None or not head


def check_size(
    path: Path, claimed: int, stored: int | None = None, small: float = inf
) -> None:
    """Check that values are not many times as large as the file, or what stores them.

    Those of a ``small`` number of bytes may be.

    Raises:
        UserError: They are: they would fill memory, or never end.
    """
    stored = path.stat().st_size if stored is None else stored
    if claimed > max(min(small, SMALL), RATIO * stored):
        given = f"{path} with {claimed / 1e9:,.1f} GB of values in {stored:,} bytes"
        expected = f"at most {RATIO} times as many bytes of values"
        raise UserError(given, expected, "if it is honest, store it uncompressed")


def check_hdf5(path: Path, *, whole: bool = False) -> None:
    """Check an HDF5 file, and those beside it from which it takes values.

    A ``whole`` one has all of these, for readers that take missing values for zeros.

    Raises:
        UserError: It takes values from elsewhere, or claims more than it can hold.
    """
    stored, claimed, waiting = dict[Path, int](), 0, [path]
    takes = TopologicalSorter[Path]()
    while waiting:
        file = waiting.pop().absolute()
        about = file.stat()
        if file.resolve() in stored:
            continue
        stored[file.resolve()] = about.st_size
        size, names = _described(file, about.st_size, about.st_mtime_ns)
        claimed += size
        for name, kind, mixed in names:
            raw = kind == "raw"
            part, bare = beside(file, name), Path(name)
            # HDF5 looks in the current folder too, and there alone for raw values.
            looked = [bare] if raw else [file.parent / name, bare, part]
            existing = next(filter(Path.exists, looked), None)
            same = existing and part.exists() and existing.samefile(part)
            needed = whole or mixed or file != path.absolute()
            if not same and (existing or needed):
                given = f"{file}, which takes values from {name}"
                todo = f"put it there, and run the command in {part.parent}"
                raise UserError(given, "a file beside it", todo)
            if existing and h5py.is_hdf5(existing) and not raw:
                waiting.append(part)
                if kind == "virtual":
                    takes.add(file.resolve(), part.resolve())
            elif existing:
                stored[part.resolve()] = part.stat().st_size
    try:
        takes.prepare()
    except CycleError:
        raise _leads_back(path) from None
    check_size(path, claimed, sum(stored.values()))


def _leads_back(path: Path) -> UserError:
    given = f"{path} with a virtual dataset that leads back to itself"
    return UserError(given, "one whose values are elsewhere", "write the values anew")


@lru_cache(1024)
def _described(path: Path, *version: int) -> tuple[int, list[tuple[str, str, bool]]]:
    """Return the bytes of the arrays of a file, and the files it takes values from.

    Each has a name, a kind (``raw``, ``virtual`` or ``link``), and whether the same
    array also takes values from the file itself.
    """
    size, names = 0, set[tuple[str, str, bool]]()
    with h5py.File(path, "r") as file:

        def note_item(name: bytes) -> None:
            nonlocal size
            if name.count(b"/") > DEEPEST:
                given = f"{path} with more than {DEEPEST} groups within each other"
                raise UserError(given, "fewer", "write the fields at the top")
            item = h5py.h5o.open(file.id, name)
            if isinstance(item, h5py.h5d.DatasetID):
                array = h5py.Dataset(item)
                chunk = prod(array.chunks or (0,)) * array.dtype.itemsize
                size += max(array.nbytes, chunk)
                raw = array.external or ()
                names.update((other, "raw", False) for other, *_ in raw)
                virtual = array.virtual_sources() if array.is_virtual else ()
                sources = {source.file_name for source in virtual}
                aliases = {".", path.name}
                for source in virtual:
                    if "%" in source.file_name + source.dset_name:  # counts parts
                        given = f"{path}, which takes values from {source.file_name}"
                        todo = "rename the parts, or write the values into one file"
                        raise UserError(given, "names without %", todo)
                    if source.file_name in aliases:
                        inside = file.get(source.dset_name)
                        if getattr(inside, "is_virtual", True):
                            raise _leads_back(path)
                mixed = bool(sources & aliases)
                names.update((other, "virtual", mixed) for other in sources - aliases)

        def note_link(name: bytes, about: h5py.h5l.LinkInfo) -> None:
            if about.type == h5py.h5l.TYPE_EXTERNAL:
                other, _ = file.id.links.get_val(name)
                names.add((os.fsdecode(other), "link", False))

        h5py.h5o.visit(file.id, note_item)
        file.id.links.visit(note_link, info=True)
    return size, sorted(names)
