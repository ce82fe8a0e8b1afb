"""Layers inside PyTorch Geometric's containers, compiled and exported."""

from functools import partial

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.export import Dim, export
from torch_geometric.data import Batch, Data, HeteroData

from nfsgeo.geometry import BipartiteGraph, Domain, GraphTensors
from nfsgeo.geometry.transforms import (
    GRID_TO_POINT,
    POINT_TO_GRID,
    PointsAndGrid,
    graph_between,
)
from nfsgeo.nn import (
    ChannelKernel,
    ChebConvGRU,
    DiffusionGRU,
    EdgeNetwork,
    FieldLayerNorm,
    KernelInterpolation,
    MixerBlock,
    Pointwise,
    SpectralConv,
    node_graph,
    scaled_laplacian,
)
from nfsgeo.testing import assert_same

CHANNELS, STEPS, SHAPE, RADIUS = 4, 2, (6, 6), 0.3
SIZES = (25, 40, 11)
SLOW = pytest.mark.slow
DOMAIN = Domain.unit(2)
TRANSFORM = PointsAndGrid(DOMAIN, SHAPE, RADIUS)


def samples() -> list[HeteroData]:
    points = [
        Data(x=torch.randn(n, STEPS, CHANNELS), pos=torch.rand(n, 2)) for n in SIZES
    ]
    return [TRANSFORM(data) for data in points]


def interpolation(*, fused: bool = True) -> KernelInterpolation:
    network = EdgeNetwork(2, 0, 8, scale=RADIUS)
    kernel = ChannelKernel(CHANNELS, network)
    return KernelInterpolation(kernel, fused=fused, domain=DOMAIN)


def test_in_a_hetero_conv(device):
    """Fields go by node type, graphs by edge type; a batch equals the loop."""
    ways = {POINT_TO_GRID: interpolation(), GRID_TO_POINT: interpolation()}
    model, data = pyg.HeteroConv(ways).to(device), [d.to(device) for d in samples()]
    for each in data:
        each["grid"].x = torch.randn(36, STEPS, CHANNELS, device=device)
    expected = {
        way[2]: torch.cat(
            [layer(d[way[0]].x, d[way[0]].pos, graph_between(d, way)) for d in data]
        )
        for way, layer in ways.items()
    }
    batch = Batch.from_data_list(data)
    for graphs in ({t: graph_between(batch, t) for t in ways}, batch.edge_index_dict):
        found = model(batch.x_dict, batch.pos_dict, graphs)
        torch.testing.assert_close(found, expected)
    sum(each.square().sum() for each in found.values()).backward()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
def test_compiles_with_gradients_on_meshes_of_any_size(fused):
    """What is written out is one graph; sparse products break it, and still agree."""
    layer = interpolation(fused=fused).double()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=not fused)
    for data in samples():
        point, graph = data["point"], graph_between(data, POINT_TO_GRID)
        calls = [partial(f, pos=point.pos, edge_index=graph) for f in (layer, compiled)]
        assert_same(*calls, (point.x.double(),), layer.parameters())


@pytest.mark.parametrize("fused", [True, pytest.param(False, marks=SLOW)])
def test_exports_with_meshes_of_any_size(fused):
    first, *others = (
        (d["point"].x, d["point"].pos, graph_between(d, POINT_TO_GRID).tensors())
        for d in samples()
    )
    points, edges, ends = Dim("points"), Dim("edges"), Dim("ends", min=3)
    of_graph = GraphTensors({1: edges}, {0: ends}, {0: edges}, {0: edges})
    sizes, model = ({0: points}, {0: points}, of_graph), interpolation(fused=fused)
    with torch.no_grad():
        program = export(model, first, dynamic_shapes=sizes).module()
    for inputs in others:
        torch.testing.assert_close(program(*inputs), model(*inputs))


