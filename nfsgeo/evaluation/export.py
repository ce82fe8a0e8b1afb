"""A trained model as a program, of ``torch.export`` or ONNX, that needs no nfsgeo."""

from __future__ import annotations

import copy
import importlib.util
import io
import logging
import re
import warnings
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export, save

from nfsgeo.data.disk import check_ending
from nfsgeo.errors import UserError
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.csr import pointers
from nfsgeo.models import MixerOperator
from nfsgeo.nn import InterpolationResampling
from nfsgeo.training import Forecaster
from nfsgeo.training.artifacts import write_bytes

__all__ = ["export_run", "program_inputs"]

ENDINGS = {"torch-export": ".pt2", "onnx": ".onnx"}
EXAMPLE_POINTS, EXAMPLE_QUERIES = 23, 17


Format = Literal["torch-export", "onnx"]


def export_run(folder: Path, target: Path, *, format: Format = "torch-export") -> Path:
    """Writes the best model of a run as a program for one sample on any mesh.

    ``torch.export.load(target).module()`` is called with what :func:`program_inputs`
    makes, and returns ``[m, n_out, C]``, in the units of the data. The program does not
    search for neighbours: the graphs are arguments. An ONNX session takes the same
    arguments by name; it cannot hold the complex weights of `nfs-fnet`.

    Args:
        folder: The run's folder, or the name of a model that comes with nfsgeo.
        target: The file to make, ``.pt2`` or ``.onnx``.
        format: ``"torch-export"`` or ``"onnx"``.

    Raises:
        UserError: The folder holds no trained run, its model does not interpolate
            between points and a grid, ONNX lacks an operator, or ``target`` exists or
            has another ending.
    """
    check_ending(target, ENDINGS[format])
    if target.exists():
        raise UserError(f"{target}", "a file that does not exist", "choose another")
    config, forecaster = open_run(find_run(folder), "cpu")
    if forecaster.boundary:
        raise UserError(
            f"{folder}, trained with data.boundary_inputs",
            "a model that takes fields and positions alone",
            "train it without them",
        )
    if forecaster.missing:
        raise UserError(
            f"{folder}, trained on data with missing values",
            "a model that was trained on complete fields",
            "train it on such data; missing inputs are filled in outside of programs",
        )
    lead = forecaster.lead_times
    if forecaster.forcings is not None:
        raise UserError(
            f"{folder}, trained with {'lead times' if lead else 'forcings'}",
            "a model whose inputs are fields and a coefficient alone",
            "use nfsgeo.load(run).predict(x, pos, "
            f"{'times' if lead else 'forcing'}=...)",
        )
    model = forecaster.model
    if not isinstance(model, MixerOperator) or not isinstance(
        model.resampling, InterpolationResampling
    ):
        raise UserError(
            f"a run of {config.model.name}",
            "nfs or one of its variants (nfs-...), whose graphs can be arguments",
            "export a run of these",
        )
    domain = model.problem.domain
    lower, lengths = (
        torch.tensor(ends, dtype=torch.float64)
        for ends in (domain.lower, domain.lengths)
    )
    # Interpolating the last time step needs some neighbours; any points will do.
    pos, query_pos = (
        lower + lengths * torch.rand(num, domain.dim)
        for num in (EXAMPLE_POINTS, EXAMPLE_QUERIES)
    )
    for each in (pos, query_pos):
        while len(hidden := (~domain.contains(each)).nonzero()):
            each[hidden] = lower + lengths * torch.rand(1, domain.dim)
    x = torch.zeros(EXAMPLE_POINTS, model.problem.n_in, model.problem.in_components)
    inputs = program_inputs(forecaster, x, pos, query_pos)
    with torch.no_grad():
        program = export(_Program(forecaster), inputs, dynamic_shapes=_sizes())
    if format == "onnx":
        write_bytes(target, _to_onnx(program, f"a run of {config.model.name}"))
        return target
    content = io.BytesIO()
    save(program, content)
    write_bytes(target, content.getbuffer())
    return target


def program_inputs(
    forecaster: Forecaster, x: Tensor, pos: Tensor, query_pos: Tensor | None = None
) -> tuple[Tensor, ...]:
    """The arguments of an exported program, for one sample.

    Args:
        forecaster: The model that was exported, from :func:`nfsgeo.load`.
        x: Observed fields ``[n, n_in, F]``, in the units of the data.
        pos: Where they were observed ``[n, d]``.
        query_pos: Where to predict ``[m, d]``; None for ``pos``.

    Returns:
        ``x``, ``pos`` and ``query_pos`` in the normalised domain, then ``edge_index
        [2, E]``, ``displacement [E, d]`` and ``weight [E]`` of three graphs: from the
        points to the nodes of the grid, from these to the queries, from the points to
        the queries.

    Raises:
        UserError: A point is outside the domain.
    """
    graphs = forecaster.connect(pos, query_pos=query_pos)
    if (last := graphs.edges.get("last")) is None:
        # Without queries, the only neighbour of every point is itself.
        itself = torch.arange(len(graphs.pos)).expand(2, -1)
        last = BipartiteGraph.from_edges(itself, (graphs.pos, graphs.pos))
    edges = [graphs.edges["up"], graphs.edges["down"], last]
    tensors = [(g.edge_index, g.displacement, g.base_weight) for g in edges[:2]]
    # Weights of kriging may be large and cancel.
    tensors.append((last.edge_index, last.displacement, last.base_weight.double()))
    return (x, graphs.pos, graphs.queries, *tensors[0], *tensors[1], *tensors[2])


