"""Meshes that meshio reads, blocks of them, and ParaView's time series of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.joined import JoinedFile
from nfsgeo.data.numbers import as_times, missing_values
from nfsgeo.data.readers.clouds import CloudFile
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.static_names import bare, changing, is_static, no_field
from nfsgeo.errors import UserError

__all__ = ["GHOST", "MESHES", "SERIES", "VALID"]

Data = Mapping[str, NDArray[Any]]
VALID, GHOST = "vtkValidPointMask", "vtkGhostType"  # marks that ParaView sets
KINDS = {
    b"UnstructuredGrid": "vtu",
    b"vtkMultiBlockDataSet": "vtm",
    b"Collection": "pvd",
}


@dataclass
class _Mesh:
    """The points, the cells by blocks of a type, and the fields of each time step."""

    points: NDArray[Any]
    cells: list[tuple[str, NDArray[Any]]]
    steps: Sequence[
        tuple[float | None, Data, Data]
    ]  # time, at the points, at the cells


def _is_mesh(path: Path) -> bool:
    return _kind(path) in ("vtu", "vtk", "xdmf", "vtm")


def _mesh(path: Path, at: str | None = None, series: Path | None = None) -> FieldFile:
    """One sample: points, cells and every field, vectors by component.

    A field named ``a`` or ``a_NAME`` is a static input. Coordinates that are the same
    at all points, such as z of a plane mesh, are left out. An XDMF time series gives
    one time step for each of its times; other files give one, at their ``TimeValue`` or
    XDMF ``Time`` where there is one. Arrays that ParaView adds to mark points are not
    fields. The blocks of a ``.vtm`` are parts of one mesh, which may share points.

    Args:
        path: The file.
        at: ``"points"``, or ``"cells"`` for the fields of cells, as values at the
            cells' centroids; None where the file has only one of them. Whole numbers
            at cells, such as those of materials, are no fields.
        series: The list that the file is of, for messages.

    Points that ParaView marks as without a value have missing values.

    Raises:
        UserError: Also where ParaView marks points as ghosts.
    """
    mesh = _merged(path) if _kind(path) == "vtm" else _read(path)
    for _, at_points, at_cells in mesh.steps:
        for data in (at_points, at_cells):
            _check_marks(path, data)
    _, at_points, at_cells = mesh.steps[0]
    whole = {name for name, v in at_cells.items() if np.asarray(v).dtype.kind in "iu"}
    named = {"points": list(_fields(at_points)), "cells": list(at_cells.keys() - whole)}
    if at is None and all(named.values()):
        what = series or path
        raise UserError(
            f"{what} with {', '.join(named['points'])} at the points and "
            f"{', '.join(sorted(named['cells']))} at the cells",
            "to be told which of them are the fields",
            f"say it: nfsgeo convert {what} --out NAME.h5 --at points, or --at cells",
        )
    if at == "cells" or (at is None and named["cells"]):
        centroids = [mesh.points[nodes].mean(axis=1) for _, nodes in mesh.cells]
        steps: list[tuple[float | None, Data, Data]] = [
            (time, {k: v for k, v in data.items() if k not in whole}, {})
            for time, _, data in mesh.steps
        ]
        mesh = _Mesh(np.concatenate(centroids), [], steps)
    return _cloud(path, mesh)


def _cloud(path: Path, mesh: _Mesh) -> FieldFile:
    if not _fields(mesh.steps[0][1]):
        raise ValueError("no data at the points or cells")
    moving = np.ptp(mesh.points, axis=0) > 0
    moving[0] |= not moving.any()
    fields = [_components(data) for _, data, _ in mesh.steps]
    names = [name for name in fields[0] if not is_static(name)]
    static = [name for name in fields[0] if is_static(name)]
    if not names:
        raise no_field(path, static)
    for name in static:
        first = np.asarray(fields[0][name])
        if not all(np.array_equal(f[name], first, equal_nan=True) for f in fields):
            raise changing(path, name)
    u = np.stack([np.stack([f[n] for n in names], axis=1) for f in fields], axis=1)
    a = [np.stack([fields[0][n] for n in static], axis=1)] if static else []
    blocks: dict[str, list[NDArray[Any]]] = {}
    for kind, nodes in mesh.cells:
        if kind != "vertex":  # which joins no points
            blocks.setdefault(kind, []).append(nodes)
    times = [time for time, *_ in mesh.steps]
    return CloudFile(
        path,
        meshes=[mesh.points[:, moving]],
        u=[u],
        a=a,
        times=None if times[0] is None else times,
        component_names=names,
        static_names=list(map(bare, static)),
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
            key = name if flat.shape[1] == 1 else f"{name}_{i}"
            if key in found:
                raise UserError(
                    f"a field {key} beside a component of {name}",
                    "names that differ",
                    "rename one",
                )
            found[key] = column
    return found


def _fields(data: Data) -> Data:
    return {name: values for name, values in data.items() if name not in (VALID, GHOST)}


def _check_marks(path: Path, data: Data) -> None:
    """Refuses points that are there twice in files of many parts."""
    bad = int(np.sum(np.asarray(data.get(GHOST, 0)) != 0))
    if bad:
        what = f"fields of {path}, by its {GHOST},"
        raise missing_values(what, bad, len(data[GHOST]))


def _read(path: Path) -> _Mesh:
    """A file of one mesh; an XDMF time series has several time steps."""
    import meshio

    kind = _kind(path)
    readers: dict[str | None, Callable[[Path], Any]] = {
        "vtu": meshio.vtu.read,
        "vtk": meshio.vtk.read,
        "xdmf": meshio.xdmf.read,
    }
    if kind not in readers:
        raise UserError(f"{path}", "a .vtu, .vtk or .xdmf file", "export it as .vtu")
    series = _xdmf_series(path) if kind == "xdmf" else None
    if series is not None and series.steps:
        return series
    mesh = readers[kind](path)
    time = _time(path, kind, mesh.field_data)
    step = time, mesh.point_data, _joined(mesh.cell_data)
    return _Mesh(np.asarray(mesh.points, np.float64), _blocks(mesh.cells), [step])


def _xdmf_series(path: Path) -> _Mesh | None:
    """An XDMF time series, None where the file holds a single grid."""
    import meshio

    try:
        with meshio.xdmf.TimeSeriesReader(path) as series:
            points, cells = series.read_points_cells()
            read = (series.read_data(k) for k in range(series.num_steps))
            steps = [(float(time), data, _joined(at)) for time, data, at in read]
    except meshio.ReadError:
        return None
    return _Mesh(np.asarray(points, np.float64), _blocks(cells), steps)


def _blocks(cells: Sequence[Any]) -> list[tuple[str, NDArray[Any]]]:
    return [(block.type, np.asarray(block.data)) for block in cells]


def _joined(cell_data: Mapping[str, Any]) -> Data:
    """Data of cells in the order of the blocks."""
    return {name: np.concatenate(list(of)) for name, of in cell_data.items()}


def _time(path: Path, kind: str | None, about: Data) -> float | None:
    if kind == "xdmf":
        found = ElementTree.parse(path).find(".//Time")
        return None if found is None else float(found.attrib["Value"])
    return float(np.ravel(about["TimeValue"])[0]) if "TimeValue" in about else None


def _merged(path: Path) -> _Mesh:
    """The blocks of a ``.vtm`` as one mesh; points that several have become one."""
    listed = ElementTree.parse(path).getroot().iter("DataSet")
    files = [
        path.parent / each.attrib["file"] for each in listed if "file" in each.attrib
    ]
    parts = [_read(_present(path, file)) for file in files]
    time, data, at_cells = parts[0].steps[0]
    for file, part in zip(files, parts, strict=True):
        _, other, others = part.steps[0]
        if (data.keys(), at_cells.keys()) != (other.keys(), others.keys()):
            raise UserError(
                f"{path} with block {file.name} of other fields than {files[0].name}",
                "blocks of one mesh",
                "convert the blocks one by one",
            )
    if len(parts) == 1:
        return parts[0]
    points = np.concatenate([part.points for part in parts])
    offsets = np.cumsum([0, *(len(part.points) for part in parts)])
    _, first, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(first)
    single = first[number.reshape(-1)]
    joined = {}
    for name in data:
        joined[name] = np.concatenate([part.steps[0][1][name] for part in parts])
        if not np.array_equal(joined[name], joined[name][single], equal_nan=True):
            raise UserError(
                f"{path} with {name} that differs between blocks at a common point",
                "one value at each point",
                "convert the blocks one by one",
            )
        joined[name] = joined[name][kept]
    at_cells = {
        name: np.concatenate([part.steps[0][2][name] for part in parts])
        for name in at_cells
    }
    cells = [
        (kind, np.searchsorted(kept, single[nodes + offset]))
        for part, offset in zip(parts, offsets, strict=False)
        for kind, nodes in part.cells
    ]
    return _Mesh(points[kept], cells, [(time, joined, at_cells)])


def _is_series(path: Path) -> bool:
    return _kind(path) in ("pvd", "series")


def _series(path: Path, at: str | None = None) -> FieldFile:
    """One sample: the files that it lists, each at the time that it gives.

    The groups of a ``.pvd``, where it names them, are samples.

    Raises:
        UserError: Also when a file is missing, or a time step is in several parts.
    """
    groups: dict[str, list[tuple[float, Path]]] = {}
    if _kind(path) == "pvd":
        for each in ElementTree.parse(path).getroot().iter("DataSet"):
            step = float(each.attrib["timestep"]), path.parent / each.attrib["file"]
            groups.setdefault(each.get("group", ""), []).append(step)
    else:
        files = json.loads(path.read_bytes())["files"]
        groups[""] = [(float(e["time"]), path.parent / e["name"]) for e in files]
    samples: dict[Path, dict[Path, float]] = {}
    for listed in groups.values():
        times = {file: time for time, file in sorted(listed)}
        if len(set(times.values())) != len(listed):
            raise UserError(
                f"{path} with several files at one time",
                "one file for each time step",
                "merge their parts in ParaView",
            )
        for file in times:
            if not MESHES.recognise(_present(path, file)):
                raise _not_there(path, file)
        if (first := next(iter(times))) in samples:
            raise UserError(
                f"{path} with groups that begin with the same {first.name}",
                "groups of files of their own, each a sample",
                "give one of them a copy of that file",
            )
        samples[first] = times
    found = JoinedFile(
        list(samples), partial(_sample, path, samples, at), along="samples"
    )
    found.path = path
    return found


def _sample(
    path: Path,
    samples: Mapping[Path, Mapping[Path, float]],
    at: str | None,
    first: Path,
) -> FieldFile:
    """The time steps of the sample that begins with a file."""
    times = samples[first]
    opener = partial(_mesh_at, path, times, at)
    return JoinedFile(list(times), opener, along="time-steps")


def _mesh_at(
    series: Path, times: Mapping[Path, float], at: str | None, path: Path
) -> FieldFile:
    load = partial(_mesh, at=at, series=series)
    file = replace(MESHES, load=load).read(path)
    file.times, file.times_are_known = as_times([times[path]], f"time of {path}"), True
    return file


def _present(path: Path, file: Path) -> Path:
    """A file that another lists, once it is there."""
    if not file.is_file():
        raise _not_there(path, file)
    return file


def _not_there(path: Path, file: Path) -> UserError:
    what = f"{file}, which {path.name} lists"
    return UserError(what, "a .vtu, .vtk or .vtm file", "put it there")


def _kind(path: Path) -> str | None:
    """What the first lines of a file say that it is."""
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if found := re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"](\w+)", head):
        return KINDS.get(found[1])
    if b'"file-series-version"' in head:
        return "series"
    return "xdmf" if b"<Xdmf" in head else None


MESHES = Reader(
    "meshes (.vtu, .vtk, .vtm, .xdmf)", _is_mesh, _mesh, "", ("at",), ("meshio",)
)
SERIES = Reader(
    "time series of meshes (.pvd, .vtu.series)",
    _is_series,
    _series,
    "",
    ("at",),
    ("meshio",),
)
