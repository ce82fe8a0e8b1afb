"""Meshes that meshio reads, blocks of them, and ParaView's series of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import numpy as np

from nfsgeo.data.checks import missing_values, reading
from nfsgeo.data.conventions import GHOST, VALID, is_static
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.joining import concatenated
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.roles import Columns
from nfsgeo.errors import UserError

KINDS = {
    b"UnstructuredGrid": "vtu",
    b"PUnstructuredGrid": "pvtu",
    b"vtkMultiBlockDataSet": "vtm",
    b"Collection": "pvd",
}
LISTS = {"vtm": ("DataSet", "file"), "pvtu": ("Piece", "Source")}  # of other files
OF_TIME = ("TimeValue", "TIME", "CYCLE")  # numbers that tell a time step
BESIDE = ("Points", "connectivity", "offsets", "types")  # arrays that are no fields
NAMED = re.compile(rb"<DataArray[^>]*?\sName=\"([^\"]*)\"")
_SAID = set[tuple[Path, tuple[str, ...]]]()
AGAIN = "check it, or save it again as .vtu of version 1.0, compressed by ZLib or not"


def _mesh(path: Path, at: str | None = None, columns: Columns | None = None) -> Fields:
    """Read one sample: points, cells and every field, vectors by component.

    An array ``a``, ``a_NAME`` or ``node_type`` is a static input, and so are bytes of
    zeros and ones. Single numbers of the whole mesh are inputs of the sample.
    Coordinates that are the same at all points, such as z of a plane mesh, are left
    out. Whole numbers at cells, such as those of materials, are no fields, which a
    warning tells. Files of several blocks or pieces are one mesh.
    """
    with reading(path, "a mesh that meshio reads", AGAIN):
        mesh, times = _xdmf(path) if _kind(path) == "xdmf" else (_read(path), None)
    return _fields(path, mesh, times, at, columns)


def _series(path: Path, at: Any = None, columns: Columns | None = None) -> Fields:
    """The files that it lists at their times; groups of a ``.pvd`` are samples."""
    if _kind(path) == "pvd":
        listed = [entry.attrib for entry in parse(path).getroot().iter("DataSet")]
    else:
        listed = json.loads(path.read_bytes())["files"]
        listed = [{"timestep": e["time"], "file": e["name"]} for e in listed]
    samples: dict[str, dict[Path, tuple[float, dict[str, Path]]]] = {}
    for entry in listed:
        time, part = float(entry["timestep"]), entry.get("part", "0")
        steps = samples.setdefault(entry.get("group", ""), {})
        _, parts = steps.setdefault(Path(f"{path} at {time}"), (time, {}))
        if part in parts:
            given = f"{path} with several files at one time, {time:g}"
            todo = "number them, part=, or merge them in ParaView"
            raise UserError(given, "one file for each time step, or parts of it", todo)
        parts[part] = path.parent / entry["file"]
    groups = {}
    for group, steps in samples.items():
        opener = partial(_step, path, steps, at, columns)
        name = Path(f"{path}, group {group}")
        groups[name] = concatenated([*steps], opener, "time-steps")
    return replace(concatenated([*groups], groups.__getitem__, "samples"), path=path)


def _step(series: Path, steps: Any, at: Any, columns: Any, step: Path) -> Fields:
    """A time step of a series, of one file or of several parts."""
    time, parts = steps[step]
    return _fields(series, _merged(series, [*parts.values()]), [time], at, columns)


def _fields(path: Path, mesh: Any, times: Any, at: Any, columns: Any) -> Fields:
    """The fields of a mesh of meshio, at the points or at the centroids of cells.

    Arrays are [n, ...], or [n, ..., t] where there are several times.
    """
    at_cells = {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()}
    chosen = {name for names in (columns or {}).values() for name in np.ravel(names)}
    hidden = {name for name, v in at_cells.items() if v.dtype.kind in "iu"} - chosen
    lost = sorted(hidden - {VALID, GHOST})
    parameters = dict[str, Any]()
    for name, values in mesh.field_data.items():
        value = np.asarray(values)
        if value.size == 1 and value.dtype.kind in "biuf" and name not in OF_TIME:
            parameters[name] = value.reshape(1)
        elif name not in OF_TIME:
            lost.append(name)
    _warn(path, tuple(lost))
    names = [name for name in mesh.point_data if name not in (VALID, GHOST)]
    inside = [name for name in at_cells if name not in hidden | {VALID, GHOST}]
    if at is None and names and inside:
        both = f"{', '.join(names)} at the points and {', '.join(inside)} at the cells"
        todo = f"say it: nfsgeo convert {path} --out NAME.nc --at points, or --at cells"
        raise UserError(f"{path} with {both}", "to be told which are the fields", todo)
    cells: dict[str, Any] = {}
    points, arrays = mesh.points.astype(np.float64), mesh.point_data
    if at == "cells" or not names:
        arrays, names = at_cells, inside
        points = np.concatenate(
            [points[block.data].mean(axis=1) for block in mesh.cells]
        )
    else:
        cells = {kind: n for kind, n in mesh.cells_dict.items() if kind != "vertex"}
    if bad := int(np.count_nonzero(arrays.get(GHOST, 0))):
        raise missing_values(f"fields of {path}, by its {GHOST},", bad, len(points))
    if not names:
        raise ValueError("no data at the points or cells")
    valid, variables = np.asarray(arrays.get(VALID, 1)) == 1, dict[str, Any]()
    in_time = (len(times),) if times is not None and len(times) > 1 else ()
    for name in names:
        values = arrays[name].reshape(len(points), -1, *in_time)
        if not (valid.all() or is_static(name)):
            values = np.where(valid.reshape(len(points), -1, *in_time), values, np.nan)
        variables[name] = ("point", "component", "time")[: values.ndim], values
    if times is None and "TimeValue" in mesh.field_data:
        times = np.ravel(mesh.field_data["TimeValue"])[:1]
    moving = np.ptp(points, axis=0) > 0
    moving[0] |= not moving.any()
    return to_fields(
        path,
        variables,
        {"points": (("point", "axis"), points[:, moving]), "time": ("time", times)},
        cells=cells,
        parameters={n: v for n, v in parameters.items() if n not in names},
    )


def _warn(path: Path, lost: tuple[str, ...]) -> None:
    """Say once for the files of a folder what is left out, however often they open."""
    if (path.parent, lost) not in _SAID:
        _SAID.add((path.parent, lost))
        left_out(path, lost)


def _read(path: Path) -> Any:
    """A file of one time step, as meshio's ``Mesh``."""
    import meshio

    with reading(path, "a mesh that meshio reads", AGAIN):
        if (kind := _kind(path)) in LISTS:
            tag, key = LISTS[kind]
            listed = [item.attrib.get(key) for item in parse(path).getroot().iter(tag)]
            return _merged(path, [path.parent / name for name in listed if name])
        mesh = getattr(meshio, kind or "vtk").read(path)
        if kind == "vtu":  # meshio leaves arrays out that are broken, or of one piece
            named = {unescape(n.decode()) for n in NAMED.findall(path.read_bytes())}
            kept = {*mesh.point_data, *mesh.cell_data, *mesh.field_data, *BESIDE}
            if lost := ", ".join(named - kept):
                raise ValueError(f"{lost} broken, or in some of its pieces alone")
        return mesh