class _Program(nn.Module):
    """A forecaster that takes its graphs as tensors."""

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        self.model = copy.deepcopy(forecaster.model)
        self.inputs, self.outputs = forecaster.inputs, forecaster.outputs
        self.residual, self.damped = forecaster.residual, forecaster.damped
        self.expected = torch.zeros((), dtype=torch.float64)
        if forecaster.expected is not None:
            self.expected = forecaster.expected
        # The graphs among the nodes of the grid do not change.
        resampling = self.model.resampling
        assert isinstance(resampling, InterpolationResampling)
        self.nodes = resampling.among_nodes(torch.device("cpu"))
        self.num_nodes = resampling.grid.size(0)

    def forward(
        self,
        x: Tensor,
        pos: Tensor,
        query_pos: Tensor,
        up_edges: Tensor,
        up_displacement: Tensor,
        up_weight: Tensor,
        down_edges: Tensor,
        down_displacement: Tensor,
        down_weight: Tensor,
        last_edges: Tensor,
        last_displacement: Tensor,
        last_weight: Tensor,
    ) -> Tensor:
        points, queries = pos.size(0), query_pos.size(0)
        up = up_edges, up_displacement, up_weight
        down = down_edges, down_displacement, down_weight
        edges = {
            "up": _graph(*up, points, self.num_nodes),
            "down": _graph(*down, self.num_nodes, queries),
            **self.nodes,
        }
        graphs = Graphs(pos, (points,), query_pos, (queries,), edges)
        field = self.model.predict(self.inputs.normalise(x).to(x.dtype), graphs)
        field = self.outputs.denormalise(field).to(x.dtype)
        if not self.residual:
            return field
        source, target = last_edges
        mean = self.expected
        last = x[:, -1, : field.size(-1)].double() - mean
        near = last_weight.to(last.dtype)[:, None] * last[source]
        there = near.new_zeros(queries, near.size(1))
        last = (mean + there.index_add(0, target, near)).to(field.dtype).unsqueeze(1)
        if self.damped is not None:
            last = self.damped(last, self.inputs.mean[: last.size(-1)].to(last))
        return field + last


def _graph(
    edge_index: Tensor,
    displacement: Tensor,
    weight: Tensor,
    num_source: int,
    num_target: int,
) -> BipartiteGraph:
    ptr = pointers(edge_index[1], num_target)
    return BipartiteGraph(edge_index, ptr, displacement, weight, num_source, num_target)


def _sizes() -> tuple[dict[int, Dim], ...]:
    """The sizes of the inputs that may change."""
    points, queries = Dim("points", min=2), Dim("queries", min=2)
    sizes: list[dict[int, Dim]] = [{0: points}, {0: points}, {0: queries}]
    for name in ("up", "down", "last"):
        edges = Dim(f"{name}_edges", min=2)
        sizes += [{1: edges}, {0: edges}, {0: edges}]
    return tuple(sizes)


def _to_onnx(program: ExportedProgram, name: str) -> bytes:
    """The content of an ``.onnx`` file; messages call the model ``name``."""
    if importlib.util.find_spec("onnxscript") is None:
        raise UserError(
            "--format onnx",
            "the package onnxscript, which makes ONNX files",
            "pip install 'nfsgeo[onnx]'",
        )
    disabled = logging.root.manager.disable
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # The exporter warns of packages that it does not need here.
            warnings.simplefilter("ignore")
            logging.disable(logging.WARNING)
            made = torch.onnx.export(program, (), dynamo=True, verbose=False)
    except torch.onnx.OnnxExporterError as error:
        raise UserError(
            f"{name}, which needs {_lacking(error)}",
            "operators that ONNX has, as for nfs and its variants but nfs-fnet",
            "leave out --format onnx",
        ) from error
    finally:
        logging.disable(disabled)
    assert made is not None
    return made.model_proto.SerializeToString()


def _lacking(error: BaseException) -> str:
    """The operator at which the conversion stopped."""
    found = re.search(r"op='([\w.]+)'.*?(complex)?-valued|op='([\w.]+)'", str(error))
    if found is None:
        return "an operator that it does not name"
    operator = found[1] or found[3]
    return f"{operator} of complex numbers" if found[2] else operator
