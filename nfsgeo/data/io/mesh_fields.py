"""Fields of a mesh: which of its arrays are fields, how they are called, and when."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.checks import missing_values
from nfsgeo.data.conventions import GHOST, SPACE, VALID, is_static
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import left_out
from nfsgeo.data.io.labelled import field_names, numbered, plain_name, to_fields
from nfsgeo.data.io.packed_files import OF_SOLVER
from nfsgeo.data.io.roles import Columns
from nfsgeo.data.io.vtk_files import Mesh
from nfsgeo.errors import UserError, option

__all__ = ["fields_of_mesh", "warn_once"]

OF_TIME = ("timevalue", "time", "cycle")  # numbers that tell a time step, in any case
# Numbers of the points in another mesh, as ParaView, Exodus and CalculiX write them.
IDS = r"(?i)(vtk)?(original|global|pedigree)_?(point|node|vertex|element|cell)?_?ids?"
SWEPT = re.compile(r"(.+?)[ _]@[ _](?:\d+:[ _])?t=([-+.\deE]+)")  # as COMSOL names them
# Points of which each cell has its own, as deal.II writes them, found by one number.
MIXED = np.array([1.0, np.pi, np.e])
CLEAN = ("; where cells share them, make them one by Clean to Grid in ParaView",)

_SAID = set[tuple[Path, tuple[str, ...]]]()
logger = logging.getLogger(__name__)


def fields_of_mesh(
    path: Path, mesh: Mesh, times: Any, at: str | None, columns: Columns | None
) -> Fields:
    """Return the fields of a mesh, at its points or at the centres of its cells.

    Args:
        path: The file, for messages.
        mesh: The mesh, its arrays ``[n, ...]``, or ``[n, ..., T]`` at several times.
        times: The times; None where arrays or their names may tell them.
        at: ``"points"`` or ``"cells"``; None where only one of them has arrays.
        columns: The user's names of arrays by kind.

    Raises:
        UserError: Both have arrays or none, or points that do not count have values.
        ValueError: There are no points.
    """
    chosen = {name for names in (columns or {}).values() for name in np.ravel(names)}
    times = _in_time(path, mesh) if times is None else times
    names, inside, no_fields = _named(mesh, chosen)
    numbers, clock, odd = _numbers(mesh)
    times = clock.get("timevalue", clock.get("time")) if times is None else times
    lost = [*mesh.lost, *no_fields, *odd]
    if at is None and names and inside:
        both = f"{', '.join(names)} at the points and {', '.join(inside)} at the cells"
        todo = f"say it: {option('at', 'points')}, or {option('at', 'cells')}"
        raise UserError(f"{path} with {both}", "to be told which are the fields", todo)
    cells: dict[str, Any] = {}
    points, arrays, axes = mesh.points, mesh.at_points, mesh.axes
    if at == "cells" or not names:
        arrays, names, points = mesh.at_cells, inside, mesh.centres
        axes = [(axis[1:] + axis[:-1]) / 2 if len(axis) > 1 else axis for axis in axes]
    else:
        for kind, nodes in mesh.cells:
            cells[kind] = np.concatenate([cells.get(kind, nodes[:0]), nodes])
        lost += [f"cells, among which are {mesh.unknown}"] if mesh.unknown else []
    lost += [f"{name} of the mesh as a whole" for name in numbers if name in names]
    warn_once(path, tuple(lost))
    valid = np.asarray(arrays.get(VALID, 1)) == 1
    if bad := int(np.count_nonzero(arrays.get(GHOST, 0) * valid)):
        raise missing_values(f"fields of {path}, by its {GHOST},", bad, len(points))
    if not len(mesh.points):
        raise ValueError("no points")
    if not names:
        given = f"{path} with no data at the points or cells"
        raise UserError(given, "values at its points", OF_SOLVER)
    coordinates = _coordinates(points, axes)
    sizes = {dims[0]: len(values) for dims, values in reversed(coordinates.values())}
    if "points" in coordinates and points is mesh.points:
        _tell_doubles(path, points)
    num_times = 1 if times is None else len(times)
    fields = {name: arrays[name] for name in names}
    called = _called([name for name in numbers if name not in names])
    return to_fields(
        path,
        _variables(path, fields, valid, sizes, num_times),
        {**coordinates, "time": ("time", times)},
        cells=cells if "points" in coordinates else {},
        parameters={bare: numbers[name] for name, (bare, _) in called.items()},
    )


def _named(mesh: Mesh, chosen: set[Any]) -> tuple[list[str], list[str], list[str]]:
    """Names of the fields at the points, and at the cells, and of what is no field:
    numbers of points in other meshes, and integers at cells that nobody has ``chosen``.
    """
    called = _called([*mesh.at_cells])
    whole = {name for name, v in mesh.at_cells.items() if v.dtype.kind in "iu"}
    whole = {name for name in whole if chosen.isdisjoint((name, called[name][0]))}
    ids = {n for n in mesh.at_points if re.fullmatch(IDS, n) and n not in chosen}
    marks = {VALID, GHOST}
    names = [name for name in mesh.at_points if name not in marks | ids]
    inside = [name for name in mesh.at_cells if name not in marks | whole]
    return names, inside, [*sorted(whole - marks), *sorted(ids)]


def _numbers(mesh: Mesh) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Numbers of a mesh as a whole, those that tell its time, and names of the rest."""
    arrays = {name: np.asarray(values) for name, values in mesh.numbers.items()}
    timed = [name for name in arrays if name.lower() in OF_TIME]
    clock = {name.lower(): np.ravel(arrays.pop(name))[:1] for name in timed}
    single = [n for n, v in arrays.items() if v.size == 1 and v.dtype.kind in "biuf"]
    numbers = {name: arrays.pop(name).reshape(1) for name in single}
    return numbers, clock, [*arrays]


