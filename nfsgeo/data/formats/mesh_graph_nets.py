"""Trajectories in the layout of MeshGraphNets' data, in HDF5 or ``.npz``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.checks import finite
from nfsgeo.data.fields import STATIC, Fields
from nfsgeo.data.formats import containers
from nfsgeo.data.formats.format import Format
from nfsgeo.errors import UserError

POINTS, TIMES = ("mesh_pos", "pos", "coords"), ("time", "times", "t")
OWN = {*POINTS, *TIMES, "node_type", "cells"}
CELLS = {2: "line", 3: "triangle", 4: "tetra", 8: "hexahedron"}  # by nodes, in space


def _groups(names: Iterable[str]) -> dict[str, set[str]]:
    """Names of the arrays in each group."""
    found: dict[str, set[str]] = {}
    for group, _, name in (each.rpartition("/") for each in names):
        found.setdefault(group, set()).add(name)
    return found


def _is_trajectory(names: set[str]) -> bool:
    return "node_type" in names and not names.isdisjoint(POINTS)


def _mesh_graph_nets(path: Path) -> Fields:
    """A group for each trajectory, or one trajectory without a group.

    ``mesh_pos`` (points, axes), also ``pos`` or ``coords``; ``node_type`` (points, 1),
    a static input for each type that there is, 1 at its nodes; optionally ``cells``
    (cells, nodes of a cell); these may have an axis of time ahead along which they do
    not change. Optionally ``time``. All others are fields (T, points, components).
    (Pfaff et al., Learning mesh-based simulation with graph networks, 2021.)
    """
    groups = _groups(containers.shapes(path))
    order = sorted(groups, key=lambda name: (len(name), name))
    names = sorted(groups[order[0]] - OWN)
    points, types, times = [], [], []
    cells: list[dict[str, NDArray[Any]]] = []
    values: dict[str, list[Variable]] = {name: [] for name in names}
    for group in order:
        where, has = f"{path} in trajectory {group or 0}", groups[group]
        if not _is_trajectory(has) or sorted(has - OWN) != names:
            wanted = f"points, node_type and {', '.join(names)} in each group"
            given = f"{where} with {', '.join(sorted(has))}"
            raise UserError(given, wanted, "rename its arrays or leave it out")
        read = containers.read(path, [f"{group}/{n}".lstrip("/") for n in has])
        found = {key.rpartition("/")[2]: value for key, value in read.items()}
        at = next(name for name in POINTS if name in has)
        points.append(_constant(found[at], f"{where}: {at}"))
        types.append(_constant(found["node_type"], f"{where}: node_type").ravel())
        times += [np.ravel(found[n].values) for n in TIMES if n in has]
        cells.append({})
        if "cells" in has:
            corners = _constant(found["cells"], f"{where}: cells").astype(np.int64)
            kind = CELLS[corners.shape[1]]
            plane = kind == "tetra" and points[-1].shape[1] == 2
            cells[-1] = {"quad" if plane else kind: corners}
        for name in names:
            values[name].append(found[name])
    if any(not np.array_equal(times[0], other) for other in times):
        raise ValueError("trajectories at different times")
    known = np.unique(np.concatenate(types))
    marks = [(kind[:, None] == known).astype(np.float32) for kind in types]
    arrays = [Array(marks, "pc", [f"node_type_{kind}" for kind in known], STATIC)]
    for name in names:
        parts, one = values[name], values[name][0]
        about = numbered(name, one.shape[2]) if one.ndim > 2 else [name]
        arrays.append(Array(parts if len(order) > 1 else one, "tpc"[: one.ndim], about))
    when = times[0] if times else None
    return build(path, arrays, points=points, times=when, cells=cells)


def _constant(array: Variable, what: str) -> NDArray[Any]:
    """Values ``[rows, columns]`` that do not change in time."""
    if array.ndim == 3 and (array.values != array.values[:1]).any():
        given, same = f"{what} that change in time", "the same at all time steps"
        raise UserError(given, same, "choose data on a fixed mesh")
    values = finite(array.values[0] if array.ndim == 3 else array.values, what)
    return values.reshape(len(values), -1)


MESH_GRAPH_NETS = Format(
    "MeshGraphNets (.h5, .npz)",
    lambda look: any(map(_is_trajectory, _groups(look.shapes).values())),
    _mesh_graph_nets,
    options=("columns",),
    columns="kinds",
)
