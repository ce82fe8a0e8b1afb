"""Meshes in XDMF and in other files, which meshio reads."""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree.ElementTree import Element, SubElement, parse

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.io.vtk_files import Mesh, twice
from nfsgeo.data.other_files import beside, check_hdf5

__all__ = ["read_meshio"]

# Numbers that a cell takes in a mixed topology of XDMF, by its type, and other types.
MIXED = {2: 4, 4: 4, 5: 5, 6: 5, 7: 6, 8: 7, 9: 9}
ODD = {1: "Polyvertex", 2: "Polyline with several lines", 3: "Polygon"}
ODD |= {16: "Polyhedron", 34: "Edge_3", 35: "Quadrilateral_9"}
ODD |= {36: "Triangle_6", 37: "Quadrilateral_8"}
ODD |= {38: "Tetrahedron_10", 41: "Wedge_18", 48: "Hexahedron_20"}
COMMENTS = re.compile(rb"(?ms)^\$Comments\s*$.*?^\$EndComments\s*$\n?")
TAGS = 64  # lines that describe a view of Gmsh, at most
VIEW = re.compile(rb"(?m)^\$(Node|Element)Data\s*$")  # where values of Gmsh begin


def read_meshio(path: Path, kind: str) -> tuple[Mesh, list[float] | None]:
    """The mesh in a file, and its times if there are several.

    Arrays are ``[n, ...]``, or ``[n, ..., t]`` at several times.

    Args:
        path: The file.
        kind: What reads it, a module of meshio.
    """
    import meshio

    times: list[float] | None = None
    valued: Any = slice(None)
    if kind == "gmsh":
        mesh, times, valued = _gmsh(path)
    elif kind == "xdmf":
        mesh, times = _xdmf(path)
    else:
        check_hdf5(path, whole=True)
        mesh = meshio.med.read(path)
    points = mesh.points.astype(np.float64)
    if any(part.ndim != 2 for part in (points, *(block.data for block in mesh.cells))):
        raise ValueError("points or cells without a row for each")
    middles = [points[block.data].mean(axis=1) for block in mesh.cells]
    every = np.concatenate([np.empty((0, points.shape[1])), *middles])
    centres = every[valued]
    num = len(every) - len(centres)
    tags = [name for name in mesh.point_data if name.startswith("gmsh:")]  # no fields
    read = Mesh(
        points,
        [(block.type, block.data) for block in mesh.cells if block.type != "vertex"],
        lambda: centres,
        {name: v for name, v in mesh.point_data.items() if name not in tags},
        {n: np.concatenate(blocks)[valued] for n, blocks in mesh.cell_data.items()},
        mesh.field_data,
        tags + [f"{num} cells without values"] * (num > 0),
    )
    return read, times


def _gmsh(path: Path) -> tuple[Any, list[float] | None, NDArray[np.bool_]]:
    """The mesh of Gmsh, its times, and which of its cells have values.

    meshio reads the mesh alone: it takes values for those of all nodes or elements in
    their order, and of several time steps the last one.

    Raises:
        ValueError: Values that Gmsh alone can place, or fields at different times.
        UserError: Several views have one name and one time.
    """
    import meshio

    content = re.sub(COMMENTS, b"", path.read_bytes())
    if b"$ElementNodeData" in content:
        raise ValueError("values at the corners of elements, $ElementNodeData")
    version, mode, _ = content.split(maxsplit=4)[1:4]
    data: dict[tuple[bytes, str], dict[float, Any]] = {}
    rest, end = list[bytes](), 0
    for start in VIEW.finditer(content):
        name, time, rows, stop = _view(content, start.end(), binary=mode == b"1")
        steps = data.setdefault((start[1], name), {})
        if time in steps:
            raise twice(path, name)
        steps[time] = rows
        rest.append(content[end : start.start()])
        end = content.index(b"\n", content.index(b"$End", stop)) + 1
    with TemporaryDirectory() as folder:
        bare = Path(folder) / "mesh.msh"
        bare.write_bytes(b"".join([*rest, content[end:]]))
        mesh = meshio.gmsh.read(bare)
    times = sorted({*chain(*data.values())})
    if any([*steps] != times for steps in data.values()):
        raise ValueError("fields at several times, not all of them at each")
    sizes = {b"Node": len(mesh.points), b"Element": sum(map(len, mesh.cells))}
    valued = np.ones(sizes[b"Element"], bool)
    for (kind, name), steps in data.items():
        tags = _tags(content, kind, version) if mode == b"0" else None
        if tags is None or len(tags) != sizes[kind]:
            tags = np.arange(1, sizes[kind] + 1)
        values = np.stack([_placed(tags, *steps[time]) for time in times], -1)
        values = values[..., 0] if len(times) == 1 else values
        if kind == b"Node":
            mesh.point_data[name] = values
        else:
            valued &= ~np.isnan(values).reshape(len(values), -1).all(axis=1)
            ends = np.cumsum([len(block) for block in mesh.cells])[:-1]
            mesh.cell_data[name] = np.split(values, ends)
    return mesh, times if len(times) > 1 or any(times) else None, valued