def _merged(path: Path, files: Sequence[Path]) -> Any:
    """Blocks or pieces as one mesh; points that several have become one."""
    import meshio

    parts, todo = [_read(file) for file in files], "convert them one by one"
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(
        {*p.point_data, *p.cell_data} != {*first.point_data, *first.cell_data}
        for p in parts
    ):
        raise UserError(f"{path}", "blocks of the same arrays", todo)
    points = np.concatenate([part.points for part in parts])
    _, where, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(where)
    single = where[number.reshape(-1)]  # of the points at a place, the first
    at_points = {}
    for name in first.point_data:
        values = np.concatenate([part.point_data[name] for part in parts])
        if not np.array_equal(values, values[single], equal_nan=True):
            given = f"{path} with {name} that differs between blocks at a common point"
            raise UserError(given, "one value at each point", todo)
        at_points[name] = values[kept]
    at_cells = {n: [v for p in parts for v in p.cell_data[n]] for n in first.cell_data}
    cells, start = [], 0
    for part in parts:
        for block in part.cells:
            nodes = np.searchsorted(kept, single[block.data + start])
            cells.append((block.type, nodes))
        start += len(part.points)
    more = {"cell_data": at_cells, "field_data": first.field_data}
    return meshio.Mesh(points[kept], cells, at_points, **more)


