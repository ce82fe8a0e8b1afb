"""Graphs between points, such as road networks: from arrays, and from tables."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.checks import as_real, check_distinct, finite
from nfsgeo.data.conventions import (
    EDGE_ROWS,
    EDGE_WEIGHT,
    EDGES,
    Doubles,
    Indices,
    bare_name,
    listed,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.frames import frame_of, values_of
from nfsgeo.errors import UserError

__all__ = ["edge_variables", "graph_source", "table_of", "with_graph"]
__all__ += ["with_graph_of"]

logger = logging.getLogger(__name__)

Graph = tuple[Indices, Doubles | None]  # edges [2, E] and their weights [E]
KERNEL = re.compile(r"(.+):gaussian(?:=(.+))?")
LEAST_WEIGHT = 0.1  # of the kernel: further edges are left out
COLUMNS = "columns from and to, and weight where edges have weights"


def with_graph(fields: Fields, edges: Any, weights: Any = None) -> Fields:
    """Return the fields with a graph between their points.

    Args:
        fields: The fields.
        edges: Sources and targets ``[2, E]``, numbers of points, of all samples or a
            list with those of each.
        weights: Weights ``[E]``, not negative, likewise; None for 1.

    Raises:
        UserError: A shape does not fit, a point does not exist, or a variable of the
            fields has a name of the graph.
    """
    path, several = fields.path, isinstance(edges, (list, tuple))
    several = several and len(edges) > 0 and np.ndim(edges[0]) == 2
    indices = [*edges] if several else [edges]
    every = [*weights] if several and weights is not None else [weights] * len(indices)
    if several and not len(indices) == len(every) == fields.num_samples:
        given = f"edges of {len(indices)} samples and weights of {len(every)}"
        raise UserError(given, f"those of {fields.num_samples}", "give them for each")
    graphs = list[Graph]()
    for sample, (index, weight) in enumerate(zip(indices, every, strict=True)):
        meshes = [sample] if several or not fields.own_meshes else range(len(fields))
        most = min(map(fields.num_points, meshes))
        index = as_real(index, f"edges of {path}")
        pairs = index.ndim == 2 and len(index) == 2 and index.dtype.kind in "iu"
        if not pairs or (index.size and not 0 <= index.min() <= index.max() < most):
            given = f"edges of shape {index.shape} and type {index.dtype} of {path}"
            expected = f"[2, E], whole numbers from 0 to {most - 1}"
            raise UserError(given, expected, "number the points from 0")
        if weight is not None:
            weight = finite(as_real(weight, f"edge weights of {path}"), "edge weights")
            if weight.shape != index.shape[1:] or (weight < 0).any():
                given = f"{path} with edge weights of shape {list(weight.shape)}"
                given += ", some of them negative" * bool((weight < 0).any())
                expected = f"[{index.shape[1]}], a weight of each edge, not negative"
                raise UserError(given, expected, "correct the weights")
            weight = weight.astype(np.float64)
        graphs.append((index.astype(np.int64), weight))
    variables, before = edge_variables(graphs), fields.dataset
    for name in variables.keys() & before.keys():
        if before[name].attrs.get("role") not in ("edges", "rows"):
            given = f"{path} with a graph and a field named {name}"
            raise UserError(given, "another name", "rename the field")
    before = before.drop_vars([EDGES, EDGE_WEIGHT, EDGE_ROWS], errors="ignore")
    return fields.with_dataset(before.assign(variables))


def edge_variables(graphs: Sequence[Graph]) -> dict[str, Variable]:
    """Return the variables of the graph of all samples, or of those of each."""
    first = graphs[0]
    pairs = (pair for graph in graphs for pair in zip(graph, first, strict=True))
    if all(one is other or np.array_equal(one, other) for one, other in pairs):  # type: ignore[arg-type]
        graphs = [first]
    role = {"role": "edges"}
    edges = np.concatenate([index.T for index, _ in graphs])
    variables = {EDGES: Variable(("edge", "end"), edges, role)}
    if first[1] is not None:
        weights = np.concatenate([weight for _, weight in graphs if weight is not None])
        variables[EDGE_WEIGHT] = Variable("edge", weights, role)
    if len(graphs) > 1:
        sizes = [index.shape[1] for index, _ in graphs]
        about = {"sample_dimension": "edge", "role": "rows"}
        variables[EDGE_ROWS] = Variable("sample", sizes, about)
    return variables


def table_of(source: str) -> Path:
    """Return the path of the table that a setting ``data.graph`` names."""
    match = KERNEL.fullmatch(source)
    return Path(match[1] if match else source)


def graph_source(source: str, fields: Fields) -> str:
    """Return the setting with the width of the kernel and from any folder.

    Args:
        source: The setting ``data.graph``.
        fields: The fields with its graph.
    """
    path = str(table_of(source).resolve())
    if not KERNEL.fullmatch(source):
        return path
    return f"{path}:gaussian={fields.dataset[EDGE_WEIGHT].attrs['sigma']!r}"


def with_graph_of(fields: Fields, source: str) -> Fields:
    r"""Return the fields with the graph of a table, a row for each directed edge.

    Columns ``from`` and ``to`` are names of stations, or where points have no names
    their numbers from 0; ``weight`` is optional. Distances ``cost`` or ``distance`` are
    no weights. With ``:gaussian`` behind the name of the table, weights are

    .. math:: w = \exp(-d^2 / \sigma^2)

    as in "Diffusion Convolutional Recurrent Neural Network", with the standard
    deviation of the distances for :math:`\sigma`, or that of ``:gaussian=SIGMA``.
    As in its authors' program, edges of a weight below 0.1 are left out.

    Args:
        fields: The fields, all samples of which are at the same points.
        source: Name of the table.

    Raises:
        UserError: The table lacks a column or has distances alone, or names no points.
    """
    path, kernel = table_of(source), KERNEL.fullmatch(source)
    if not path.is_file():
        raise UserError(f"{path}", "an existing table of edges", "check the name")
    if fields.sample_mesh.any():
        given, expected = f"{path} and samples at other points each", "the same points"
        raise UserError(given, expected, "in Python, from_arrays takes edges of each")
    frame = frame_of(path, dtype=str)
    columns = {bare_name(name): name for name in frame}
    lengths = [columns[name] for name in ("cost", "distance") if name in columns]
    if not {"from", "to"} <= columns.keys() or (kernel and not lengths):
        expected = COLUMNS if not kernel else "columns from, to, and cost or distance"
        raise UserError(f"{path} with columns {listed([*frame])}", expected, "rename")
    if lengths and not kernel and "weight" not in columns:
        raise UserError(
            f"{path} with {lengths[0]}, which is no weight",
            "to be told how weights follow from it",
            f"give {path}:gaussian for exp(-(d/sigma)^2), as the authors of DCRNN do; "
            "or rename it weight, or leave it out for equal weights",
        )
    names = frame[[columns["from"], columns["to"]]].to_numpy(str)
    index, complete = _points_of(path, np.char.strip(names), fields)
    index, frame, weights, sigma = index[:, complete], frame[complete], None, 0.0
    if kernel:
        length = _numbers(path, frame[lengths[0]])
        sigma = float(kernel[2]) if kernel[2] else float(length.std())
        if not sigma > 0:
            given = f"{path} with distances that are all the same"
            raise UserError(given, "a scale", f"give {path}:gaussian=SIGMA")
        weights = np.exp(-((length / sigma) ** 2))
        near = weights >= LEAST_WEIGHT
        index, weights = index[:, near], weights[near]
    elif "weight" in columns:
        weights = _numbers(path, frame[columns["weight"]])
    fields = with_graph(fields, index, weights)
    if kernel:
        fields.dataset[EDGE_WEIGHT].attrs["sigma"] = sigma
    return fields


def _points_of(
    path: Path, names: NDArray[Any], fields: Fields
) -> tuple[Indices, NDArray[np.bool_]]:
    """Numbers of the points ``[2, E]`` at the ends of edges, and which edges have both.

    Args:
        path: The table, for messages.
        names: Names or numbers ``[E, 2]``.
        fields: The fields.
    """
    stations, num = fields.stations(), fields.num_points()
    if not stations:
        numbers = pandas.to_numeric(names.ravel(), errors="coerce")
        fine = np.isin(numbers, np.arange(num))
        if not fine.all():
            given = f"{path} with the point {names.ravel()[~fine][0]!r}"
            expected = f"numbers from 0 to {num - 1}, as points have no names"
            raise UserError(given, expected, "correct it, or name the stations")
        return numbers.astype(np.int64).reshape(-1, 2).T, np.ones(len(names), bool)
    check_distinct(fields.path, stations)
    index = pandas.Index(stations).get_indexer(names.ravel()).reshape(-1, 2)
    complete = (index >= 0).all(axis=1)
    unknown = listed([*dict.fromkeys(names[index < 0])])
    if not complete.any():
        given = f"{path} with edges between {unknown}"
        expected = f"names of the stations of {fields.path}, {listed(stations)}"
        raise UserError(given, expected, "correct the names in one of them")
    if not complete.all():
        text = "%s: left out %d of %d edges, to or from %s, no stations of %s"
        num_out = int((~complete).sum())
        logger.warning(text, path, num_out, len(complete), unknown, fields.path)
    return index.astype(np.int64).T, complete


def _numbers(path: Path, column: pandas.Series) -> Doubles:
    what = f"{path}: column {column.name}"
    values = finite(as_real(values_of(path, column, gaps=False), what), what)
    return np.asarray(values, np.float64)
