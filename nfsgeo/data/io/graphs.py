"""Lists of PyTorch Geometric's ``Data`` in files of ``torch.save``."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, SequentialSampler

from nfsgeo.data.checks import on_cpu
from nfsgeo.data.conventions import KNOWN, NODE_TYPE, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.edges import with_graph
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.graph_times import ASK, TimeAxis, in_time
from nfsgeo.data.io.labelled import numbered, to_fields
from nfsgeo.data.io.roles import Columns
from nfsgeo.errors import UserError, option, said

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["GRAPHS", "fields_of_graphs"]

logger = logging.getLogger(__name__)

TIMES, READ = ("t", "time", "times"), ("pos", "x", "y", "forcing", "t", "face")
EDGES = ("edge_index", "edge_weight")
PARTS = {f"{part}_mask" for part in ("train", "val", "valid", "test")}
FACES = {3: "triangle", 4: "quad"}  # by the corners of a column of ``face``
KINDS = ("samples", "time-steps")
LIST = "a list of Data with pos and x, one for each sample or time step"

Arrays = dict[str, NDArray[Any]]  # the attributes of a graph by name


def _read(
    path: Path,
    series: Any = None,
    columns: Columns | None = None,
    time_axis: tuple[TimeAxis] = (ASK,),
) -> Fields:
    """The graphs of a file, without running any code that it names."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.separate import separate
    from torch_geometric.data.storage import BaseStorage, GlobalStorage, NodeStorage

    types = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    types += [BaseStorage, NodeStorage]  # of HeteroData, which a message names then
    with torch.serialization.safe_globals(types):
        if others := torch.serialization.get_unsafe_globals_in_checkpoint(path):
            given = f"{path} with {', '.join(sorted(others))}"
            todo = "save them by torch.save([*dataset], path), or batch.to_data_list()"
            raise UserError(given, "a list of graphs of Data alone", todo)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(loaded, tuple) and len(loaded) in (2, 3):  # of InMemoryDataset.save
        data, slices = loaded[:2]
        data = Data.from_dict(data) if isinstance(data, dict) else data
        num = len(next(iter(slices.values()))) - 1
        loaded = [separate(Data, data, k, slices, decrement=False) for k in range(num)]
    return fields_of_graphs(path, loaded, series, columns, time_axis=time_axis[0])


def graphs_of(path: Path, given: Any) -> list[Data]:
    """Return graphs of a list, a data set or a loader; batches are taken apart.

    Raises:
        UserError: They are not ``Data``, or in an order that is drawn.
    """
    from torch_geometric.data import Batch, Data
    from torch_geometric.data.data import BaseData

    drawn = not isinstance(getattr(given, "sampler", None), SequentialSampler)
    if isinstance(given, DataLoader) and drawn:
        what, todo = "graphs in order", "give its data set: loader.dataset"
        raise UserError(f"{path} of a DataLoader whose order is drawn", what, todo)
    alone = isinstance(given, (BaseData, str, dict)) or not isinstance(given, Iterable)
    graphs = list[Any]()
    for graph in [given] if alone else given:
        try:
            graphs += graph.to_data_list() if isinstance(graph, Batch) else [graph]
        except RuntimeError:
            todo = "give the list of Data that it was made of"
            raise UserError(f"{path} of a Batch without slices", LIST, todo) from None
    wrong = [graph for graph in graphs if not isinstance(graph, Data)]
    if wrong or not graphs:
        todo = "give a list of Data"
        if wrong and (names := getattr(wrong[0], "node_types", ())):
            node = f"graph['{names[0]}']"
            todo = f"make each Data of one: Data(pos={node}.pos, x={node}.x)"
        kind = f"a {type(wrong[0]).__name__}" if wrong else "no graph"
        raise UserError(f"{path} with {kind}", LIST, todo)
    return graphs