def _xdmf(path: Path) -> tuple[Any, list[float] | None]:
    """The mesh and the times of XDMF, a grid or temporal collections of fields."""
    import meshio

    grids = parse(path).getroot()
    series = [each for each in grids.iter("Grid") if each.get("CollectionType")]
    if any(each.get("CollectionType") != "Temporal" for each in series):
        raise ValueError("collections of grids that are not time steps")
    _check_items(grids)
    if not series:
        reader = meshio.xdmf.main.XdmfReader(path)
        old = grids.get("Version", "").startswith("2")
        return (reader.read_xdmf2 if old else reader.read_xdmf3)(grids), None
    at: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    times: list[float] = []
    with meshio.xdmf.TimeSeriesReader(path) as reader:
        _check_items(reader.domain)
        points, cells = reader.read_points_cells()
        for tag in ("Geometry", "Topology"):
            first, *others = (reader._read_data_item(g[0]) for g in grids.iter(tag))
            if not all(np.array_equal(each, first) for each in others):
                raise ValueError("a mesh that moves")
        for each in series:
            reader.collection = [*each]  # of which meshio takes the last
            steps = [reader.read_data(step) for step in range(len(each))]
            at_times = [time for time, *_ in steps]
            names = [name for data in steps[0][1:] for name in data]
            alike = all({*data[1], *data[2]} == {*names} for data in steps)
            twice = {*names} & {*at[0], *at[1]}
            if at_times != (times or at_times) or twice or not alike:
                raise ValueError(f"{', '.join(names)} twice, or at other times")
            times = at_times
            for name in steps[0][1]:
                at[0][name] = np.stack([data[name] for _, data, _ in steps], -1)
            for name in steps[0][2]:
                blocks = zip(*(data[name] for *_, data in steps), strict=True)
                at[1][name] = [np.stack(block, -1) for block in blocks]
    return meshio.Mesh(points, cells, *at), times


def _check_items(root: Any) -> None:
    """Have all digits of text read; meshio takes no heed of how binary data lie."""
    for item in root.iter("DataItem"):
        item.attrib.setdefault("Precision", "8")
        if item.get("Format") == "Binary":
            raise ValueError("binary data, which are not read")


def _kind(path: Path) -> str | None:
    """Return the kind of a file by its first lines; None of others."""
    head = FileProbe(path).head
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if match := re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"](\w+)", head):
        return KINDS.get(match[1])
    if b'"file-series-version"' in head:
        return "series"
    return "xdmf" if b"<Xdmf" in head else None


MESHES = Format(
    "meshes (.vtu, .vtk, .vtm, .xdmf)",
    lambda probe: _kind(probe.path) in ("vtu", "vtk", "xdmf", *LISTS),
    _mesh,
    columns="kinds",
    needs=("meshio",),
)
SERIES = Format(
    "time series of meshes (.pvd, .vtu.series)",
    lambda probe: _kind(probe.path) in ("pvd", "series"),
    _series,
    columns="kinds",
    needs=("meshio",),
)
