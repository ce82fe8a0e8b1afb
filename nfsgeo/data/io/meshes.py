"""Meshes with fields at their points or cells, blocks of them, and series of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, parse

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import GHOST, listed
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import FileProbe, Format
from nfsgeo.data.io.joining import concatenated
from nfsgeo.data.io.mesh_fields import fields_of_mesh, warn_once
from nfsgeo.data.io.meshio_files import read_meshio
from nfsgeo.data.io.roles import Columns
from nfsgeo.data.io.vtk_files import Mesh, read_vtk
from nfsgeo.data.other_files import beside, check_hdf5
from nfsgeo.errors import UserError, option

SETS = ("UnstructuredGrid", "PolyData", "StructuredGrid", "RectilinearGrid")
KINDS = dict.fromkeys((*SETS, "ImageData"), "xml")  # of <VTKFile type="...">
KINDS |= dict.fromkeys([f"P{name}" for name in KINDS], "pieces")
KINDS |= dict.fromkeys(("vtkMultiBlockDataSet", "vtkPartitionedDataSet"), "blocks")
KINDS |= {"vtkPartitionedDataSetCollection": "blocks", "Collection": "pvd"}
HDF5 = {"VTKHDF": "hdf", "CGNSLibraryVersion": "cgns", "INFOS_GENERALES": "med"}
OF_VTK = ("xml", "vtk", "hdf", "ensight", "cgns", "pieces", "blocks", "other")
DUPLICATE = 1  # in vtkGhostType: what another piece has
BY_PARAVIEW = "check it, or open it in ParaView and save it, File, Save Data, as .pvd"
A_MESH, AGAIN = "an undamaged mesh", "check it, or save it again as .vtu"


def _mesh(
    path: Path,
    at: str | None = None,
    columns: Columns | None = None,
    series: str | None = None,
) -> Fields:
    """Read a mesh: points, cells and every field, vectors by component.

    An array ``a``, ``a_NAME`` or ``node_type`` is a static input, and so are bytes of
    zeros and ones. Single numbers of the whole mesh are inputs of the sample.
    Coordinates that are 0 at all points, such as z of a plane mesh, are left
    out. Whole numbers at cells, such as those of materials, are no fields, which a
    warning tells. Files of several blocks or pieces are one mesh; blocks of a lower
    dimension, such as the boundaries of a volume, are left out, which one tells too.
    """
    mesh, times = _read(path, at)
    if _kind(path) not in OF_VTK or times is None or len(times) < 2:
        return fields_of_mesh(path, mesh, times, at, columns)
    steps = {Path(f"{path} at {time}"): number for number, time in enumerate(times)}
    opener = partial(_time, path, steps, at, columns)
    whole = concatenated([*steps], opener, series or "time-steps", gaps=True)
    return replace(whole, path=path)


def _time(path: Path, steps: Any, at: Any, columns: Any, step: Path) -> Fields:
    """A time step of a file that holds several."""
    mesh, times = _read(path, at, steps[step])
    return fields_of_mesh(path, mesh, (times or [])[steps[step] :][:1], at, columns)


def _series(
    path: Path,
    at: Any = None,
    columns: Columns | None = None,
    series: str | None = None,
) -> Fields:
    """The files that it lists at their times; groups of a ``.pvd`` are samples."""
    if _kind(path) == "pvd":
        entries = [e.attrib for e in parse(path).getroot().iter("DataSet")]
    else:
        entries = json.loads(path.read_bytes())["files"]
        entries = [{"timestep": e["time"], "file": e["name"]} for e in entries]
    if not entries:
        todo = "write it again, or name the files themselves"
        raise UserError(f"{path}, which lists no file", "one for each time step", todo)
    timed = any("timestep" in entry for entry in entries)
    samples: dict[str, dict[Path, tuple[float, dict[str, Path]]]] = {}
    twice = dict[str, str]()
    for entry in entries:
        part = entry.get("part", "0")
        steps = samples.setdefault(entry.get("group", ""), {})
        before = sum(part in parts for _, parts in steps.values())
        time = float(entry["timestep"]) if timed else float(before)
        _, parts = steps.setdefault(Path(f"{path} at {time}"), (time, {}))
        if part in parts:
            twice[f"{time:g}"] = parts[part].name
        parts[part] = file = beside(path, entry["file"])
        if not file.exists():
            todo = "put it there, or remove its entry"
            raise UserError(f"{path}, which lists {file}", "an existing file", todo)
    if twice:
        given = f"{path} with several files at one time "
        given += f"(t = {listed([*twice])} listed twice)"
        todo = "remove one entry of each of these times from it, such as those of "
        todo += f"{listed([*twice.values()])}, or number the parts of a mesh, part="
        raise UserError(given, "one file for each time step, or parts of it", todo)
    groups = {}
    for group, steps in samples.items():
        opener = partial(_step, path, steps, at, columns, timed)
        name = Path(f"{path}, group {group}")
        groups[name] = concatenated([*steps], opener, series or "time-steps", gaps=True)
    return replace(concatenated([*groups], groups.__getitem__, "samples"), path=path)


def _step(
    series: Path, steps: Any, at: Any, columns: Any, timed: bool, step: Path
) -> Fields:
    """A time step of a series, of one file or of several parts."""
    time, parts = steps[step]
    blocks = {str(file): _read(file, at)[0] for file in parts.values()}
    blocks = {name: mesh for name, mesh in blocks.items() if len(mesh.points)}
    if not blocks:
        todo = f"leave {', '.join(map(str, parts.values()))} out of it"
        raise UserError(f"{step} without points", "a mesh at each time step", todo)
    mesh = _merged(series, blocks, at)
    return fields_of_mesh(series, mesh, [time] if timed else None, at, columns)


def is_mesh(path: Path) -> bool:
    """Return whether a file is a mesh, at one time or several."""
    return any(form.recognises(FileProbe(path)) for form in (MESHES, OTHER_MESHES))


def points_and_arrays(path: Path) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return the points of a mesh ``[n, 3]``, and the arrays at them by name."""
    mesh, _ = _read(path, "points")
    return mesh.points, mesh.at_points