def fields_of_graphs(
    path: Path,
    graphs: Any,
    series: str | None = None,
    columns: Columns | None = None,
    *,
    time_axis: TimeAxis = ASK,
    component_names: Sequence[str] | None = None,
    static_names: Sequence[str] | None = None,
    forcing_names: Sequence[str] | None = None,
) -> Fields:
    """Fields of graphs, each of which is a sample or a time step of one.

    =============  =====================================================================
    attribute      content
    =============  =====================================================================
    ``pos``        coordinates, (points, axes)
    ``x``          (points, time steps, components), or as the number of times ``t`` or
                   ``time_axis`` tell, (points, components, time steps) and (points,
                   time steps); without an axis of time, one time step, or the
                   coefficient where there is a ``y``
    ``y``          with an axis of time, the time steps after ``x``; else the solution,
                   which needs no ``x``
    ``forcing``    with an axis of time, that of ``x`` and ``y``: known ahead; optional
    ``t``          (time steps), of ``x`` and ``y``; optional
    ``face``       (3, triangles) or (4, quadrilaterals), optional
    ``node_type``  (points), whole numbers, or (points, types) of zeros and a one: a
                   static input; optional
    masks          (points), booleans: static inputs, but for ``train_mask`` and so on
    others         numbers, one for each graph: inputs; in a series all the same. Of
                   (points) or (points, components), where ``columns`` call them static
    =============  =====================================================================

    ``edge_index`` and ``edge_weight`` are the graph of the fields, which the models
    ``gcgru`` and ``dcrnn`` use.

    Batches are taken apart. Further attributes of edges, text, and masks of training
    and test nodes are left out with a warning.
    Whether ``series`` is ``"samples"`` or ``"time-steps"`` has to be said of graphs on
    the same points that have no axis of time. ``path`` is for messages; names are those
    of the components of ``y`` or ``x``, of the coefficient ``x`` and of ``forcing``.

    Raises:
        UserError: Also where an attribute would go unread.
    """
    several = (columns or {}).values()
    user_names = {str(name) for names in several for name in np.ravel(names)}
    named = [len(names) for names in (component_names, static_names) if names]
    parts, unread, lines = list[Arrays](), set[str](), set[str]()
    graphs, as_steps = graphs_of(path, graphs), series == "time-steps"
    edges, weights = (_edge_tensors(graphs, key, as_steps, unread) for key in EDGES)
    for number, graph in enumerate(map(_with_coefficient, graphs)):
        arrays = _arrays(path, number, graph, user_names, unread)
        what = f"{path}, graph {number},"
        part, line = in_time(what, arrays, time_axis, series, named)
        if "y" in part and part["x"].ndim == 3:
            part["x"] = np.concatenate([part["x"], part.pop("y")], axis=1)
        parts.append(part)
        lines.add(line)
    for line in lines - {""}:
        logger.warning("%s: %s", path, said(line))
    left_out(path, sorted(unread))
    _check_series(path, parts, series)
    _check_alike(path, parts, as_steps)
    parts = [_in_one_sample(parts)] if as_steps else parts
    first = parts[0]
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
    fields = to_fields(
        path,
        variables,
        {
            "points": (("point", "axis"), [part["pos"] for part in parts]),
            "time": ("time", first.get("t")),
        },
        cells=[_cells(path, part) for part in parts],
        parameters={n: [p[n] for p in parts] for n in others if not first[n].ndim},
    )
    return fields if edges is None else with_graph(fields, edges, weights)


def _with_coefficient(graph: Data) -> Data:
    """The graph; with a coefficient ``x`` of no component if it has ``y`` alone."""
    x, y = graph.get("x"), graph.get("y")
    if x is not None or not torch.is_tensor(y) or not y.dim():
        return graph
    graph = copy(graph)
    graph.x = y.new_empty(len(y), 0)
    return graph


def _check_series(path: Path, parts: Sequence[Arrays], series: str | None) -> None:
    """Check that graphs are samples or time steps, as users say, or that they say it.

    Raises:
        UserError: They can be both, or no time steps.
    """
    first, timed = parts[0], any(part["x"].ndim == 3 for part in parts)
    shared = all(np.array_equal(part["pos"], first["pos"]) for part in parts)
    solved = any("y" in part for part in parts)
    if series is None and shared and len(parts) > 1 and not (timed or solved):
        given = f"{path} with {len(parts)} graphs without an axis of time in x"
        expected = "to be told whether they are samples, or time steps of one"
        times = {float(np.ravel(part["t"])[0]) for part in parts if "t" in part}
        fitting = len(times) < 2, len(times) != 1  # samples are at the same times
        kinds = [kind for kind, fits in zip(KINDS, fitting, strict=True) if fits]
        todo = f"say it: {' or '.join(option('series', kind) for kind in kinds)}"
        raise UserError(given, expected, todo)
    if series == "time-steps" and (timed or not shared or "y" in first):
        expected = "graphs on the same points, with x without an axis of time and no y"
        todo = "leave y out, or " * ("y" in first) + option("series", "samples")
        raise UserError(f"{path} as time steps", expected, todo)


def _check_alike(path: Path, parts: Sequence[Arrays], as_steps: bool) -> None:
    """Raise a UserError if graphs have other attributes or shapes than the first, or
    other values where all have to have the same.
    """
    first = parts[0]
    steady = not ("y" in first or any(part["x"].ndim == 3 for part in parts))
    same = {*first} - {"x", "forcing", "t"} if as_steps else {"t"}
    for number, part in enumerate(parts):
        odd = part.keys() ^ first.keys()
        both = part.keys() & first.keys()
        odd |= {n for n in same & both if not np.array_equal(part[n], first[n])}
        odd |= {n for n in both if part[n].shape[1:] != first[n].shape[1:]} - {"face"}
        if odd:
            names = ", ".join("its times" if name == "t" else name for name in odd)
            given = f"{path} with graph {number} that differs from the first in {names}"
            todo = "make them alike, or leave that graph out"
            if as_steps or steady:
                other = "samples" if as_steps else "time-steps"
                todo = f"say {option('series', other)}, if they are such"
            raise UserError(given, "the same in each", todo)


