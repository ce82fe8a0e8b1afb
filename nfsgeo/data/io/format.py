"""Formats that are read, and the probe of a file that recognises them."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import h5py

from nfsgeo.data.checks import reading
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import arrays_of
from nfsgeo.errors import UserError, require, said

__all__ = ["Format", "FileProbe", "left_out"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileProbe:
    """The first bytes of a file or folder and the names in it, which tell a format."""

    path: Path

    @cached_property
    def head(self) -> bytes:
        """The first 512 bytes, none of a folder."""
        if self.path.is_dir():
            return b""
        with self.path.open("rb") as stream:
            return stream.read(512)

    @cached_property
    def zipped(self) -> frozenset[str]:
        """Names of the members of a zip file, those of arrays without ``.npy``."""
        if not zipfile.is_zipfile(self.path):
            return frozenset()
        with zipfile.ZipFile(self.path) as archive:
            return frozenset(n.removesuffix(".npy") for n in archive.namelist())

    @cached_property
    def is_hdf5(self) -> bool:
        """Return whether it is an HDF5 file; the head tells why one cannot be read."""
        return bool(self.head) and bool(h5py.is_hdf5(self.path))

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of arrays of numbers by name, none where they cannot be told."""
        with suppress(Exception):  # whatever breaks in a damaged file
            return {name: array.shape for name, array in arrays_of(self.path).items()}
        return {}


@dataclass(frozen=True)
class Format:
    """A format: how its files are recognised and read.

    A file on which ``fits`` raises anything is not of the format. ``read`` makes fields
    of a path, and of what a file leaves open, as arguments ``columns``, ``series`` and
    ``at`` of :func:`nfsgeo.data.open`; whatever it raises becomes one line.
    """

    name: str  # in `nfsgeo datasets`
    fits: Callable[[FileProbe], bool]
    read: Callable[..., Fields]
    expected: str = ""  # what a file of the format holds, for that line; name if empty
    columns: str = ""  # what they tell: "kinds", "roles" and kinds, or all, "axes"
    needs: tuple[str, ...] = ()  # packages of nfsgeo[formats] that it imports
    reads_marks: bool = False  # whether `read` itself finds marks of missing values

    def recognises(self, probe: FileProbe) -> bool:
        """Return whether a file that looks like this is of the format."""
        try:
            return self.fits(probe)
        except Exception:  # a damaged file is not recognised, whatever breaks in it
            return False

    @property
    def options(self) -> set[str]:
        """Arguments of :func:`nfsgeo.data.open` that a file of the format may need."""
        _, *takes = signature(self.read).parameters
        return {"series", "known", *takes} | ({"columns"} if self.columns else set())

    def open(self, path: Path, options: Mapping[str, Any]) -> Fields:
        """The fields in a file, read with options by name; None for those left open.

        Raises:
            UserError: It is damaged, not what it seemed to be, or of a format without
                such an option; or a package that reads it is not installed.
        """
        given = {name: value for name, value in options.items() if value}
        for name in given.keys() - self.options:
            option = f"--{name.replace('_', '-')}"
            expected = f"a format that takes {option}, unlike {self.name}"
            raise UserError(f"{option} of {path}", expected, f"leave {option} out")
        for package in self.needs:
            require(package, f"{path}, {self.name}")
        with reading(path, self.expected or self.name):
            takes = signature(self.read).parameters.keys()
            return self.read(path, **{name: given[name] for name in takes & given})


def left_out(path: Path, names: Sequence[str]) -> None:
    """Warn of arrays of a file that are left out of the fields, if there are any."""
    if names:
        logger.warning("%s: left out %s", path, said(", ".join(names)))
