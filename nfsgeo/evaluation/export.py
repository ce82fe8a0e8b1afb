"""A trained model as a program, of ``torch.export`` or ONNX, that needs no nfsgeo."""

from __future__ import annotations

import copy
import io
import logging
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export, save

from nfsgeo.errors import UserError, require
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.files import check_target
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.in_memory import example
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.bipartite import pointers
from nfsgeo.models import MixerOperator
from nfsgeo.nn import InterpolationResampling
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.training.run_paths import Run

__all__ = ["export_run", "program_inputs"]

ENDINGS = {"torch-export": ".pt2", "onnx": ".onnx"}
EXAMPLE_POINTS, EXAMPLE_QUERIES = 23, 17
# Graphs that are arguments, where a model has them: sources and targets.
ENDS = {
    "up": ("points", "nodes"),
    "down": ("nodes", "queries"),
    "near": ("points", "points"),
    "near_queries": ("points", "queries"),
    "own": ("points", "queries"),
    "last": ("points", "queries"),
    "imposed": ("points", "queries"),
    "neighbours": ("points", "points"),
}
# Positions that are arguments, where graphs have them.
PLACES = "boundary", "nodes", "latent", "query_latent"
PARTS = {"edges": "edge_index", "displacement": "displacement", "weight": "base_weight"}


def export_run(
    run: Run,
    target: Path | str,
    *,
    format: Literal["torch-export", "onnx"] = "torch-export",
) -> Path:
    """Write the best model of a run as a program for one sample on any mesh.

    ``torch.export.load(target).module()`` is called with what :func:`program_inputs`
    makes, and returns ``[m, n_out, C]``, in the units of the data. It is the whole
    :class:`nfsgeo.forecast.Forecaster`, but for the search for neighbours: graphs are
    arguments. Of a model of lead times it predicts one. An ONNX session takes the same
    arguments by name.

    Args:
        run: From :func:`nfsgeo.fit`, its folder, or a name such as ``"ns-small"``.
        target: The file to make, ``.pt2`` or ``.onnx``.
        format: ``"torch-export"`` or ``"onnx"``.

    Raises:
        UserError: The folder holds no trained run, its model does not interpolate
            between points and a grid, ONNX lacks an operator, or ``target`` exists or
            has another ending.
    """
    if format not in ENDINGS:
        raise UserError(f"format {format!r}", " or ".join(ENDINGS), "choose one")
    target = Path(target)
    check_target(target, ENDINGS[format])
    loaded = open_run(run, "cpu")
    config, forecaster = loaded.config, loaded.forecaster
    for name, addition in loaded.additions.items():
        companion = addition.companion(forecaster, forecaster.task.n_out, None)
        if companion is not None and companion.suffixes:
            logging.getLogger(__name__).warning("%s: exported without %s", run, name)
    model, name = forecaster.model, f"a run of {config.model.name}"
    if not isinstance(model, MixerOperator) or not isinstance(
        model.resampling, InterpolationResampling
    ):
        raise UserError(
            name,
            "nfs or one of its variants (nfs-...), whose graphs can be arguments",
            "export a run of these",
        )
    domain, num = model.problem.domain, EXAMPLE_POINTS + EXAMPLE_QUERIES
    pos = torch.rand(1000 * num, domain.dim, dtype=torch.float64)
    pos = pos.new_tensor(domain.lower) + pos.new_tensor(domain.lengths) * pos
    pos, query_pos = pos[domain.contains(pos)][:num].tensor_split([EXAMPLE_POINTS])
    example_inputs = example(forecaster.task, EXAMPLE_POINTS)
    inputs = _inputs(
        forecaster, example_inputs.pop("x"), pos, query_pos, example_inputs
    )
    program = _Program(forecaster, model.resampling, list(inputs))
    sizes = [_sizes(*argument) for argument in inputs.items()]
    with torch.no_grad():
        made = export(
            program,
            tuple(inputs.values()),
            dynamic_shapes=(*sizes[:3], tuple(sizes[3:])),
        )
    if format == "onnx":
        write_bytes(target, _to_onnx(made, tuple(inputs), name))
    else:
        save(made, content := io.BytesIO())
        write_bytes(target, content.getbuffer())
    return target


def program_inputs(
    forecaster: Forecaster,
    x: Tensor,
    pos: Tensor,
    query_pos: Tensor | None = None,
    **covariates: Tensor,
) -> tuple[Tensor, ...]:
    """The arguments of an exported program, for one sample.

    Args:
        forecaster: The model that was exported, from :func:`nfsgeo.load`.
        x: Observed fields ``[n, n_in, F]``, in the units of the data, as the model was
            trained with them.
        pos: Where they were observed ``[n, d]``.
        query_pos: Where to predict ``[m, d]``; None for ``pos``.
        covariates: Forcings and times by the names that
            :meth:`nfsgeo.forecast.Forecaster.forward` gives them.

    Returns:
        ``x``, ``pos`` and ``query_pos`` in the normalised domain, then ``edge_index
        [2, E]``, ``displacement [E, d]`` and ``weight [E]`` of graphs: from the points
        to the nodes of the grid and from these to the queries; of learned messages,
        from the points to the points and to the queries, and of what the points have of
        their own; from the points to the queries, of residual prediction and of imposed
        values; among the points, with gaps in the data; from the stations of a
        climatology to the points and the queries. Then, where the model has them, the
        boundary inputs ``[n, 1 + d]``, the nodes of the grid, the latent coordinates of
        the points and of the queries, and ``covariates``.

    Raises:
        UserError: A point is outside the domain.
    """
    return tuple(_inputs(forecaster, x, pos, query_pos, covariates).values())


