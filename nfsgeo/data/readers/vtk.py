"""Meshes with point data that meshio reads: ``.vtu``, ``.vtk``, ``.xdmf``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.numbers import missing_values
from nfsgeo.data.readers.clouds import CloudFile, is_static
from nfsgeo.errors import UserError

__all__ = ["NAME", "read", "recognise"]

NAME = "meshes with point data (.vtu, .vtk, .xdmf)"
Data = Mapping[str, NDArray[Any]]
MARKS = {"vtkValidPointMask": 1, "vtkGhostType": 0}  # ParaView's, of usual points


def recognise(path: Path) -> bool:
    """The first lines of a VTK or XDMF file."""
    return _kind(path) is not None


def read(path: Path) -> FieldFile:
    """One sample: points, cells and every point field, vectors by component.

    A field named ``a`` or ``a_...`` is the coefficient. Coordinates that are the same
    at all points, such as z of a plane mesh, are left out. An XDMF time series gives
    one record for each time; other files give one, at their ``TimeValue`` or XDMF
    ``Time`` where there is one. Arrays that ParaView adds to mark points are not
    fields.

    Raises:
        UserError: Also where ParaView marks points as without a value or as ghosts.
    """
    with reading(path, NAME):
        try:
            import meshio
        except ImportError as error:
            raise UserError(
                f"{path}, a mesh", "meshio", "pip install 'nfsgeo[formats]'"
            ) from error
        kind = _kind(path)
        records: list[tuple[float | None, Data]] = []
        if kind == "xdmf":
            points, cells, records = _series(path)
        if not records:
            read_one: Callable[[Path], Any] = {
                "vtu": meshio.vtu.read,
                "vtk": meshio.vtk.read,
                "xdmf": meshio.xdmf.read,
            }[str(kind)]
            mesh = read_one(path)
            points, cells = mesh.points, mesh.cells
            records = [(_time(path, kind, mesh.field_data), mesh.point_data)]
        return _cloud(path, np.asarray(points, np.float64), cells, records)


def _cloud(
    path: Path,
    points: NDArray[Any],
    cells: Sequence[Any],
    records: list[tuple[float | None, Data]],
) -> FieldFile:
    for _, data in records:
        _check_marks(path, data)
    if not _fields(records[0][1]):
        raise ValueError("no data at the points")
    moving = np.ptp(points, axis=0) > 0
    moving[0] |= not moving.any()
    fields = [_components(data) for _, data in records]
    names = [name for name in fields[0] if not is_static(name)]
    static = [name for name in fields[0] if is_static(name)]
    u = np.stack([np.stack([f[n] for n in names], axis=1) for f in fields], axis=1)
    a = [np.stack([fields[0][n] for n in static], axis=1)] if static else []
    blocks: dict[str, list[NDArray[Any]]] = {}
    for block in cells:
        blocks.setdefault(block.type, []).append(np.asarray(block.data))
    return CloudFile(
        path,
        read,
        meshes=[points[:, moving]],
        u=[u],
        a=a,
        times=None if records[0][0] is None else [time for time, _ in records],
        component_names=names,
        static_names=static,
        cells=[{kind: np.concatenate(parts) for kind, parts in blocks.items()}],
    )


def _components(data: Data) -> dict[str, NDArray[Any]]:
    """Scalars by name, vectors and tensors as ``name_0``, ``name_1``, ..."""
    found = {}
    for name, values in _fields(data).items():
        flat = np.asarray(values).reshape(len(values), -1)
        for i, column in enumerate(flat.T):
            found[name if flat.shape[1] == 1 else f"{name}_{i}"] = column
    return found


def _fields(data: Data) -> Data:
    return {name: values for name, values in data.items() if name not in MARKS}


def _check_marks(path: Path, data: Data) -> None:
    """Refuses points that have no value, or are there twice in files of many parts."""
    for name, good in MARKS.items():
        if name in data:
            bad = int(np.sum(np.asarray(data[name]) != good))
            if bad:
                what = f"fields of {path}, by its {name},"
                raise missing_values(what, bad, len(data[name]))


def _time(path: Path, kind: str | None, about: Data) -> float | None:
    if kind == "xdmf":
        found = ElementTree.parse(path).find(".//Time")
        return None if found is None else float(found.attrib["Value"])
    return float(np.ravel(about["TimeValue"])[0]) if "TimeValue" in about else None


def _series(path: Path) -> tuple[Any, Any, list[tuple[float | None, Data]]]:
    """Records of an XDMF time series, none where the file holds a single grid."""
    import meshio

    try:
        with meshio.xdmf.TimeSeriesReader(path) as series:
            points, cells = series.read_points_cells()
            steps = (series.read_data(k) for k in range(series.num_steps))
            return points, cells, [(float(time), data) for time, data, *_ in steps]
    except meshio.ReadError:
        return None, None, []


def _kind(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            head = stream.read(512)
    except OSError:
        return None
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"]UnstructuredGrid", head):
        return "vtu"
    return "xdmf" if b"<Xdmf" in head else None
