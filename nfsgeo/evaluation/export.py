"""A trained model as a program, of ``torch.export`` or ONNX, that needs no nfsgeo."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.export import Dim, export, save

from nfsgeo.data.layout import check_ending
from nfsgeo.errors import UserError
from nfsgeo.evaluation.export_onnx import to_onnx
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.geometry import BipartiteGraph, bipartite_graph
from nfsgeo.models import MixerOperator
from nfsgeo.nn import InterpolationResampling, SpectralConv
from nfsgeo.nn.fixed_interpolation import none_in_reach, spline_graph
from nfsgeo.training import Forecaster
from nfsgeo.training.artifacts import write_bytes

__all__ = ["export_run", "program_inputs"]

ENDINGS = {"torch-export": ".pt2", "onnx": ".onnx"}
EXAMPLE_POINTS, EXAMPLE_QUERIES = 23, 17


Format = Literal["torch-export", "onnx"]


def export_run(folder: Path, target: Path, *, format: Format = "torch-export") -> Path:
    """Writes the best model of a run as a program for one sample on any mesh.

    ``torch.export.load(target).module()`` is called with what :func:`program_inputs`
    makes, and returns ``[m, n_out, C]``, in the units of the data. Searching
    neighbours is no part of it: the graphs are arguments. A session of ONNX takes the
    same, by the names of the arguments; the complex weights of `nfs-fnet` are
    nothing that it has.

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
    model = forecaster.model
    if not isinstance(model, MixerOperator) or not isinstance(
        model.resampling, InterpolationResampling
    ):
        raise UserError(
            f"a run of {config.model.name}",
            "nfs or one of its kin (nfs-...), whose graphs can be arguments",
            "export a run of these",
        )
    domain = model.problem.domain
    lower, lengths = torch.tensor(domain.lower), torch.tensor(domain.lengths)
    # Interpolation of the last record needs some neighbours; any points will do.
    pos = lower + lengths * torch.rand(EXAMPLE_POINTS, domain.dim)
    query_pos = lower + lengths * torch.rand(EXAMPLE_QUERIES, domain.dim)
    x = torch.zeros(EXAMPLE_POINTS, model.problem.n_in, model.problem.in_components)
    kind = forecaster.inputs.mean.dtype
    inputs = program_inputs(forecaster, x.to(kind), pos.to(kind), query_pos.to(kind))
    with torch.no_grad():
        program = export(_Program(forecaster), inputs, dynamic_shapes=_sizes())
    if format == "onnx":
        write_bytes(target, to_onnx(program, f"a run of {config.model.name}"))
        return target
    content = io.BytesIO()
    save(program, content)
    write_bytes(target, content.getbuffer())
    return target


def program_inputs(
    forecaster: Forecaster, x: Tensor, pos: Tensor, query_pos: Tensor | None = None
) -> tuple[Tensor, ...]:
    """What an exported program is called with, for one sample.

    Args:
        forecaster: The model that was exported, from :func:`nfsgeo.load`.
        x: Observed fields ``[n, n_in, F]``, in the units of the data.
        pos: Where they were observed ``[n, d]``.
        query_pos: Where to predict ``[m, d]``; None for ``pos``.

    Returns:
        ``x``, ``pos``, ``query_pos``, then ``edge_index [2, E]``, ``displacement
        [E, d]`` and ``weight [E]`` of three graphs: from the points to the nodes of
        the grid, from these to the queries, from the points to the queries.

    Raises:
        UserError: A point is outside the domain.
    """
    resampling = forecaster.model.resampling
    assert isinstance(resampling, InterpolationResampling)
    grid, graphs, domain = resampling.grid, resampling.graphs, resampling.graphs.domain
    up = graphs.points_to_grid(pos, None, grid)
    if query_pos is None:
        query_pos = pos
        # Every point is its own only neighbour.
        last = bipartite_graph(pos, pos, none_in_reach(domain), domain)
    else:
        last = spline_graph(pos, query_pos, domain)
    down = graphs.grid_to_points(grid, query_pos, None)
    edges = [(g.edge_index, g.displacement, g.weight) for g in (up, down, last)]
    return (x, pos, query_pos, *edges[0], *edges[1], *edges[2])


class _Given:
    """The graphs of one call, in place of a cache that searches them."""

    up: BipartiteGraph
    down: BipartiteGraph
    nodes: BipartiteGraph

    def points_to_grid(self, *_: object) -> BipartiteGraph:
        return self.up

    def grid_to_points(self, *_: object, num_samples: int) -> BipartiteGraph:
        return self.down

    def points_to_points(self, *_: object) -> BipartiteGraph:
        return self.nodes


class _AlongGiven(InterpolationResampling):
    """Interpolation along given graphs."""

    graphs: _Given  # type: ignore[assignment]

    def __init__(self, original: InterpolationResampling) -> None:
        cache = original.graphs
        super().__init__(
            original.to_grid,
            original.from_grid,
            cache.domain,
            original.shape,
            cache.radius,
            kernel_at=original.kernel_at,
        )
        self.grid = original.grid
        self.graphs = _Given()
        self.graphs.nodes = cache.points_to_points(self.grid, None)


class _Program(nn.Module):
    """A forecaster that is given its graphs as tensors."""

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        model = copy.deepcopy(forecaster.model)
        assert isinstance(model.resampling, InterpolationResampling)
        model.resampling = self.resampling = _AlongGiven(model.resampling)
        for layer in model.modules():
            if isinstance(layer, SpectralConv):
                layer.hold_real_weights()
        self.model = model
        self.inputs, self.outputs = forecaster.inputs, forecaster.outputs
        self.predicts_change = forecaster.changes_in is not None

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
        nodes = self.resampling.grid.size(0)
        self.resampling.graphs.up = _graph(
            up_edges, up_displacement, up_weight, pos.size(0), nodes
        )
        self.resampling.graphs.down = _graph(
            down_edges, down_displacement, down_weight, nodes, query_pos.size(0)
        )
        field = self.model(self.inputs.normalise(x), pos, query_pos=query_pos)
        field = self.outputs.denormalise(field)
        if not self.predicts_change:
            return field
        source, target = last_edges
        last = x[:, -1, : field.size(-1)]
        near = last_weight.to(last.dtype)[:, None] * last[source]
        there = near.new_zeros(query_pos.size(0), near.size(1))
        return field + there.index_add(0, target, near).unsqueeze(1)


def _graph(
    edge_index: Tensor,
    displacement: Tensor,
    weight: Tensor,
    num_source: int,
    num_target: int,
) -> BipartiteGraph:
    degree = edge_index.new_zeros(num_target)
    degree = degree.index_add(0, edge_index[1], torch.ones_like(edge_index[1]))
    ptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    return BipartiteGraph(edge_index, ptr, displacement, weight, num_source, num_target)


def _sizes() -> tuple[dict[int, Dim], ...]:
    """Which sizes of the inputs may change."""
    points, queries = Dim("points", min=2), Dim("queries", min=2)
    sizes: list[dict[int, Dim]] = [{0: points}, {0: points}, {0: queries}]
    for name in ("up", "down", "last"):
        edges = Dim(f"{name}_edges", min=2)
        sizes += [{1: edges}, {0: edges}, {0: edges}]
    return tuple(sizes)