def _inputs(
    forecaster: Forecaster,
    x: Tensor,
    pos: Tensor,
    query_pos: Tensor | None,
    covariates: dict[str, Tensor],
) -> dict[str, Tensor]:
    """The arguments by name, see :func:`program_inputs`."""
    if "query_static" in covariates:
        raise UserError(
            "query_static for an exported program",
            "static inputs at the observed points alone, which it interpolates",
            "leave it out, or predict with nfsgeo",
        )
    graphs = forecaster.connect(pos, query_pos=query_pos)
    edges = dict(graphs.edges)
    names = [*ENDS, *_transform_ends(forecaster)]
    if query_pos is None:
        # Without queries, the only neighbour of every point is itself.
        itself = torch.arange(len(graphs.pos)).expand(2, -1)
        identity = BipartiteGraph.from_edges(itself, (graphs.pos, graphs.pos))
        point_edges = ["own"] * ("near" in edges)
        needed = (name for step in forecaster.transforms for name in step.query_edges)
        edges |= dict.fromkeys([*needed, *point_edges], identity)
        for name in names:
            if (observed := name.removesuffix("_queries")) in edges:
                edges.setdefault(name, edges[observed])
    if "last" in edges:  # weights of kriging may be large and cancel
        weight = edges["last"].base_weight.double()
        edges["last"] = replace(edges["last"], base_weight=weight)
    # A program takes numbers of the types that it was exported with.
    inputs = {"x": x.float(), "pos": graphs.pos, "query_pos": graphs.queries}
    covariates = {
        k: v.double() if k == "times" else v.float() for k, v in covariates.items()
    }
    for name in (name for name in names if name in edges):
        for part, attribute in PARTS.items():
            inputs[f"{name}_{part}"] = getattr(edges[name], attribute)
    for name in PLACES:
        if (place := getattr(graphs, name)) is not None:
            inputs[name] = place
    if "latent" in inputs and query_pos is None:
        inputs["query_latent"] = inputs["latent"]
    # One tensor for two arguments would be one argument of the program.
    inputs = {name: tensor.clone() for name, tensor in inputs.items()}
    return inputs | dict(sorted(covariates.items()))


class _Program(nn.Module):
    """A forecaster that takes its graphs as tensors, for one sample."""

    def __init__(
        self, forecaster: Forecaster, nodes: InterpolationResampling, names: list[str]
    ) -> None:
        super().__init__()
        self.forecaster, self.names = copy.deepcopy(forecaster), names
        # The graphs among the nodes of the grid do not change.
        self.nodes = nodes.among_nodes(torch.device("cpu"))
        self.fixed = {"nodes": nodes.grid.size(0)}
        for transform in forecaster.transforms:
            self.fixed |= {name: num for name, (num, _) in transform.sources.items()}
        self.ends = ENDS | _transform_ends(forecaster)

    def forward(
        self, x: Tensor, pos: Tensor, query_pos: Tensor, *rest: Tensor
    ) -> Tensor:
        tensors = dict(zip(self.names[3:], rest, strict=True))
        sizes = {"points": pos.size(0), "queries": query_pos.size(0)}
        sizes |= self.fixed
        edges = dict(self.nodes)
        for name, (source, target) in self.ends.items():
            if f"{name}_edges" in tensors:
                index, delta, weight = (tensors.pop(f"{name}_{part}") for part in PARTS)
                ptr, num = pointers(index[1], sizes[target]), sizes[source]
                edges[name] = BipartiteGraph(
                    index, ptr, delta, weight, num, sizes[target]
                )
        nums = (sizes["points"],), (sizes["queries"],)
        places: dict[str, Any] = {name: tensors.pop(name, None) for name in PLACES}
        graphs = Graphs(pos, nums[0], query_pos, nums[1], edges, **places)
        prediction: Tensor = self.forecaster(x, graphs=graphs, **tensors)
        return prediction.to(x.dtype)


def _transform_ends(forecaster: Forecaster) -> dict[str, tuple[str, str]]:
    """Return the ends of graphs from points that transforms keep, by name."""
    sources = (transform.sources.items() for transform in forecaster.transforms)
    return {name: (name, end) for name, (_, end) in chain.from_iterable(sources)}


def _sizes(name: str, tensor: Tensor) -> dict[int, Dim]:
    """The axes of an argument whose sizes may change."""
    graph, _, part = name.rpartition("_")
    if part in PARTS:
        # To each query point one is imposed.
        edges = "queries" if graph == "imposed" else f"{graph}_edges"
        return {int(part == "edges"): Dim(edges, min=2)}
    if name == "nodes":
        return {}
    points = "queries" if name.startswith("query_") else "points"
    return {0: Dim(points, min=2)} if tensor.ndim > 1 else {}


def _to_onnx(program: ExportedProgram, inputs: Sequence[str], name: str) -> bytes:
    """The content of an ``.onnx`` file; messages call the model ``name``."""
    require("onnxscript", "--format onnx", "onnx")
    disabled = logging.root.manager.disable
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # The exporter warns of packages that it does not need here.
            warnings.simplefilter("ignore")
            logging.disable(logging.WARNING)
            made = torch.onnx.export(
                program, (), dynamo=True, verbose=False, input_names=inputs
            )
    except torch.onnx.OnnxExporterError as error:
        operator = re.search(r"op='([\w.]+)'", str(error))
        raise UserError(
            f"{name}, which needs {operator[1] if operator else 'another operator'}",
            "operators that ONNX has, none of complex numbers as for nfs-fnet",
            "leave out --format onnx",
        ) from error
    finally:
        logging.disable(disabled)
    assert made is not None
    return made.model_proto.SerializeToString()
