"""Meshes with point data that meshio reads: ``.vtu``, ``.vtk``, ``.xdmf``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.clouds import CloudFile, is_static
from nfsgeo.errors import UserError

__all__ = ["NAME", "read", "recognise"]

NAME = "meshes with point data (.vtu, .vtk, .xdmf)"
Data = Mapping[str, NDArray[Any]]


def recognise(path: Path) -> bool:
    """The first lines of a VTK or XDMF file."""
    return _kind(path) is not None


def read(path: Path) -> FieldFile:
    """One sample: points, cells and every point field, vectors by component.

    A field named ``a`` or ``a_...`` is the coefficient. Coordinates that are the same
    at all points, such as z of a plane mesh, are left out. An XDMF time series gives
    one record for each time; other files give one, at their ``TimeValue`` or 0.
    """
    with reading(path, NAME):
        try:
            import meshio
        except ImportError as error:
            raise UserError(
                f"{path}, a mesh", "meshio", "pip install 'nfsgeo[formats]'"
            ) from error
        kind = _kind(path)
        records: list[tuple[float, Data]] = []
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
            time = np.ravel(mesh.field_data.get("TimeValue", 0.0))[0]
            records = [(float(time), mesh.point_data)]
        return _cloud(path, np.asarray(points, np.float64), cells, records)


def _cloud(
    path: Path,
    points: NDArray[Any],
    cells: Sequence[Any],
    records: list[tuple[float, Data]],
) -> FieldFile:
    if not records[0][1]:
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
        times=[time for time, _ in records],
        component_names=names,
        static_names=static,
        cells=[{kind: np.concatenate(parts) for kind, parts in blocks.items()}],
    )


def _components(data: Data) -> dict[str, NDArray[Any]]:
    """Scalars by name, vectors and tensors as ``name_0``, ``name_1``, ..."""
    found = {}
    for name, values in data.items():
        flat = np.asarray(values).reshape(len(values), -1)
        for i, column in enumerate(flat.T):
            found[name if flat.shape[1] == 1 else f"{name}_{i}"] = column
    return found


def _series(path: Path) -> tuple[Any, Any, list[tuple[float, Data]]]:
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
    if b"<VTKFile" in head and b"UnstructuredGrid" in head:
        return "vtu"
    return "xdmf" if b"<Xdmf" in head else None
