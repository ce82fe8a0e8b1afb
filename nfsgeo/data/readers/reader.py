"""What a reader of a format consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nfsgeo.data.extras import require
from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.errors import UserError

__all__ = ["Reader"]

# Examples of files that take an option, for messages.
TAKERS = {"columns": "a table or NetCDF", "at": "a mesh of VTK"}


@dataclass(frozen=True)
class Reader:
    """A format: how it is recognised and how it is read.

    Args:
        name: Its name in ``nfsgeo datasets``.
        fits: Whether the content of a file is of this format, which need not be checked
            further than that. A file on which it raises anything is not.
        load: Makes a file of fields of it. Whatever it raises becomes one line.
        expected: What a file of the format holds, for that line; the name if empty.
        options: Names of further arguments of ``load`` that decide what a file leaves
            open, of ``columns``, ``series`` and ``at``, see
            :func:`nfsgeo.data.convert`.
        needs: Packages of the extra ``nfsgeo[formats]`` that it imports.
    """

    name: str
    fits: Callable[[Path], bool]
    load: Callable[..., FieldFile]
    expected: str = ""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def recognise(self, path: Path) -> bool:
        """Whether the content of the file is of this format."""
        try:
            return self.fits(path)
        except Exception:  # a damaged file is not recognised, whatever breaks in it
            return False

    def told(self, path: Path, options: Mapping[str, Any]) -> Reader:
        """The reader with options decided, those that are None left open.

        Args:
            path: The file, for messages.
            options: Values by the name of the option. Of a reader without series of
                its own, ``series`` is about several files and left out.

        Raises:
            UserError: The format has no such option.
        """
        given = {name: value for name, value in options.items() if value}
        for name in set(given) - {"series"} - set(self.options):
            takes = f"a file of a format that takes {name}, such as {TAKERS[name]}"
            raise UserError(f"{name} of {path}", takes, f"leave {name} out")
        own = {name: value for name, value in given.items() if name in self.options}
        return replace(self, load=partial(self.load, **own)) if own else self

    def read(self, path: Path) -> FieldFile:
        """The fields in the file.

        Raises:
            UserError: It is damaged, or not what it seemed to be, or a package that
                reads it is not installed.
        """
        for package in self.needs:
            require(package, f"{path}, {self.name}")
        with reading(path, self.expected or self.name):
            file = self.load(path)
        file.reopen = self.read
        return file
