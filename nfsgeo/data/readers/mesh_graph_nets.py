"""Trajectories in the layout of MeshGraphNets' data, in HDF5 or ``.npz``."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.numbers import finite, with_gaps
from nfsgeo.data.readers.clouds import CloudFile, Lazy, numbered
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError

__all__ = ["MESH_GRAPH_NETS"]

NAME = "MeshGraphNets (.h5, .npz)"
POINTS = ("mesh_pos", "pos", "coords")
NODE_TYPE, CELLS = "node_type", "cells"
TIMES = ("time", "times", "t")
# Nodes of a cell to its type, where that does not depend on the dimension.
KINDS = {2: "line", 3: "triangle", 8: "hexahedron"}

Group = Mapping[str, Any]


def _is_group(names: Any) -> bool:
    found = set(names)
    return NODE_TYPE in found and not found.isdisjoint(POINTS)


def _fits(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return _is_group(name.removesuffix(".npy") for name in archive.namelist())
    with h5py.File(path, "r") as file:
        first = next((each for each in file.values()), None)
        return _is_group(file) or (isinstance(first, h5py.Group) and _is_group(first))


def _mesh_graph_nets(path: Path) -> FieldFile:
    """A group for each trajectory, or one trajectory without a group.

    ====================  ==============================================================
    array                 content
    ====================  ==============================================================
    ``mesh_pos``          coordinates, (points, axes), or ``pos``, ``coords``
    ``node_type``         (points, 1): becomes a coefficient ``node_type_K`` for each
                          type K that there is, 1 at its nodes
    ``cells``             (cells, nodes of a cell), optional
    ``velocity`` ...      (T, points, components), the fields, by any names
    ``time``              (T), optional
    ====================  ==============================================================

    The first three may have an axis of time ahead along which they do not change.
    Values equal to ``_FillValue`` or ``missing_value`` of a data set are missing.
    (Pfaff et al., Learning mesh-based simulation with graph networks, 2021.)
    """
    groups, handle = _groups(path)
    order = sorted(groups, key=lambda name: (len(name), name))
    meshes, u, types, times = [], [], [], []
    cells: list[dict[str, NDArray[Any]]] = []
    names: list[str] = []
    for name in order:
        group = groups[name]
        where = f"{path} in trajectory {name}" if name else f"{path}"
        points = _constant(
            group[next(p for p in POINTS if p in group)], where, "points"
        )
        types.append(_constant(group[NODE_TYPE], where, NODE_TYPE).reshape(-1))
        cells.append({})
        if CELLS in group:
            nodes = _constant(group[CELLS], where, CELLS).astype(np.int64)
            cells[-1] = {_kind(nodes.shape[1], points.shape[1]): nodes}
        given = {*POINTS, NODE_TYPE, CELLS, *TIMES}
        fields = {key: group[key] for key in sorted(group) if key not in given}
        wide = {key: _width(where, key, v, len(points)) for key, v in fields.items()}
        found = [n for key, width in wide.items() for n in numbered(key, width)]
        if name != order[0] and found != names:
            raise ValueError(f"fields {found} in trajectory {name}, {names} before")
        names = found
        steps = {v.shape[0] for v in fields.values()}
        if len(steps) != 1:
            raise ValueError(f"fields of {sorted(steps)} time steps in one trajectory")
        shape = (len(points), steps.pop(), len(names))
        u.append(Lazy(shape, partial(_rows, list(fields.values()), shape[0])))
        meshes.append(points)
        times += [np.ravel(with_gaps(group[t], group[t])) for t in TIMES if t in group]
    known = np.unique(np.concatenate(types))
    if any(not np.array_equal(times[0], other) for other in times):
        raise ValueError("trajectories at different times")
    return CloudFile(
        path,
        meshes=meshes,
        u=u,
        a=[(kind[:, None] == known).astype(np.float32) for kind in types],
        times=times[0] if times else [0.0] if u[0].shape[1] == 1 else None,
        component_names=names,
        static_names=[f"node_type_{kind}" for kind in known],
        cells=cells,
        handle=handle,
    )


def _groups(path: Path) -> tuple[dict[str, Group], Any]:
    if zipfile.is_zipfile(path):
        with np.load(path, allow_pickle=False) as archive:
            return {"": {name: archive[name] for name in archive.files}}, None
    file = h5py.File(path, "r")
    if _is_group(file):
        return {"": file}, file
    for name, group in file.items():
        if not isinstance(group, h5py.Group) or not _is_group(group):
            file.close()
            raise UserError(
                f"{path} with {name}, which has no {NODE_TYPE} or no points",
                "a group for each trajectory",
                "leave it out",
            )
    return dict(file.items()), file


def _constant(array: Any, where: str, what: str) -> NDArray[Any]:
    """An array ``[rows, columns]`` that does not change in time."""
    values = np.asarray(array)
    if values.ndim == 3:
        if not (values == values[:1]).all():
            raise UserError(
                f"{where} with {what} that change in time",
                "the same points and cells at all time steps",
                "choose data on a fixed mesh",
            )
        values = values[0]
    values = finite(with_gaps(values, array), f"{where}: {what}")
    return values if values.ndim == 2 else values.reshape(len(values), -1)


def _width(where: str, key: str, values: Any, num: int) -> int:
    """Components of a field ``[T, points, components]``."""
    if values.ndim not in (2, 3) or values.shape[1] != num:
        raise UserError(
            f"{where} with {key} of shape {tuple(values.shape)}",
            f"(time steps, {num} points, components)",
            "reorder its axes or leave it out",
        )
    return values.shape[2] if values.ndim == 3 else 1


def _kind(nodes: int, dim: int) -> str:
    if nodes == 4:
        return "quad" if dim == 2 else "tetra"
    return KINDS[nodes]


def _rows(fields: list[Any], num: int, steps: slice) -> NDArray[Any]:
    parts = [with_gaps(each[steps], each) for each in fields]
    parts = [part.reshape(len(part), num, -1) for part in parts]
    return np.concatenate(parts, axis=-1).swapaxes(0, 1)


MESH_GRAPH_NETS = Reader(NAME, _fits, _mesh_graph_nets)