def _read(path: Path, at: str | None, step: int = 0) -> tuple[Mesh, list[float] | None]:
    """A file at one of its times as one mesh, and the times if there are any."""
    if (kind := _kind(path)) not in OF_VTK:
        again = BY_PARAVIEW if kind == "xdmf" else AGAIN
        with reading(path, "a mesh that meshio reads", again):
            return read_meshio(path, str(kind))
    blocks, times = _blocks(path, at, step)
    highest = max(mesh.dim for mesh in blocks.values())
    lower = [name for name, mesh in blocks.items() if mesh.dim < highest]
    if lower:
        what = f"blocks of less than {highest} dimensions, {', '.join(lower)}"
        warn_once(path, (f"{what}; their own files can be read",))
    return _merged(path, {n: blocks[n] for n in blocks if n not in lower}, at), times


def _blocks(
    path: Path, at: str | None, step: int = 0, read: set[Path] | None = None
) -> tuple[dict[str, Mesh], list[float] | None]:
    """The blocks of a file by name, those of other files that it lists among them.

    Files that have been ``read`` are not to be listed again.
    """
    kind, times, blocks = _kind(path), None, dict[str, Mesh]()
    read = {path.resolve()} if read is None else read
    with reading(path, A_MESH, AGAIN):
        if kind == "other" or kind not in OF_VTK:
            raise ValueError("data of VTK that are no mesh, or of overlapping grids")
        if kind in ("pieces", "blocks"):
            for name, file in _listed(parse(path).getroot()):
                if (part := beside(path, file)).resolve() in read:
                    raise ValueError(f"{file} listed again")
                read.add(part.resolve())
                below, several = _blocks(part, at, read=read)
                if several and len(several) > 1:
                    raise ValueError(f"{file} with several time steps")
                blocks |= {"/".join(filter(None, (name, n))): below[n] for n in below}
        else:
            blocks, times = read_vtk(path, str(kind), step)
        filled = {name: mesh for name, mesh in blocks.items() if len(mesh.points)}
        blocks = filled or dict([*blocks.items()][:1])
        if not blocks:
            raise ValueError("no points")
    return ({"": _merged(path, blocks, at)} if kind == "pieces" else blocks), times


