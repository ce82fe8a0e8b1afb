"""The data of problems: generated once, or files that the user has."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
)

from nfsgeo.data.generation import generate
from nfsgeo.data.other_files import beside, check_inside
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["DataFiles", "DataSet", "Part", "Settings"]

FILES = {"data", "data.file", "data.test_file", "data.columns", "data.graph"}
FILES |= {"model", "model.start_from"}


def _without_files(settings: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that name files: a suite has those of its problems alone."""
    for key in FILES & settings.keys():
        todo = "use files, columns and test_file of the problem"
        raise UserError(f"{key} in settings of a suite", "settings without files", todo)
    return settings


# Settings of a run by dotted key, as `nfsgeo train --set` takes them.
Settings = Annotated[dict[str, Any], AfterValidator(_without_files)]


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
        if not self.files:  # the settings of the run name them
            return {}
        path, columns = self.first(), dict(self.columns)
        assert path is not None
        if "points" in columns:
            columns["points"] = str(beside(path, str(columns["points"])))
        test = beside(path, self.test_file) if self.test_file else None
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
        named = PurePath(self.files[0])
        if named.is_absolute() or ".." in named.parts:
            given, todo = f"the file {named} of a suite", "leave out '..' and '/'"
            raise UserError(given, "a file in the folder of the data", todo)
        paths = sorted(self.folder.rglob(self.files[0])) if self.folder else []
        check_inside(self.folder or Path(), paths)
        if len(paths) > 1:
            given = f"{paths[0]} and {paths[1]}"
            raise UserError(given, "one file of that name", "give its folder")
        return paths[0] if paths else None

    def absent(self) -> str:
        """Name the file that is missing; an empty text where none is."""
        first = self.first()
        for name in filter(None, (*self.files, self.test_file)):
            if first is None or not beside(first, name).exists():
                return f"no {name}" + (f" in {self.folder}" if self.folder else "")
        return ""