def _in_one_sample(steps: Sequence[Arrays]) -> Arrays:
    """The arrays of graphs that are the time steps of one sample."""
    first = steps[0]
    moving = [name for name in ("x", "forcing") if name in first]
    sample = first | {n: np.stack([step[n] for step in steps], 1) for n in moving}
    if "t" in first:
        sample["t"] = np.concatenate([step["t"] for step in steps])
    return sample


def _edge_tensors(
    graphs: Sequence[Data], key: str, as_steps: bool, unread: set[str]
) -> list[torch.Tensor] | None:
    """An attribute of the edges of each graph, of one where graphs are time steps.

    None, and a name more in ``unread``, where only some have it or steps differ in it.
    """
    attributes = [graph.get(key) for graph in graphs]
    values = [value for value in attributes if isinstance(value, torch.Tensor)]
    same = not as_steps or all(torch.equal(value, values[0]) for value in values)
    if len(values) == len(attributes) and same:
        return values[:1] if as_steps else values
    unread |= {key} if any(value is not None for value in attributes) else set()
    return None


def _cells(path: Path, part: Arrays) -> Arrays:
    """The faces of a graph by their type."""
    if "face" not in part:
        return {}
    if (corners := len(part["face"])) not in FACES:
        given = f"{path} with face of shape {part['face'].shape}"
        raise UserError(given, "(3, triangles) or (4, quadrilaterals)", "transpose it")
    return {FACES[corners]: part["face"].T}


def _arrays(
    path: Path, number: int, graph: Data, user_names: Collection[str], unread: set[str]
) -> Arrays:
    """The attributes of a graph by name; names of those left out go to ``unread``.

    Other attributes at points are masks, node types, or among the names of a user.
    """
    attributes: Arrays = {}
    stored = {k: v for k, v in graph.to_dict().items() if v is not None}
    points = len(stored["pos"]) if torch.is_tensor(stored.get("pos")) else -1
    edges = graph.num_edges if graph.num_edges != points else -1
    for key, value in stored.items():
        dense = getattr(value, "layout", torch.strided) == torch.strided
        if key in (*EDGES, "num_nodes"):
            continue
        if not dense or type(value).__name__ == "SparseTensor":  # edges
            unread.add(key)
            continue
        values = np.asarray(on_cpu(value))
        values = values.astype(np.float32) if values.dtype == np.float16 else values
        kind, name = values.dtype.kind, "t" if key in TIMES else key
        at_points = values.ndim > 0 and len(values) == points
        at_edges = values.ndim > 0 and ("edge" in key or len(values) == edges)
        chosen = key in user_names or key == NODE_TYPE
        chosen |= kind == "b" and key not in PARTS
        if name in attributes:
            two = f"{path} with both {key} and another of {', '.join(TIMES)}"
            raise UserError(f"{two} in graph {number}", "one of them", "delete one")
        if name == "t" or (name in READ and kind in "biuf"):
            attributes[name] = values.reshape(-1) if name == "t" else values
        elif name in READ:
            given = f"{path} with {key} of type {values.dtype} in graph {number}"
            todo = "give real and imaginary parts as two components"
            todo = todo if kind == "c" else f"make data.{key} a tensor"
            raise UserError(given, "real numbers", todo)
        elif at_points and chosen and kind in "biuf":
            attributes[name] = _at_points(key, values)
        elif key in PARTS or kind in "US" or (at_edges and key != "batch"):
            unread.add(key)
        elif kind in "biuf" and values.size == 1:
            attributes[name] = values.reshape(())
        else:
            raise _unknown(path, number, key, at_points=at_points)
    if lost := ", ".join({"pos", "x"} - attributes.keys()):
        given = f"{path} with graph {number} without {lost}"
        todo = "set data.pos, coordinates (points, axes), and data.x or data.y"
        raise UserError(given, "graphs with pos and x", todo)
    pos = attributes["pos"]
    return attributes | {"pos": pos.reshape(len(pos), -1)}  # on a line, perhaps


def _at_points(key: str, values: NDArray[Any]) -> NDArray[Any]:
    """Values ``[points, components]``, or ``[points]`` of one or of a node type."""
    values = values.reshape(len(values), -1)
    values = values[:, 0] if values.shape[1] == 1 else values
    one_hot = key == NODE_TYPE and values.ndim == 2 and np.isin(values, (0, 1)).all()
    return values.argmax(1) if one_hot and (values.sum(1) == 1).all() else values


def _unknown(path: Path, number: int, key: str, *, at_points: bool) -> UserError:
    """Return the error about an attribute that would go unread."""
    only = f"attributes {', '.join(READ)}, {NODE_TYPE}, masks of points, "
    only += "and single numbers"
    static = f"call it a static input, {option('columns', f'static={key}')}"
    todo = f"delete data.{key}, or {static if at_points else 'rename it'}"
    if key in ("batch", "ptr"):
        todo = "give the list of graphs that it was made of, to_data_list()"
    return UserError(f"{path} with {key} in graph {number}", only, todo)


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