def _listed(element: Element, name: str = "") -> Iterator[tuple[str, str]]:
    """Names of blocks or pieces, and the files that hold them."""
    for child in element:
        if file := child.get("file") or child.get("Source"):
            yield "/".join(filter(None, (name, child.get("name") or file))), file
        else:
            inside = (name, child.get("name"))
            yield from _listed(child, "/".join(filter(None, inside)))


def _merged(path: Path, parts: Mapping[str, Mesh], at: str | None) -> Mesh:
    """Blocks or pieces as one mesh; points that several have become one."""
    todo = "convert them one by one"
    (begin, first), *others = parts.items()
    if not others:
        return first
    for name, part in others:
        odd = {*first.at_cells} ^ {*part.at_cells}
        if at != "cells":
            odd |= {*first.at_points} ^ {*part.at_points}
        if odd:
            given = f"{path} with {', '.join(sorted(odd))} in one of {begin} and {name}"
            raise UserError(given, "blocks of the same arrays", todo)
    meshes = [*parts.values()]
    points = np.concatenate([part.points for part in meshes])
    _, where, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    unique = np.sort(where)
    single = where[number.reshape(-1)]  # of the points at a place, the first
    at_points, at_cells = dict[str, Any](), dict[str, Any]()
    for name in first.at_points if at != "cells" else ():
        values = np.concatenate([part.at_points[name] for part in meshes])
        if name == GHOST:
            values &= ~np.array(DUPLICATE, values.dtype)
        gaps = values.dtype.kind == "f"
        if not np.array_equal(values, values[single], equal_nan=gaps):
            given = f"{path} with {name} that differs between blocks at a common point"
            if first.at_cells:
                todo += f", or choose the fields at the cells, {option('at', 'cells')}"
            raise UserError(given, "one value at each point", todo)
        at_points[name] = values[unique]
    twice = [
        part.at_cells.get(GHOST, np.zeros(len(part.centres), int)) for part in meshes
    ]
    alone = np.concatenate(twice) & DUPLICATE == 0
    for name in first.at_cells:
        at_cells[name] = np.concatenate([part.at_cells[name] for part in meshes])[alone]
    cells, start = [], 0
    for part in meshes:
        for kind, nodes in part.cells:
            cells.append((kind, np.searchsorted(unique, single[nodes + start])))
        start += len(part.points)
    unknown = "; ".join(filter(None, [part.unknown for part in meshes]))
    return Mesh(
        points[unique],
        [] if unknown else cells,
        partial(np.concatenate([part.centres for part in meshes]).__getitem__, alone),
        at_points,
        at_cells,
        first.numbers,
        first.lost,
        unknown,
    )


def _kind(path: Path) -> str | None:
    """Return the kind of a file by its first lines; None of others."""
    head = FileProbe(path).head
    if head.startswith(b"# vtk DataFile"):
        return "vtk"
    if match := re.search(rb"<VTKFile[^>]*\stype\s*=\s*['\"](\w+)", head):
        return KINDS.get(match[1].decode(), "other")
    if b'"file-series-version"' in head:
        return "series"
    if head.startswith(b"\x89HDF"):
        check_hdf5(path)
        with h5py.File(path, "r") as file:
            return next((kind for name, kind in HDF5.items() if name in file), None)
    if re.search(rb"FORMAT\s+type:\s*ensight", head):
        return "ensight"
    if head.startswith(b"$MeshFormat"):
        return "gmsh"
    return "xdmf" if b"<Xdmf" in head else None


MESHES = Format(
    "meshes of VTK (.vtu, .vtp, .vts, .vtr, .vti, .vtk, .vtkhdf, .vtm, .pvtu, ...), "
    "EnSight Gold (.case), CGNS",
    lambda probe: _kind(probe.path) in OF_VTK,
    _mesh,
    columns="kinds",
    needs=("vtk",),
)
OTHER_MESHES = Format(
    "meshes of XDMF, Gmsh (.msh) and MED",
    lambda probe: _kind(probe.path) in ("xdmf", "gmsh", "med"),
    _mesh,
    columns="kinds",
    needs=("meshio",),
)
SERIES = Format(
    "time series of meshes (.pvd, .vtu.series)",
    lambda probe: _kind(probe.path) in ("pvd", "series"),
    _series,
    columns="kinds",
    needs=("vtk",),
)
