"""Lists of PyTorch Geometric's ``Data`` in files of ``torch.save``."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.checks import on_cpu
from nfsgeo.data.conventions import KNOWN, NODE_TYPE, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.labelled import numbered, to_fields
from nfsgeo.data.io.roles import Columns
from nfsgeo.errors import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["GRAPHS", "fields_of_graphs"]

TIMES, READ = ("time", "times"), ("pos", "x", "y", "forcing", "t", "face")
EDGES = ("edge_attr", "edge_weight")
LEFT_OUT = ("edge_index", "num_nodes", *EDGES)  # made anew
FACES = {3: "triangle", 4: "quad"}  # by the corners of a column of ``face``
SERIES = 'give --series {0}, in Python series="{0}"'


def _read(path: Path, series: Any = None, columns: Columns | None = None) -> Fields:
    """The graphs of a file, without running any code that it names."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    types = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(types):
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    graphs = [loaded] if isinstance(loaded, Data) else loaded
    return fields_of_graphs(path, graphs, series, columns)


def fields_of_graphs(
    path: Path,
    graphs: Iterable[Data],
    series: str | None = None,
    columns: Columns | None = None,
    *,
    component_names: Sequence[str] | None = None,
    static_names: Sequence[str] | None = None,
    forcing_names: Sequence[str] | None = None,
) -> Fields:
    """Fields of graphs, each of which is a sample or a time step of one.

    =============  =====================================================================
    attribute      content
    =============  =====================================================================
    ``pos``        coordinates, (points, axes)
    ``x``          (points, time steps, components); without the axis of time, one time
                   step, or the coefficient where there is a ``y``
    ``y``          with an axis of time, the time steps after ``x``; else the solution
    ``forcing``    with an axis of time, that of ``x`` and ``y``: known ahead; optional
    ``t``          (time steps), of ``x`` and ``y``; optional
    ``face``       (3, triangles) or (4, quadrilaterals), optional
    ``node_type``  (points), whole numbers, a static input; optional
    masks          (points), booleans: static inputs
    others         numbers, one for each graph: inputs; in a series all the same. Of
                   (points) or (points, components), where ``columns`` call them static
    =============  =====================================================================

    Batches are taken apart. Edges are left out, as nfsgeo makes its own graphs, and a
    warning tells of their attributes. Whether ``series`` is ``"samples"`` or
    ``"time-steps"`` has to be said of graphs on the same points that have no axis of
    time. ``path`` is for messages; names are those of the components of ``y`` or ``x``,
    of the coefficient ``x`` and of ``forcing``.

    Raises:
        UserError: Also where an attribute would go unread.
    """
    from torch_geometric.data import Batch

    lists = [g.to_data_list() if isinstance(g, Batch) else [g] for g in graphs]
    user_names = {
        str(name) for names in (columns or {}).values() for name in np.ravel(names)
    }
    parts = [
        _arrays(path, k, graph, user_names) for k, graph in enumerate(chain(*lists))
    ]
    attributes = {key for graph in chain(*lists) for key in graph.keys()}  # noqa: SIM118
    left_out(path, sorted(attributes.intersection(EDGES)))
    first, timed = parts[0], [part["x"].ndim == 3 for part in parts]
    shared = all(np.array_equal(part["pos"], first["pos"]) for part in parts)
    twins = all("y" in p and p["x"].shape == p["y"].shape for p in parts)
    if series is None and not all(timed) and (twins or (shared and len(parts) > 1)):
        given = f"{path} with {len(parts)} graphs without an axis of time in x"
        expected = (
            "to be told whether they are samples, from x to y, or time steps of one"
        )
        raise UserError(given, expected, SERIES.format("samples") + ", or time-steps")
    in_time = series == "time-steps"
    if in_time and (any(timed) or not shared or "y" in first):
        wanted = "graphs on the same points, with x without an axis of time and no y"
        todo = "leave y out, or " + SERIES.format("samples")
        raise UserError(f"{path} as time steps", wanted, todo)
    same = {*first} - {"x", "forcing", "t"} if in_time else {"t"}
    for number, part in enumerate(parts):
        odd = part.keys() ^ first.keys()
        both = same & part.keys() & first.keys()
        odd |= {name for name in both if not np.array_equal(part[name], first[name])}
        if odd:
            names = ", ".join("its times" if name == "t" else name for name in odd)
            given = f"{path} with graph {number} that differs from the first in {names}"
            other = SERIES.format("samples" if in_time else "time-steps")
            raise UserError(given, "the same in each", f"{other}, if they are such")
    if in_time:
        moving = [name for name in ("x", "forcing") if name in first]
        first = first | {n: np.stack([p[n] for p in parts], 1) for n in moving}
        if "t" in first:
            first["t"] = np.concatenate([part["t"] for part in parts])
        parts = [first]
    u = [part.get("y", part["x"]) for part in parts]
    u = [values if values.ndim == 3 else values[:, None] for values in u]
    at_points, dims_u = ("point", "component"), ("point", "time", "component")
    variables: dict[str, Any] = {"u": (dims_u, u, {"components": component_names})}
    if "y" in first:
        values = [part["x"] for part in parts]
        variables["a"] = at_points, values, {"role": STATIC, "components": static_names}
    if "forcing" in first:
        values = [part["forcing"] for part in parts]
        variables["f"] = dims_u, values, {"role": KNOWN, "components": forcing_names}
    others = sorted(first.keys() - READ)
    for name in (name for name in others if first[name].ndim):
        values, dims = [part[name] for part in parts], at_points[: first[name].ndim]
        called = numbered(name, first[name][0].size)  # perhaps u, a or f again
        variables[f"data.{name}"] = dims, values, {"role": STATIC, "components": called}
    return to_fields(
        path,
        variables,
        {
            "points": (("point", "axis"), [part["pos"] for part in parts]),
            "time": ("time", first.get("t")),
        },
        cells=[_cells(path, part) for part in parts],
        parameters={n: [p[n] for p in parts] for n in others if not first[n].ndim},
    )


