"""Meshes with point data that meshio reads, and ParaView's time series of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.joined import JoinedFile
from nfsgeo.data.numbers import as_times, missing_values
from nfsgeo.data.readers.clouds import CloudFile, is_static
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError

__all__ = ["MESHES", "SERIES"]

Data = Mapping[str, NDArray[Any]]
VALID, GHOST = "vtkValidPointMask", "vtkGhostType"  # marks that ParaView sets


def _is_mesh(path: Path) -> bool:
    return _kind(path) in ("vtu", "vtk", "xdmf")


def _mesh(path: Path) -> FieldFile:
    """One sample: points, cells and every point field, vectors by component.

    A field named ``a`` or ``a_...`` is the coefficient. Coordinates that are the same
    at all points, such as z of a plane mesh, are left out. An XDMF time series gives
    one time step for each of its times; other files give one, at their ``TimeValue`` or
    XDMF ``Time`` where there is one. Arrays that ParaView adds to mark points are not
    fields.

    Points that ParaView marks as without a value have missing values.

    Raises:
        UserError: Also where ParaView marks points as ghosts.
    """
    try:
        import meshio
    except ImportError as error:
        raise UserError(
            f"{path}, a mesh", "meshio", "pip install 'nfsgeo[formats]'"
        ) from error
    kind = _kind(path)
    steps: list[tuple[float | None, Data]] = []
    if kind == "xdmf":
        points, cells, steps = _xdmf_series(path)
    if not steps:
        read_one: Callable[[Path], Any] = {
            "vtu": meshio.vtu.read,
            "vtk": meshio.vtk.read,
            "xdmf": meshio.xdmf.read,
        }[str(kind)]
        mesh = read_one(path)
        points, cells = mesh.points, mesh.cells
        steps = [(_time(path, kind, mesh.field_data), mesh.point_data)]
    return _cloud(path, np.asarray(points, np.float64), cells, steps)


def _cloud(
    path: Path,
    points: NDArray[Any],
    cells: Sequence[Any],
    steps: list[tuple[float | None, Data]],
) -> FieldFile:
    for _, data in steps:
        _check_marks(path, data)
    if not _fields(steps[0][1]):
        raise ValueError("no data at the points")
    moving = np.ptp(points, axis=0) > 0
    moving[0] |= not moving.any()
    fields = [_components(data) for _, data in steps]
    names = [name for name in fields[0] if not is_static(name)]
    static = [name for name in fields[0] if is_static(name)]
    u = np.stack([np.stack([f[n] for n in names], axis=1) for f in fields], axis=1)
    a = [np.stack([fields[0][n] for n in static], axis=1)] if static else []
    blocks: dict[str, list[NDArray[Any]]] = {}
    for block in cells:
        blocks.setdefault(block.type, []).append(np.asarray(block.data))
    return CloudFile(
        path,
        meshes=[points[:, moving]],
        u=[u],
        a=a,
        times=None if steps[0][0] is None else [time for time, _ in steps],
        component_names=names,
        static_names=static,
        cells=[{kind: np.concatenate(parts) for kind, parts in blocks.items()}],
    )


def _components(data: Data) -> dict[str, NDArray[Any]]:
    """Scalars by name, vectors and tensors as ``name_0``, ``name_1``, ..."""
    found = {}
    invalid = np.asarray(data[VALID]) != 1 if VALID in data else None
    for name, values in _fields(data).items():
        flat = np.asarray(values).reshape(len(values), -1)
        if invalid is not None and invalid.any() and not is_static(name):
            flat = np.where(invalid[:, None], np.nan, flat)
        for i, column in enumerate(flat.T):
            found[name if flat.shape[1] == 1 else f"{name}_{i}"] = column
    return found


def _fields(data: Data) -> Data:
    return {name: values for name, values in data.items() if name not in (VALID, GHOST)}


def _check_marks(path: Path, data: Data) -> None:
    """Refuses points that are there twice in files of many parts."""
    bad = int(np.sum(np.asarray(data.get(GHOST, 0)) != 0))
    if bad:
        what = f"fields of {path}, by its {GHOST},"
        raise missing_values(what, bad, len(data[GHOST]))


def _time(path: Path, kind: str | None, about: Data) -> float | None:
    if kind == "xdmf":
        found = ElementTree.parse(path).find(".//Time")
        return None if found is None else float(found.attrib["Value"])
    return float(np.ravel(about["TimeValue"])[0]) if "TimeValue" in about else None


def _xdmf_series(path: Path) -> tuple[Any, Any, list[tuple[float | None, Data]]]:
    """Time steps of an XDMF time series, none where the file holds a single grid."""
    import meshio

    try:
        with meshio.xdmf.TimeSeriesReader(path) as series:
            points, cells = series.read_points_cells()
            steps = (series.read_data(k) for k in range(series.num_steps))
            return points, cells, [(float(time), data) for time, data, *_ in steps]
    except meshio.ReadError:
        return None, None, []


def _is_series(path: Path) -> bool:
    return _kind(path) in ("pvd", "series")


def _series(path: Path) -> FieldFile:
    """One sample: the files that it lists, each at the time that it gives.

    Raises:
        UserError: Also when a file is missing, or a time step is in several parts.
    """
    if _kind(path) == "pvd":
        sets = list(ElementTree.parse(path).getroot().iter("DataSet"))
        listed = [(float(s.attrib["timestep"]), s.attrib["file"]) for s in sets]
    else:
        files = json.loads(path.read_bytes())["files"]
        listed = [(float(entry["time"]), entry["name"]) for entry in files]
    times = {path.parent / name: time for time, name in sorted(listed)}
    if len(set(times.values())) != len(listed):
        raise UserError(
            f"{path} with several files at one time",
            "one file for each time step",
            "merge their parts in ParaView",
        )
    for each in times:
        if not MESHES.recognise(each):
            raise UserError(
                f"{each}, which {path.name} lists",
                "a .vtu or .vtk file",
                "put it there",
            )
    file = JoinedFile(list(times), partial(_mesh_at, times), along="time-steps")
    file.path = path
    return file


def _mesh_at(times: Mapping[Path, float], path: Path) -> FieldFile:
    file = MESHES.read(path)
    file.times, file.times_are_known = as_times([times[path]], f"time of {path}"), True
    return file


def _kind(path: Path) -> str | None:
    """What the first lines of a file say that it is."""
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if found := re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"](\w+)", head):
        return {b"UnstructuredGrid": "vtu", b"Collection": "pvd"}.get(found[1])
    if b'"file-series-version"' in head:
        return "series"
    return "xdmf" if b"<Xdmf" in head else None


MESHES = Reader("meshes with point data (.vtu, .vtk, .xdmf)", _is_mesh, _mesh)
SERIES = Reader("time series of meshes (.pvd, .vtu.series)", _is_series, _series)