def _coordinates(points: NDArray[Any], axes: Sequence[Any]) -> dict[str, Any]:
    """Coordinates along the axes of a grid that rise, or else those of the points."""
    wide = [axis for axis in axes if len(axis) > 1]
    if wide and all((np.diff(axis) > 0).all() for axis in wide):
        return {name: ((name,), x) for name, x in zip(SPACE, wide, strict=False)}
    # Points of a mesh in the plane or on a line have further coordinates of 0.
    dim = 1 + max(np.flatnonzero((points != 0).any(axis=0)), default=0)
    return {"points": (("point", "axis"), points[:, :dim])}


def _variables(
    path: Path,
    arrays: Mapping[str, Any],
    valid: NDArray[np.bool_],
    sizes: Mapping[str, int],
    num_times: int,
) -> dict[str, Any]:
    """Variables of arrays by names that fields may have, which a line tells.

    Args:
        path: The file, for messages.
        arrays: Arrays ``[n, ..., T]`` by name.
        valid: Which points have values, ``[n]`` or ``[n, T]``; one number for all.
        sizes: Dimensions of space and their sizes, of which ``n`` is the product.
        num_times: The number of time steps.
    """
    variables, renamed, taken = dict[str, Any](), list[str](), set[str]()
    num, names = prod(sizes.values()), _called([*arrays])
    in_time = (num_times,) * (num_times > 1)
    for name, array in arrays.items():
        values = array.reshape(num, -1, *in_time)
        if not (valid.all() or is_static(name)):
            values = np.where(valid.reshape(num, -1, *in_time), values, np.nan)
        called, unit = names[name]
        while not taken.isdisjoint(numbered(called, values.shape[1])):
            called += "_field"
        taken |= {*numbered(called, values.shape[1])}
        renamed += [f"{name!r} is called {called}"] if called != name else []
        along = (*sizes, "component", "time")[: len(sizes) + values.ndim - 1]
        whole = values.reshape(*sizes.values(), *values.shape[1:])
        variables[called] = along, whole, {"units": unit} if unit else {}
    if renamed and (path.parent, (*renamed,)) not in _SAID:
        _SAID.add((path.parent, (*renamed,)))
        logger.warning("%s: %s", path, ", ".join(renamed))
    return variables


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
    swept = {n: match.groups() for n in mesh.at_points if (match := SWEPT.fullmatch(n))}
    if not swept:
        return None
    times = dict[str, list[float]]()
    for bare, time in swept.values():
        times.setdefault(bare, []).append(float(time))
    first = next(iter(times.values()))
    odd = [n for n in mesh.at_points if n not in swept and not is_static(n)]
    odd += [n for n in times if times[n] != first]
    if odd or first != sorted(set(first)):
        given = f"{path} with {[*swept][0]}, and {(odd or [*swept])[-1]} at other times"
        todo = "export the fields at the same times, and what has none to another file"
        raise UserError(given, "all fields at the same times that rise", todo)
    for name in times:
        steps = [mesh.at_points.pop(n) for n in swept if swept[n][0] == name]
        mesh.at_points[name] = np.stack(steps, -1) if len(first) > 1 else steps[0]
    for name in mesh.at_points.keys() - times.keys():
        steps = [mesh.at_points[name]] * len(first)
        mesh.at_points[name] = np.stack(steps, -1) if len(first) > 1 else steps[0]
    return first


def _called(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The name of the field of each array, and its unit if the name tells it."""
    told = field_names(names).items()
    return {name: (plain_name(bare), unit) for name, (bare, unit) in told}


def warn_once(path: Path, lost: tuple[str, ...]) -> None:
    """Say once for the files of a folder what is left out, however often they open."""
    if (path.parent, lost) not in _SAID:
        _SAID.add((path.parent, lost))
        left_out(path, lost)
