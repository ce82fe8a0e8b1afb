"""Time series of VTK files: ParaView's ``.pvd`` and ``.vtu.series``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.joined import JoinedFile
from nfsgeo.data.numbers import as_times
from nfsgeo.data.readers import vtk
from nfsgeo.errors import UserError

__all__ = ["NAME", "read", "recognise"]

NAME = "time series of meshes (.pvd, .vtu.series)"


def recognise(path: Path) -> bool:
    """A VTK collection, or JSON with a version of file series."""
    try:
        with path.open("rb") as stream:
            head = stream.read(512)
    except OSError:
        return False
    return _is_collection(head) or b'"file-series-version"' in head


def read(path: Path) -> FieldFile:
    """One sample: the files that it lists, each at the time that it gives.

    Raises:
        UserError: Also when a file is missing, or a time step is in several parts.
    """
    with reading(path, NAME):
        with path.open("rb") as stream:
            collection = _is_collection(stream.read(512))
        if collection:
            sets = list(ElementTree.parse(path).getroot().iter("DataSet"))
            listed = [(float(s.attrib["timestep"]), s.attrib["file"]) for s in sets]
        else:
            files = json.loads(path.read_bytes())["files"]
            listed = [(float(entry["time"]), entry["name"]) for entry in files]
        listed.sort()
        times = [time for time, _ in listed]
        if len(set(times)) != len(times):
            raise UserError(
                f"{path} with several files at one time",
                "one file for each time step",
                "merge their parts in ParaView",
            )
        paths = [path.parent / name for _, name in listed]
        for each in paths:
            if not vtk.recognise(each):
                raise UserError(
                    f"{each}, which {path.name} lists",
                    "a .vtu or .vtk file",
                    "put it there",
                )
        at = dict(zip(paths, times, strict=True))
        file = _Series(paths, partial(_read_at, at), along="records")
        file.path = path
        return file


class _Series(JoinedFile):
    def __reduce__(self) -> tuple[Any, ...]:
        return read, (self.path,)


def _read_at(times: Mapping[Path, float], path: Path) -> FieldFile:
    file = vtk.read(path)
    file.times, file.times_are_known = as_times([times[path]], f"time of {path}"), True
    return file


def _is_collection(head: bytes) -> bool:
    found = re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"]Collection", head)
    return found is not None