def _cells(path: Path, part: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The faces of a graph by their type."""
    if "face" not in part:
        return {}
    if (corners := len(part["face"])) not in FACES:
        given = f"{path} with face of shape {part['face'].shape}"
        raise UserError(given, "(3, triangles) or (4, quadrilaterals)", "transpose it")
    return {FACES[corners]: part["face"].T}


def _arrays(
    path: Path, number: int, graph: Data, static: Collection[str]
) -> dict[str, NDArray[Any]]:
    """The attributes of a graph by name, ``x`` and ``y`` with an axis of components.

    Other attributes at points are masks, node types, or among the names ``static``.
    """
    attributes: dict[str, NDArray[Any]] = {}
    stored = graph.to_dict()
    points = len(stored["pos"]) if torch.is_tensor(stored.get("pos")) else -1
    for key, value in stored.items():
        values, name = np.asarray(on_cpu(value)), "t" if key in TIMES else key
        if name in LEFT_OUT:
            continue
        if name in ("x", "y", "forcing") and values.ndim == 1:
            values = values[:, None]
        elif name not in READ:
            numbers, mask = values.dtype.kind in "biuf", values.dtype.kind == "b"
            at_points = len(values) == points and values.ndim <= 2 if values.ndim else 0
            if numbers and at_points and (mask or key in static or key == NODE_TYPE):
                values = values[:, 0] if values.shape[1:] == (1,) else values
            elif numbers and values.size == 1:
                values = values.reshape(())
            else:
                only = f"attributes {', '.join(READ)}, {NODE_TYPE}, masks of points, "
                only += "and single numbers"
                todo = "rename it or leave it out, or call it a static input, "
                todo += f'columns={{"static": "{key}"}}; take batches apart, '
                todo += "to_data_list()"
                raise UserError(f"{path} with {key} in graph {number}", only, todo)
        attributes[name] = np.atleast_1d(values) if name == "t" else values
    if lost := ", ".join({"pos", "x"} - attributes.keys()):
        stored = f"{path} with graph {number} without {lost}"
        raise UserError(stored, "graphs with pos and x", f"set data.{lost}")
    if "y" in attributes and 3 in (attributes["x"].ndim, attributes["y"].ndim):
        attributes["x"] = np.concatenate([attributes["x"], attributes.pop("y")], axis=1)
    return attributes


def _is_graphs(probe: FileProbe) -> bool:
    with zipfile.ZipFile(probe.path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        return any(b"torch_geometric" in archive.read(name) for name in names)


GRAPHS = Format(
    "lists of PyTorch Geometric's Data (.pt)",
    _is_graphs,
    _read,
    "graphs in one list, as of torch.save([*dataset], path) or batch.to_data_list()",
    "kinds",
)