def _view(content: bytes, start: int, *, binary: bool) -> tuple[str, float, Any, int]:
    """Name and time of a view of Gmsh, its tags and values, and where it ends."""
    stream = BytesIO(content)
    stream.seek(start)
    stream.readline()
    texts, reals, sizes = (
        [stream.readline().strip() for _ in range(min(int(stream.readline()), TAGS))]
        for _ in range(3)
    )
    width, num = int(sizes[1]), int(sizes[2])
    begin = stream.tell()
    if binary:
        kind = np.dtype([("tag", "<i4"), ("value", "<f8", (width,))])
        rows: Any = np.frombuffer(content, kind, num, begin)
        tags, values = rows["tag"], rows["value"]
        begin += kind.itemsize * num
    else:
        words = content[begin : content.index(b"$End", begin)].split()
        # meshio writes numbers of numpy 2 like this.
        bare = [word.removeprefix(b"np.float64(").rstrip(b")") for word in words]
        rows = np.array(bare, float).reshape(num, 1 + width)
        tags, values = rows[:, 0].astype(int), rows[:, 1:]
    name = texts[0].decode().strip('"')
    return name, float(reals[0]) if reals else 0.0, (tags, values), begin


def _tags(content: bytes, kind: bytes, version: bytes) -> NDArray[np.int64]:
    """The tags of nodes or elements in a file of text, in their order."""
    begin = content.index(b"$%ss" % kind) + len(kind) + 2
    section = content[begin : content.index(b"$End", begin)]
    lines = [line.split() for line in section.splitlines() if line.strip()][1:]
    if not version.startswith(b"4"):
        return np.array([int(line[0]) for line in lines])
    tags, row = list[int](), 0
    while row < len(lines):  # an entity, with as many lines, and those of coordinates
        if (num := int(lines[row][3])) < 0:
            raise ValueError(f"{num} nodes or elements")
        tags += [int(line[0]) for line in lines[row + 1 : row + 1 + num]]
        row += 1 + num * (1 + (kind == b"Node" and version != b"4"))
    return np.array(tags)


def _placed(tags: NDArray[Any], some: NDArray[Any], values: Any) -> NDArray[Any]:
    """Values at all tags, NaN where there are none."""
    order = np.argsort(tags)
    positions = np.searchsorted(tags[order], some).clip(max=len(tags) - 1)
    if (tags[order][positions] != some).any() or len(np.unique(some)) < len(some):
        raise ValueError("values of nodes or elements that do not exist, or twice")
    whole = np.full((len(tags), *values.shape[1:]), np.nan)
    whole[order[positions]] = values
    return whole[:, 0] if whole.shape[1] == 1 else whole


def _xdmf(path: Path) -> tuple[Any, list[float] | None]:
    """The mesh and the times of XDMF, a grid or temporal collections of fields."""
    path = path.resolve()  # by which meshio finds other files
    root = parse(path).getroot()
    series = [grid for grid in root.iter("Grid") if grid.get("CollectionType")]
    if any(collection.get("CollectionType") != "Temporal" for collection in series):
        raise ValueError("collections of grids that are not time steps")
    _check_items(root, path)
    for grid in (g for g in root.iter("Grid") if g.get("GridType") != "Collection"):
        fields = grid.iter("Attribute")
        named = Counter((a.get("Name"), a.get("Center", "Node")) for a in fields)
        for name, _ in (field for field, num in named.items() if num > 1):
            raise twice(path, str(name))
    return _series(path, root, series) if series else _one_grid(path, root)


def _one_grid(path: Path, root: Element) -> tuple[Any, list[float] | None]:
    """The mesh of a grid alone, and its time if it has one."""
    import meshio

    if len(grids := [*root.iter("Grid")]) > 1:
        raise ValueError(f"{len(grids)} grids that are not time steps of a collection")
    timed = [(grid, time) for grid in grids for time in grid.findall("Time")]
    for grid, time in timed:  # meshio knows it of collections alone
        grid.remove(time)
    reader = meshio.xdmf.main.XdmfReader(path)
    _check_mixed(reader, root)
    old = root.get("Version", "").startswith("2")
    mesh = (reader.read_xdmf2 if old else reader.read_xdmf3)(root)
    return mesh, [float(time.get("Value", "nan")) for _, time in timed[:1]] or None


