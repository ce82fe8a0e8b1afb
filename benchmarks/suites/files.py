"""Data that the user has, in files that a problem of a suite names."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo_benchmarks.suites.suite import Part


class DataFiles(Part):
    """A data set that the user has, in one file or in several beside each other.

    Attributes:
        files: Their names; the first is the one to open.
        folder: Where they are, at any depth; no part of what determines a run.
    """

    files: tuple[str, ...]
    folder: Path | None = Field(None, exclude=True)

    @property
    def equation(self) -> str:
        """Nothing, for the file may tell."""
        return ""

    @property
    def missing(self) -> str | None:
        """Name of the first file that is not there."""
        first = self._first()
        if first is None:
            return self.files[0]
        beside = (name for name in self.files if not first.with_name(name).exists())
        return next(beside, None)

    def obtain(self, progress: Progress = silent) -> Path:
        """The file to open.

        Raises:
            UserError: One of the files is not there.
        """
        first = self._first()
        if first is None or self.missing:
            raise UserError(
                f"{self.folder} without {self.missing}", "the file", "put it there"
            )
        return first

    def _first(self) -> Path | None:
        if self.folder is None:
            return None
        found = sorted(self.folder.rglob(self.files[0]))
        if len(found) > 1:
            raise UserError(
                f"{found[0]} and {found[1]}", "one file of that name", "give its folder"
            )
        return found[0] if found else None
