"""Meshes in XDMF and in other files, which meshio reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import numpy as np

from nfsgeo.data.io.vtk_files import Mesh

__all__ = ["read_meshio"]

# A view of Gmsh: its kind, its name and its time.
VIEW = re.compile(
    rb"\$(NodeData|ElementData)\s+\d+\s+\"([^\"]*)\"\s+(?:\"[^\"]*\"\s+)*"
    rb"\d+\s+([-+\d.eE]+)\s"
)


def read_meshio(path: Path, kind: str) -> tuple[Mesh, list[float] | None]:
    """The mesh in a file, and its times if there are several.

    Arrays are ``[n, ...]``, or ``[n, ..., t]`` at several times.

    Args:
        path: The file.
        kind: What reads it, a module of meshio.
    """
    import meshio

    if kind == "xdmf":
        mesh, times = _xdmf(path)
    else:
        mesh, times = getattr(meshio, kind).read(path), None
        if kind == "gmsh":
            times = _times_of_gmsh(path, len(mesh.points))
    points = mesh.points.astype(np.float64)
    centres = [points[block.data].mean(axis=1) for block in mesh.cells]
    tags = [name for name in mesh.point_data if name.startswith("gmsh:")]  # no fields
    read = Mesh(
        points,
        [(block.type, block.data) for block in mesh.cells if block.type != "vertex"],
        np.concatenate([np.empty((0, points.shape[1])), *centres]),
        {name: v for name, v in mesh.point_data.items() if name not in tags},
        {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()},
        mesh.field_data,
        tags,
    )
    return read, times


def _times_of_gmsh(path: Path, num: int) -> list[float] | None:
    """The time of the values in a file of Gmsh, None where it tells none.

    meshio reads the last of several time steps, as if values lay in the order of nodes.

    Raises:
        ValueError: There are several, or values of other nodes or in another order.
    """
    content = path.read_bytes()
    if b"$ElementNodeData" in content:
        raise ValueError("values at the corners of elements, $ElementNodeData")
    views = [(m[1], m[2], float(m[3] or 0), m.end()) for m in VIEW.finditer(content)]
    if len({view[:2] for view in views}) < len(views):
        raise ValueError(f"several time steps of {views[0][1].decode()}")
    if len(times := {time for *_, time, _ in views}) > 1:
        raise ValueError("fields at several times")
    binary = b"$MeshFormat" in content and content.split(maxsplit=3)[2] == b"1"
    for kind, _, _, start in views:
        if kind == b"NodeData" and not binary:
            section = content[start : content.index(b"$End", start)].split(b"\n")
            rows = [line.split() for line in section if line.strip()]
            nodes = [int(row[0]) for row in rows if len(row) > 1]
            if len(nodes) != num or nodes != sorted(nodes):
                raise ValueError("values of other nodes, or in another order than they")
    return [*times] if times - {0.0} else None


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
