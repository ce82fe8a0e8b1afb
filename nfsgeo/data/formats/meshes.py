"""Meshes that meshio reads, XDMF, blocks of them, and ParaView's series of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, parse, tostring

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.checks import missing_values
from nfsgeo.data.concatenation import concatenated
from nfsgeo.data.fields import Fields, reading
from nfsgeo.data.formats.columns import Columns, is_static
from nfsgeo.data.formats.format import Format, Look
from nfsgeo.data.formats.writers import GHOST, VALID
from nfsgeo.data.lazy import Key, deferred
from nfsgeo.errors import UserError

KINDS = {
    b"UnstructuredGrid": "vtu",
    b"PUnstructuredGrid": "pvtu",
    b"vtkMultiBlockDataSet": "vtm",
    b"Collection": "pvd",
}
LISTS = {"vtm": ("DataSet", "file"), "pvtu": ("Piece", "Source")}  # of other files
AGAIN = "check it, or save it again as .vtu of version 1.0, compressed by ZLib or not"
BESIDE = {"Points", "connectivity", "offsets", "types"}  # arrays that are no fields
NAMED = re.compile(rb"<DataArray[^>]*?\sName=\"([^\"]*)\"")


@dataclass
class _Mesh:
    """Points, cells, and arrays by name, [n, c] or of time steps [t, n, c]."""

    points: NDArray[Any]
    cells: list[tuple[str, NDArray[Any]]]
    at_points: dict[str, Any]
    at_cells: dict[str, Any]
    times: list[float] | None


def _mesh(path: Path, at: str | None = None, columns: Columns | None = None) -> Fields:
    """One sample: points, cells and every field, vectors by component.

    An array ``a`` or ``a_NAME`` is a static input. Coordinates that are the same at all
    points, such as z of a plane mesh, are left out. Whole numbers at cells, such as
    those of materials, are no fields. Files of several blocks or pieces are one mesh.
    """
    return _fields(path, _read(path), at, columns)


def _series(path: Path, at: Any = None, columns: Columns | None = None) -> Fields:
    """The files that it lists at their times; groups of a ``.pvd`` are samples."""
    if _kind(path) == "pvd":
        listed = [each.attrib for each in parse(path).getroot().iter("DataSet")]
    else:
        listed = json.loads(path.read_bytes())["files"]
        listed = [{"timestep": e["time"], "file": e["name"]} for e in listed]
    samples: dict[str, dict[Path, tuple[float, dict[str, Path]]]] = {}
    for each in listed:
        time, part = float(each["timestep"]), each.get("part", "0")
        steps = samples.setdefault(each.get("group", ""), {})
        _, parts = steps.setdefault(Path(f"{path} at {time}"), (time, {}))
        if part in parts:
            given = f"{path} with several files at one time, {time:g}"
            todo = "number them, part=, or merge them in ParaView"
            raise UserError(given, "one file for each time step, or parts of it", todo)
        parts[part] = path.parent / each["file"]
    found = {}
    for group, steps in samples.items():
        opener = partial(_step, path, steps, at, columns)
        name = Path(f"{path}, group {group}")
        found[name] = concatenated([*steps], opener, "time-steps")
    fields = concatenated([*found], found.__getitem__, "samples")
    return replace(fields, path=path)


def _step(series: Path, steps: Any, at: Any, columns: Any, step: Path) -> Fields:
    """A time step of a series, of one file or of several parts."""
    time, parts = steps[step]
    mesh = replace(_merged(series, [*parts.values()]), times=[time])
    return _fields(series, mesh, at, columns)


def _fields(path: Path, mesh: _Mesh, at: str | None, columns: Columns | None) -> Fields:
    """The fields at the points, or at the centroids of cells."""
    told = {name for of in (columns or {}).values() for name in np.ravel(of)}
    hidden = {name for name, v in mesh.at_cells.items() if v.dtype.kind in "iu"} - told
    names = [name for name in mesh.at_points if name not in (VALID, GHOST)]
    inside = [name for name in mesh.at_cells if name not in hidden | {VALID, GHOST}]
    if at is None and names and inside:
        both = f"{', '.join(names)} at the points and {', '.join(inside)} at the cells"
        todo = f"say it: nfsgeo convert {path} --out NAME.nc --at points, or --at cells"
        raise UserError(f"{path} with {both}", "to be told which are the fields", todo)
    arrays, points, cells = mesh.at_points, mesh.points, dict[str, list[Any]]()
    if at == "cells" or not names:
        arrays, names = mesh.at_cells, inside
        points = np.concatenate([points[nodes].mean(axis=1) for _, nodes in mesh.cells])
    else:
        for kind, nodes in mesh.cells:
            cells.setdefault(kind, []).append(nodes)
    if bad := int(np.count_nonzero(np.asarray(arrays.get(GHOST, 0)))):
        raise missing_values(f"fields of {path}, by its {GHOST},", bad, len(points))
    if not names:
        raise ValueError("no data at the points or cells")
    if not (valid := np.asarray(arrays.get(VALID, 1)) == 1).all():
        fields = [name for name in names if not is_static(name)]
        arrays = arrays | {n: np.where(valid, arrays[n], np.nan) for n in fields}
    given = []
    for name in names:
        values = arrays[name]
        called = numbered(name, values.shape[-1])
        given.append(Array(values, "tpc"[-values.ndim :], called))
    moving = np.ptp(points, axis=0) > 0
    moving[0] |= not moving.any()
    kinds = {k: np.concatenate(c) for k, c in cells.items() if k != "vertex"}
    return build(path, given, points=points[:, moving], times=mesh.times, cells=kinds)


def _read(path: Path) -> _Mesh:
    """A file of one mesh; an XDMF time series has several time steps."""
    with reading(path, "a mesh that meshio reads", AGAIN):
        kind = _kind(path)
        if kind in LISTS:
            tag, key = LISTS[kind]
            listed = [each.attrib.get(key) for each in parse(path).getroot().iter(tag)]
            return _merged(path, [path.parent / name for name in listed if name])
        return _xdmf(path) if kind == "xdmf" else _vtk(path, kind)


def _vtk(path: Path, kind: str | None) -> _Mesh:
    """A file of one unstructured mesh."""
    import meshio

    mesh = (meshio.vtu if kind == "vtu" else meshio.vtk).read(path)
    at_cells = {name: np.concatenate(of) for name, of in mesh.cell_data.items()}
    data = {**(mesh.point_data or {})}, at_cells
    if kind == "vtu":  # meshio leaves arrays out that are broken, or of one piece
        all_ = {unescape(n.decode()) for n in NAMED.findall(path.read_bytes())}
        if lost := ", ".join(all_.difference(*data, mesh.field_data, BESIDE)):
            raise ValueError(f"{lost} broken, or in some of its pieces alone")
    for each in data:
        each |= {name: np.reshape(v, (len(v), -1)) for name, v in each.items()}
    cells = [(block.type, np.asarray(block.data)) for block in mesh.cells]
    time = [float(t) for t in np.ravel(mesh.field_data.get("TimeValue", ()))[:1]]
    return _Mesh(mesh.points.astype(np.float64), cells, *data, time or None)


def _merged(path: Path, files: Sequence[Path]) -> _Mesh:
    """Blocks or pieces as one mesh; points that several have become one."""
    parts, todo = [_read(file) for file in files], "convert them one by one"
    first, names = parts[0], [{*p.at_points, *p.at_cells} for p in parts]
    if len(parts) == 1:
        return first
    if odd := set[str]().union(*names) - names[0].intersection(*names):
        given = f"{path} with {', '.join(sorted(odd))} in some of its blocks alone"
        raise UserError(given, "blocks of the same arrays", todo)
    points = np.concatenate([part.points for part in parts])
    _, where, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(where)
    single = where[number.reshape(-1)]  # of the points at a place, the first
    at_points, at_cells = (
        {n: np.concatenate([d[n] for d in each]) for n in each[0]}
        for each in ([p.at_points for p in parts], [p.at_cells for p in parts])
    )
    for name, values in at_points.items():
        if not np.array_equal(values, values[single], equal_nan=True):
            given = f"{path} with {name} that differs between blocks at a common point"
            raise UserError(given, "one value at each point", todo)
        at_points[name] = values[kept]
    cells, offset = [], 0
    for part in parts:
        for kind, nodes in part.cells:
            cells.append((kind, np.searchsorted(kept, single[nodes + offset])))
        offset += len(part.points)
    return _Mesh(points[kept], cells, at_points, at_cells, first.times)


def _xdmf(path: Path) -> _Mesh:
    """All functions of an XDMF file: grids, or a temporal collection of each."""
    root = parse(path).getroot()
    grids, item = root.findall("Domain/Grid"), partial(_item, path, root)
    series = [grid for grid in grids if grid.get("CollectionType") == "Temporal"]
    functions = [g.findall("Grid") if g in series else [g] for g in grids]
    every = [step for function in functions for step in function]
    names = dict.fromkeys(each.get("Name", "") for each in root.iter("Attribute"))

    def check(fine: bool, why: str) -> None:
        if not fine:
            given = f"{path} with {', '.join(names)}, {why}"
            same = "all of them on one mesh without axes, at the same times"
            raise UserError(given, same, "save them as files of their own, as .vtu")

    uniform = [grid.get("GridType", "Uniform") == "Uniform" for grid in every]
    check(all(uniform), "some in nested grids")
    check(not any(g.findall("Attribute") for g in series), "some at no single time")
    pairs: Any = [(grid.find("Topology"), grid.find("Geometry")) for grid in every]
    texts = {b"".join(map(tostring, pair)): pair for pair in pairs if None not in pair}
    (points, cells), *others = [_geometry(item, *pair) for pair in texts.values()]
    for place, of in others:
        same = [np.array_equal(a[1], b[1]) for a, b in zip(cells, of, strict=False)]
        same += [np.array_equal(place, points), len(of) == len(cells)]
        check(all(same), "on several meshes or on one that moves")
    times: list[list[float]] = []
    at: dict[str, dict[str, Any]] = {"Node": {}, "Cell": {}}
    sizes = {"Node": len(points), "Cell": sum(len(nodes) for _, nodes in cells)}
    for function in functions:
        each = [step.findall("Attribute") for step in function]
        if not any(each):  # the mesh alone
            continue
        found = [time for step in function for time in step.findall("Time")]
        times.append([float(time.attrib["Value"]) for time in found])
        called = [[attribute.get("Name", "") for attribute in of] for of in each]
        fine = times[-1] == times[0] and len(found) in (0, len(function))
        check(fine and all(of == called[0] for of in called), "some at other times")
        for name, *items in zip(called[0], *each, strict=True):
            center = items[0].get("Center", "Node")
            twice = name in at["Node"] or name in at["Cell"]
            check(center in at and not twice, f"{name} twice or at a {center}")
            read = partial(_of_items, item, items, sizes[center])
            some = item(items[0]).reshape(sizes[center], -1)
            shape = (len(items), *some.shape)
            at[center][name] = deferred(("t", "p", "c"), shape, some.dtype, read)
    return _Mesh(points, cells, at["Node"], at["Cell"], times[0] or None)


def _geometry(item: Callable[[Element], Any], topology: Any, geometry: Any) -> Any:
    """Points and cells."""
    from meshio.xdmf.common import translate_mixed_cells, xdmf_to_meshio_type

    form = geometry.get("GeometryType") or geometry.get("Type") or "XYZ"
    kind = topology.get("TopologyType") or topology.get("Type")
    points = item(geometry).reshape(-1, len(form)).astype(np.float64)
    if kind == "Polyvertex":  # which joins no points
        return points, []
    nodes = item(topology)
    if kind == "Mixed":
        return points, [(each.type, each.data) for each in translate_mixed_cells(nodes)]
    num = topology.get("NumberOfElements") or topology.get("Dimensions") or len(nodes)
    return points, [(xdmf_to_meshio_type[kind], nodes.reshape(int(num), -1))]


def _item(path: Path, root: Element, parent: Element) -> NDArray[Any]:
    """The array of an element, in the file or in one beside it."""
    from meshio.xdmf.main import XdmfReader

    (item,) = parent.findall("DataItem")
    if item.get("Format") == "Binary":  # of which meshio takes no heed
        raise ValueError("binary data, which are not read")
    if item.get("Format") == "XML":
        item.attrib.setdefault("Precision", "8")  # as many digits as there are
    return np.asarray(XdmfReader(path)._read_data_item(item, root))


def _of_items(item: Any, items: list[Element], num: int, key: Key) -> NDArray[Any]:
    """Reads a part of an attribute of XDMF, [t, n, c]."""
    steps = np.arange(len(items))[key[0]]
    chosen = [items[step] for step in np.atleast_1d(steps)]
    values = [item(each).reshape(num, -1)[key[1:]] for each in chosen]
    return np.stack(values) if steps.ndim else values[0]


def _kind(path: Path) -> str | None:
    """What the first lines of a file say that it is."""
    head = Look(path).head
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if found := re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"](\w+)", head):
        return KINDS.get(found[1])
    if b'"file-series-version"' in head:
        return "series"
    return "xdmf" if b"<Xdmf" in head else None


OPTIONS, NEEDS = ("at", "columns"), ("meshio",)
MESHES = Format(
    "meshes (.vtu, .vtk, .vtm, .xdmf)",
    lambda look: _kind(look.path) in ("vtu", "vtk", "xdmf", *LISTS),
    _mesh,
    options=OPTIONS,
    columns="kinds",
    needs=NEEDS,
)
SERIES = Format(
    "time series of meshes (.pvd, .vtu.series)",
    lambda look: _kind(look.path) in ("pvd", "series"),
    _series,
    options=OPTIONS,
    columns="kinds",
    needs=NEEDS,
)