def _series(path: Path, root: Any, series: list[Any]) -> tuple[Any, list[float]]:
    """The mesh of temporal collections, of which each has some of the fields."""
    import meshio

    if not (version := root.get("Version", "")).startswith("3"):
        raise ValueError(f"time steps in version {version} of XDMF, before 3")
    at_points, at_cells, times = dict[str, Any](), dict[str, Any](), list[float]()
    with meshio.xdmf.TimeSeriesReader(path) as reader:
        _check_items(reader.domain, path)
        _check_mixed(reader, reader.domain)
        points, cells = reader.read_points_cells()
        for tag in ("Geometry", "Topology"):
            first, *others = (reader._read_data_item(g[0]) for g in root.iter(tag))
            if not all(np.array_equal(other, first) for other in others):
                raise ValueError("a mesh that moves")
        for collection in series:
            reader.collection = _timed(collection)  # of which meshio takes the last
            steps = [reader.read_data(step) for step in range(len(reader.collection))]
            collection_times = [time for time, *_ in steps]
            names = [name for data in steps[0][1:] for name in data]
            alike = all({*data[1], *data[2]} == {*names} for data in steps)
            double = {*names} & {*at_points, *at_cells}
            if collection_times != (times or collection_times) or double or not alike:
                raise ValueError(f"{', '.join(names)} twice, or at other times")
            times = collection_times
            for name in steps[0][1]:
                at_points[name] = np.stack([data[name] for _, data, _ in steps], -1)
            for name in steps[0][2]:
                blocks = zip(*(data[name] for *_, data in steps), strict=True)
                at_cells[name] = [np.stack(block, -1) for block in blocks]
    return meshio.Mesh(points, cells, at_points, at_cells), times


def _timed(series: Element) -> list[Element]:
    """The steps of a series, each with its time, which may be told for all of them."""
    steps, time_element = series.findall("Grid"), series.find("Time")
    if time_element is not None:
        series.remove(time_element)
        values = [float(word) for word in "".join(time_element.itertext()).split()]
        if time_element.get("TimeType") == "HyperSlab":
            start, size, num = values
            values = [start + size * k for k in range(min(int(num), len(steps) + 1))]
        if len(values) != len(steps):
            raise ValueError(f"{len(values)} times of {len(steps)} time steps")
        for step, value in zip(steps, values, strict=True):
            SubElement(step, "Time", Value=repr(value))
    if others := {child.tag for child in series} - {"Grid", "Information"}:
        raise ValueError(f"a series with {', '.join(sorted(others))} of its own")
    if any(step.find("Time") is None for step in steps):
        raise ValueError("time steps without times")
    return steps


def _check_items(root: Any, path: Path) -> None:
    """Have all digits of text read, and names in any case; meshio takes no heed of how
    binary data lie, and of where the files are that hold them.
    """
    import meshio

    names = [*meshio.xdmf.common.xdmf_to_meshio_type, "Mixed"]
    type_names = {"Topology": {name.lower(): name for name in names}}
    # With as many numbers as it has.
    type_names["Geometry"] = {"xyz": "XYZ", "xy": "XYZ"}
    for tag, kinds in type_names.items():
        for part in root.iter(tag):
            key = "Type" if "Type" in part.attrib else f"{tag}Type"
            kind = part.get(key, "XYZ" if tag == "Geometry" else "None")
            lines = int(part.get("NodesPerElement", 2)) > 2
            if kind.lower() not in kinds or (lines and kind.lower() == "polyline"):
                what = f"a {tag.lower()} of type {kind}"
                raise ValueError(f"{what}, which meshio does not know")
            part.set(key, kinds[kind.lower()])
    for field in root.iter("Attribute"):
        field.attrib.setdefault("Center", "Node")
    for item in root.iter("DataItem"):
        item.attrib.setdefault("Precision", "8")
        item.attrib.setdefault("Format", "XML")
        if (kind := item.get("ItemType", "Uniform")) != "Uniform":
            raise ValueError(f"data of ItemType {kind}, which are not read")
        if item.get("Format") == "Binary":
            raise ValueError("binary data, which are not read")
        if item.get("Format") == "HDF":
            name = (item.text or "").partition(":")[0].strip()
            check_hdf5(beside(path, name), whole=True)


def _check_mixed(reader: Any, root: Any) -> None:
    """Have cells of several types be those that meshio reads rightly.

    It misreads points among them, and does not know those of second order.
    """
    for cells in root.iter("Topology"):
        if "Mixed" not in (cells.get("TopologyType"), cells.get("Type")):
            continue
        nodes, place = reader._read_data_item(cells[0]).ravel().tolist(), 0
        while place < len(nodes):
            kind = nodes[place]
            if kind not in MIXED or (kind == 2 and nodes[place + 1] != 2):
                called = ODD.get(kind, f"number {kind}")
                what = f"cells of type {called} among those of other types"
                raise ValueError(f"{what}, which meshio does not read")
            place += MIXED[kind]