class CellFromTensors(nn.Module):
    """A cell that takes its graph as plain tensors, for export."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self, x: Tensor, h: Tensor, edge_index: Tensor, ptr: Tensor, weight: Tensor
    ) -> Tensor:
        nowhere = weight.new_empty(weight.size(0), 0)
        graph = BipartiteGraph(edge_index, ptr, nowhere, weight, x.size(0), x.size(0))
        one = isinstance(self.cell, ChebConvGRU)
        return self.cell(x, h, graph if one else (graph, graph))


def cell_inputs(num_nodes: int) -> tuple[Tensor, ...]:
    """On a ring."""
    forth = torch.stack([torch.arange(num_nodes), torch.arange(num_nodes).roll(-1)])
    graph = node_graph(torch.cat([forth, forth.flip(0)], dim=1), num_nodes)
    fields = torch.randn(num_nodes, 3), torch.randn(num_nodes, CHANNELS)
    return *fields, graph.edge_index, graph.ptr, scaled_laplacian(graph).base_weight


@pytest.mark.parametrize("kind", [pytest.param(ChebConvGRU, marks=SLOW), DiffusionGRU])
def test_cells_export_with_graphs_of_any_size(kind):
    model, inputs = CellFromTensors(kind(3, CHANNELS)), cell_inputs
    nodes, edges, ends = Dim("nodes", min=4), Dim("edges", min=4), Dim("ends", min=4)
    sizes = ({0: nodes}, {0: nodes}, {1: edges}, {0: ends}, {0: edges})
    with torch.no_grad():
        program = export(model, inputs(9), dynamic_shapes=sizes).module()
    for num_nodes in (7, 9, 20):
        given = inputs(num_nodes)
        torch.testing.assert_close(program(*given), model(*given))


@pytest.mark.slow
def test_the_mixer_block_compiles_and_exports_at_any_batch():
    mix, residual = SpectralConv(4, 4, (3, 3)), Pointwise(4, 4)
    norm = FieldLayerNorm(4)
    block = MixerBlock(mix, norm=norm, residual=residual, activation=nn.GELU())
    x = torch.randn(2, CHANNELS, 8, 8)
    torch.testing.assert_close(torch.compile(block, backend="aot_eager")(x), block(x))
    with torch.no_grad():
        program = export(block, (x,), dynamic_shapes=({0: Dim("batch")},)).module()
    x = torch.randn(5, CHANNELS, 8, 8)
    torch.testing.assert_close(program(x), block(x))


def test_a_layer_from_numbers_of_channels(tmp_path):
    data = samples()[0]
    graph, pos = graph_between(data, POINT_TO_GRID), data["point"].pos
    x = torch.randn(len(pos), 3)
    layer = KernelInterpolation(3, CHANNELS, dim=2, scale=RADIUS)
    assert layer(x, pos, graph).shape == (graph.num_target, CHANNELS)
    composed = KernelInterpolation(layer.kernel)
    torch.testing.assert_close(
        composed(layer.lift(x), pos, graph), layer(x, pos, graph)
    )
    lazy = KernelInterpolation(-1, CHANNELS, scale=RADIUS)
    lazy(x, pos, graph)
    lazy.load_state_dict(layer.state_dict())
    torch.testing.assert_close(lazy(x, pos, graph), layer(x, pos, graph))
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    weight = layer.lift.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(layer.lift.weight, weight)
    same = KernelInterpolation(CHANNELS, scale=RADIUS)
    assert same.lift is None and same.kernel.channels == CHANNELS
    both = KernelInterpolation((same.kernel), bias=False)
    assert both.bias is None
    for wrong in ((same.kernel, 4), (-1,)):
        with pytest.raises(ValueError, match="expected"):
            KernelInterpolation(*wrong)


def test_functional_transforms_of_torch():
    """Per-sample gradients, with messages in place of sparse products."""
    data = samples()[0]
    graph, pos = graph_between(data, POINT_TO_GRID), data["point"].pos
    layer = KernelInterpolation(3, CHANNELS, scale=RADIUS, fused=False)
    weights, fields = dict(layer.named_parameters()), torch.randn(4, len(pos), 3)

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return (
            torch.func.functional_call(layer, weights, (x, pos, graph)).square().sum()
        )

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, fields)
    for number, x in enumerate(fields):
        layer.zero_grad()
        loss(dict(layer.named_parameters()), x).backward()
        for name, parameter in layer.named_parameters():
            torch.testing.assert_close(each[name][number], parameter.grad)
