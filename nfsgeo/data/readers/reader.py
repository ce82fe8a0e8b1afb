"""What a reader of a format consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nfsgeo.data.fields import FieldFile, reading

__all__ = ["Reader"]


@dataclass(frozen=True)
class Reader:
    """A format: how it is recognised and how it is read.

    Args:
        name: Its name in ``nfsgeo datasets``.
        fits: Whether the content of a file is of this format, which need not be checked
            further than that. A file on which it raises anything is not.
        load: Makes a file of fields of it. Whatever it raises becomes one line.
        expected: What a file of the format holds, for that line; the name if empty.
    """

    name: str
    fits: Callable[[Path], bool]
    load: Callable[[Path], FieldFile]
    expected: str = ""

    def recognise(self, path: Path) -> bool:
        """Whether the content of the file is of this format."""
        try:
            return self.fits(path)
        except Exception:  # a damaged file is not recognised, whatever breaks in it
            return False

    def read(self, path: Path) -> FieldFile:
        """The fields in the file.

        Raises:
            UserError: It is damaged, or not what it seemed to be.
        """
        with reading(path, self.expected or self.name):
            file = self.load(path)
        file.reopen = self.read
        return file
