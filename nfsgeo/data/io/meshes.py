"""Meshes with fields at their points or cells, blocks of them, and series of them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, parse

import h5py
import numpy as np

from nfsgeo.data.checks import missing_values, reading
from nfsgeo.data.conventions import GHOST, SPACE, VALID, field_name, is_static
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.joining import concatenated
from nfsgeo.data.io.labelled import numbered, plain_name, to_fields
from nfsgeo.data.io.meshio_files import read_meshio
from nfsgeo.data.io.roles import Columns
from nfsgeo.data.io.vtk_files import Mesh, read_vtk
from nfsgeo.data.other_files import beside, check_hdf5
from nfsgeo.errors import UserError

SETS = ("UnstructuredGrid", "PolyData", "StructuredGrid", "RectilinearGrid")
KINDS = dict.fromkeys((*SETS, "ImageData"), "xml")  # of <VTKFile type="...">
KINDS |= dict.fromkeys([f"P{name}" for name in KINDS], "pieces")
KINDS |= dict.fromkeys(("vtkMultiBlockDataSet", "vtkPartitionedDataSet"), "blocks")
KINDS |= {"vtkPartitionedDataSetCollection": "blocks", "Collection": "pvd"}
HDF5 = {"VTKHDF": "hdf", "CGNSLibraryVersion": "cgns", "INFOS_GENERALES": "med"}
OF_VTK = ("xml", "vtk", "hdf", "ensight", "cgns", "pieces", "blocks", "other")
OF_TIME = ("timevalue", "time", "cycle")  # numbers that tell a time step, in any case
# Numbers of the points in another mesh, as ParaView, Exodus and CalculiX write them.
IDS = r"(?i)(vtk)?(original|global|pedigree)_?(point|node|vertex|element|cell)?_?ids?"
SWEPT = re.compile(r"(.+?)[ _]@[ _](?:\d+:[ _])?t=([-+.\deE]+)")  # as COMSOL names them
DUPLICATE = 1  # in vtkGhostType: what another piece has
_SAID = set[tuple[Path, tuple[str, ...]]]()
logger = logging.getLogger(__name__)
BY_PARAVIEW = "check it, or open it in ParaView and save it, File, Save Data, as .pvd"
# Points of which each cell has its own, as deal.II writes them, found by one number.
MIXED = np.array([1.0, np.pi, np.e])
CLEAN = ("; where cells share them, make them one by Clean to Grid in ParaView",)
A_MESH, AGAIN = "an undamaged mesh", "check it, or save it again as .vtu"


def _mesh(path: Path, at: str | None = None, columns: Columns | None = None) -> Fields:
    """Read a mesh: points, cells and every field, vectors by component.

    An array ``a``, ``a_NAME`` or ``node_type`` is a static input, and so are bytes of
    zeros and ones. Single numbers of the whole mesh are inputs of the sample.
    Coordinates that are 0 at all points, such as z of a plane mesh, are left
    out. Whole numbers at cells, such as those of materials, are no fields, which a
    warning tells. Files of several blocks or pieces are one mesh; blocks of a lower
    dimension, such as the boundaries of a volume, are left out, which one tells too.
    """
    if (kind := _kind(path)) not in OF_VTK:
        again = BY_PARAVIEW if kind == "xdmf" else AGAIN
        with reading(path, "a mesh that meshio reads", again):
            mesh, times = read_meshio(path, str(kind))
        return _fields(path, mesh, times, at, columns)
    mesh, times = _read(path, at)
    if times is None or len(times) < 2:
        return _fields(path, mesh, times, at, columns)
    steps = {Path(f"{path} at {time}"): number for number, time in enumerate(times)}
    opener = partial(_time, path, steps, at, columns)
    whole = concatenated([*steps], opener, "time-steps", gaps=True)
    return replace(whole, path=path)


def _time(path: Path, steps: Any, at: Any, columns: Any, step: Path) -> Fields:
    """A time step of a file that holds several."""
    mesh, times = _read(path, at, steps[step])
    return _fields(path, mesh, (times or [])[steps[step] :][:1], at, columns)


def _series(path: Path, at: Any = None, columns: Columns | None = None) -> Fields:
    """The files that it lists at their times; groups of a ``.pvd`` are samples."""
    if _kind(path) == "pvd":
        listed = [entry.attrib for entry in parse(path).getroot().iter("DataSet")]
    else:
        listed = json.loads(path.read_bytes())["files"]
        listed = [{"timestep": e["time"], "file": e["name"]} for e in listed]
    timed = any("timestep" in entry for entry in listed)
    samples: dict[str, dict[Path, tuple[float, dict[str, Path]]]] = {}
    for entry in listed:
        part, steps = (
            entry.get("part", "0"),
            samples.setdefault(entry.get("group", ""), {}),
        )
        before = sum(part in parts for _, parts in steps.values())
        time = float(entry["timestep"]) if timed else float(before)
        _, parts = steps.setdefault(Path(f"{path} at {time}"), (time, {}))
        if part in parts:
            given = f"{path} with several files at one time, {time:g}"
            todo = "number them, part=, or merge them in ParaView"
            raise UserError(given, "one file for each time step, or parts of it", todo)
        parts[part] = beside(path, entry["file"])
    groups = {}
    for group, steps in samples.items():
        opener = partial(_step, path, steps, at, columns, timed)
        name = Path(f"{path}, group {group}")
        groups[name] = concatenated([*steps], opener, "time-steps", gaps=True)
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
    return _fields(series, mesh, [time] if timed else None, at, columns)


def _fields(path: Path, mesh: Mesh, times: Any, at: Any, columns: Any) -> Fields:
    """The fields of a mesh, at its points or at the centres of its cells.

    Arrays are [n, ...], or [n, ..., t] where there are several times.
    """
    chosen = {name for names in (columns or {}).values() for name in np.ravel(names)}
    hidden = {name for name, v in mesh.at_cells.items() if v.dtype.kind in "iu"}
    hidden = {name for name in hidden if chosen.isdisjoint((name, _called(name)[0]))}
    lost = [*mesh.lost, *sorted(hidden - {VALID, GHOST})]
    ids = {n for n in mesh.at_points if re.fullmatch(IDS, n) and n not in chosen}
    lost += sorted(ids)
    if times is None:
        times = _in_time(path, mesh)
    parameters = dict[str, Any]()
    told = dict[str, Any]()
    for name, values in mesh.numbers.items():
        value = np.asarray(values)
        if name.lower() in OF_TIME:
            told[name.lower()] = np.ravel(value)[:1]
        elif value.size == 1 and value.dtype.kind in "biuf":
            parameters[name] = value.reshape(1)
        else:
            lost.append(name)
    names = [name for name in mesh.at_points if name not in {VALID, GHOST} | ids]
    inside = [name for name in mesh.at_cells if name not in hidden | {VALID, GHOST}]
    if at is None and names and inside:
        both = f"{', '.join(names)} at the points and {', '.join(inside)} at the cells"
        todo = f"say it: nfsgeo convert {path} --out NAME.nc --at points, or --at cells"
        raise UserError(f"{path} with {both}", "to be told which are the fields", todo)
    cells: dict[str, Any] = {}
    points, arrays, axes = mesh.points, mesh.at_points, mesh.axes
    if at == "cells" or not names:
        arrays, names, points = mesh.at_cells, inside, mesh.centres
        axes = [(axis[1:] + axis[:-1]) / 2 if len(axis) > 1 else axis for axis in axes]
    else:
        for kind, nodes in mesh.cells:
            cells[kind] = np.concatenate([cells.get(kind, nodes[:0]), nodes])
        if mesh.unknown:
            lost.append(f"cells, among which are {mesh.unknown}")
    lost += [f"{name} of the mesh as a whole" for name in parameters if name in names]
    _warn(path, tuple(lost))
    valid = np.asarray(arrays.get(VALID, 1)) == 1
    if bad := int(np.count_nonzero(arrays.get(GHOST, 0) * valid)):
        raise missing_values(f"fields of {path}, by its {GHOST},", bad, len(points))
    if not len(mesh.points):
        raise ValueError("no points")
    if not names:
        raise ValueError("no data at the points or cells")
    if times is None:
        times = told.get("timevalue", told.get("time"))
    wide = [axis for axis in axes if len(axis) > 1]
    on_grid = bool(wide) and all((np.diff(axis) > 0).all() for axis in wide)
    if on_grid:
        coordinates = dict(zip(SPACE, wide, strict=False))
        at_all, sizes = tuple(coordinates)[::-1], [len(axis) for axis in wide][::-1]
    else:
        moving = (points != 0).any(axis=0)  # unlike z of a mesh in the plane
        moving[0] |= not moving.any()
        coordinates = {"points": points[:, moving]}
        at_all, sizes = ("point",), [len(points)]
        if points is mesh.points:
            _tell_doubles(path, points)
    variables, renamed, taken = dict[str, Any](), list[str](), set[str]()
    in_time = (len(times),) if times is not None and len(times) > 1 else ()
    for name in names:
        values = arrays[name].reshape(len(points), -1, *in_time)
        if not (valid.all() or is_static(name)):
            values = np.where(valid.reshape(len(points), -1, *in_time), values, np.nan)
        dims = (*at_all, "component", "time")[: len(at_all) + values.ndim - 1]
        called, unit = _called(name)
        while not taken.isdisjoint(numbered(called, values.shape[1])):
            called += "_field"
        taken |= {*numbered(called, values.shape[1])}
        renamed += [f"{name!r} is called {called}"] if called != name else []
        whole = values.reshape(*sizes, *values.shape[1:])
        variables[called] = dims, whole, {"units": unit} if unit else {}
    if renamed and (path.parent, (*renamed,)) not in _SAID:
        _SAID.add((path.parent, (*renamed,)))
        logger.warning("%s: %s", path, ", ".join(renamed))
    return to_fields(
        path,
        variables,
        {
            **{
                n: ((n,) if on_grid else ("point", "axis"), v)
                for n, v in coordinates.items()
            },
            "time": ("time", times),
        },
        cells={} if on_grid else cells,
        parameters={_called(n)[0]: v for n, v in parameters.items() if n not in names},
    )


def _tell_doubles(path: Path, points: Any) -> None:
    """Say once for the files of a folder that points are at places of others."""
    sums = (points * MIXED[: points.shape[1]]).sum(axis=1)
    if (path.parent, CLEAN) in _SAID or len(np.unique(sums)) == len(points):
        return
    if again := len(points) - len(np.unique(points, axis=0)):
        _SAID.add((path.parent, CLEAN))
        where = f"{again} of {len(points)} points are at places of others"
        logger.warning("%s: %s%s", path, where, *CLEAN)


def _in_time(path: Path, mesh: Mesh) -> list[float] | None:
    """Make one array of ``T @ t=0`` and ``T @ t=1``; return the times if any."""
    found = {n: told.groups() for n in mesh.at_points if (told := SWEPT.fullmatch(n))}
    if not found:
        return None
    times = dict[str, list[float]]()
    for bare, time in found.values():
        times.setdefault(bare, []).append(float(time))
    first = next(iter(times.values()))
    odd = [n for n in mesh.at_points if n not in found and not is_static(n)]
    odd += [n for n in times if times[n] != first]
    if odd or first != sorted(set(first)):
        given = f"{path} with {[*found][0]}, and {(odd or [*found])[-1]} at other times"
        todo = "export the fields at the same times, and what has none to another file"
        raise UserError(given, "all fields at the same times that rise", todo)
    for name in times:
        steps = [mesh.at_points.pop(n) for n in found if found[n][0] == name]
        mesh.at_points[name] = np.stack(steps, -1) if len(first) > 1 else steps[0]
    for name in mesh.at_points.keys() - times.keys():
        steps = [mesh.at_points[name]] * len(first)
        mesh.at_points[name] = np.stack(steps, -1) if len(first) > 1 else steps[0]
    return first


def _called(name: str) -> tuple[str, str]:
    """The name of the field of an array, and its unit if the name tells it."""
    bare, unit = field_name(name)
    return plain_name(bare), unit


def _warn(path: Path, lost: tuple[str, ...]) -> None:
    """Say once for the files of a folder what is left out, however often they open."""
    if (path.parent, lost) not in _SAID:
        _SAID.add((path.parent, lost))
        left_out(path, lost)


def _read(path: Path, at: str | None, step: int = 0) -> tuple[Mesh, list[float] | None]:
    """A file of VTK at one of its times as one mesh, and the times if there are any."""
    blocks, times = _blocks(path, at, step)
    highest = max(mesh.dim for mesh in blocks.values())
    lower = [name for name, mesh in blocks.items() if mesh.dim < highest]
    if lower:
        listed = f"blocks of less than {highest} dimensions, {', '.join(lower)}"
        _warn(path, (f"{listed}; their own files can be read",))
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
    kept = np.sort(where)
    single = where[number.reshape(-1)]  # of the points at a place, the first
    at_points, at_cells = dict[str, Any](), dict[str, Any]()
    for name in first.at_points if at != "cells" else ():
        values = np.concatenate([part.at_points[name] for part in meshes])
        if name == GHOST:
            values &= ~np.array(DUPLICATE, values.dtype)
        if not np.array_equal(
            values, values[single], equal_nan=values.dtype.kind == "f"
        ):
            given = f"{path} with {name} that differs between blocks at a common point"
            more = ", or choose the fields at the cells, --at cells" * bool(
                first.at_cells
            )
            raise UserError(given, "one value at each point", todo + more)
        at_points[name] = values[kept]
    twice = [
        part.at_cells.get(GHOST, np.zeros(len(part.centres), int)) for part in meshes
    ]
    alone = np.concatenate(twice) & DUPLICATE == 0
    for name in first.at_cells:
        at_cells[name] = np.concatenate([part.at_cells[name] for part in meshes])[alone]
    cells, start = [], 0
    for part in meshes:
        for kind, nodes in part.cells:
            cells.append((kind, np.searchsorted(kept, single[nodes + start])))
        start += len(part.points)
    unknown = "; ".join(filter(None, [part.unknown for part in meshes]))
    return Mesh(
        points[kept],
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
