"""The data of problems: generated once, or files that the user has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from nfsgeo.data.generation import generate
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["DataFiles", "DataSet", "Part", "Settings"]

# Settings of a run by dotted key, as `nfsgeo train --set` takes them.
Settings = dict[str, Any]


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSet(Part):
    """Data that are generated once, and options of the equation, by name.

    Sizes that are None are the equation's own.
    """

    equation: str
    samples: PositiveInt | None = None
    resolution: PositiveInt | None = None
    records: PositiveInt | None = None
    seed: NonNegativeInt = 0
    options: Settings = {}

    def obtain(self, progress: Progress = silent) -> Settings:
        """Return the settings of a run on the file, made in the cache if need be."""
        sizes = self.model_dump()
        sizes |= {"num_steps": sizes.pop("records"), "workers": os.cpu_count() or 1}
        return {"data.file": generate(out=None, **sizes, progress=progress)}


class DataFiles(Part):
    """A user's data set, in one file or in several in the same folder.

    Its ``files``, ``columns`` and ``test_file`` are those of the problem. The first of
    the files is the one to open; ``points`` of the columns are beside it.
    """

    files: tuple[str, ...]
    columns: dict[str, str | list[str]] = {}
    test_file: str = ""
    folder: Path | None = Field(None, exclude=True)  # which holds them at any depth
    equation: str = Field("", exclude=True)  # the file may tell

    def obtain(self, progress: Progress = silent) -> dict[str, Any]:
        """Return the settings of a run on these files."""
        path, columns = self.first(), dict(self.columns)
        assert path is not None
        if "points" in columns:
            columns["points"] = str(path.with_name(str(columns["points"])))
        test = path.with_name(self.test_file) if self.test_file else None
        return {
            "data.file": path,
            "data.columns": columns or None,
            "data.test_file": test,
        }

    def first(self) -> Path | None:
        """The first file, None where it is not there.

        Raises:
            UserError: There are several of that name.
        """
        paths = sorted(self.folder.rglob(self.files[0])) if self.folder else []
        if len(paths) > 1:
            given = f"{paths[0]} and {paths[1]}"
            raise UserError(given, "one file of that name", "give its folder")
        return paths[0] if paths else None

    def absent(self) -> str:
        """Name the file that is missing; an empty text where none is."""
        first = self.first()
        for name in filter(None, (*self.files, self.test_file)):
            if first is None or not first.with_name(name).exists():
                return f"no {name}" + (f" in {self.folder}" if self.folder else "")
        return ""
