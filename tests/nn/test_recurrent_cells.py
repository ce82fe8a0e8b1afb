"""Recurrent cells against their published equations, and torch-geometric-temporal's.

That package imports libraries that must be compiled, so the files of the three cells
are loaded by themselves: ``pip install --no-deps torch-geometric-temporal`` will do.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.utils import to_dense_adj

from nfsgeo.errors import UserError
from nfsgeo.nn import (
    AdaptiveGRU,
    ChebConvGRU,
    DiffusionGRU,
    node_graph,
    scaled_laplacian,
    transition_matrices,
)
from nfsgeo.nn.graph_shift import shifted
from nfsgeo.testing import assert_same

NODES, INPUTS, HIDDEN = 12, 3, 5
NAMES = ("z", "r", "h")


def random_edges(*, symmetric: bool = True) -> Tensor:
    """Of a random graph without self-loops, every node with an edge, sorted."""
    adjacency = torch.rand(NODES, NODES) < 0.3
    adjacency |= torch.eye(NODES, dtype=torch.bool).roll(1, 0)
    if symmetric:
        adjacency |= adjacency.T.clone()
    adjacency.fill_diagonal_(False)
    return adjacency.nonzero().T


def fields(samples: int = 1) -> tuple[Tensor, Tensor]:
    num = samples * NODES
    return torch.randn(num, INPUTS), torch.randn(num, HIDDEN)


def awaken(cell: nn.Module) -> nn.Module:
    """Biases that start at zero would hide where they go."""
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    return cell


def written_out(
    x: Tensor, h: Tensor, gate: Callable[[int, Tensor, Tensor], Tensor]
) -> Tensor:
    """A gated recurrent unit, given what goes into each of its three gates."""
    z, r = torch.sigmoid(gate(0, x, h)), torch.sigmoid(gate(1, x, h))
    return z * h + (1 - z) * torch.tanh(gate(2, x, r * h))


def test_chebyshev_cell_is_its_equations():
    cell, edges = awaken(ChebConvGRU(INPUTS, HIDDEN)), random_edges()
    adjacency = to_dense_adj(edges, max_num_nodes=NODES)[0]
    degree = adjacency.sum(1)
    laplacian = torch.eye(NODES) - adjacency / (degree[:, None] * degree).sqrt()
    scaled = laplacian - torch.eye(NODES)

    def convolve(part: nn.Module, gate: int, x: Tensor) -> Tensor:
        columns = slice(gate * HIDDEN, (gate + 1) * HIDDEN)
        first, second = part.weight[..., columns]
        return x @ first + scaled @ x @ second + part.bias[columns]

    def gate(number: int, x: Tensor, h: Tensor) -> Tensor:
        of_h = (cell.gates, number) if number < 2 else (cell.candidate, 0)
        return convolve(cell.inputs, number, x) + convolve(*of_h, h)

    laplacian = scaled_laplacian(node_graph(edges, NODES))
    assert_same(
        lambda x, h: cell(x, h, laplacian),
        lambda x, h: written_out(x, h, gate),
        fields(),
        cell.parameters(),
    )


@pytest.mark.parametrize("symmetric", [True, False])
def test_diffusion_cell_is_its_equations(symmetric):
    cell = awaken(DiffusionGRU(INPUTS, HIDDEN))
    edges = random_edges(symmetric=symmetric)
    adjacency = to_dense_adj(edges, max_num_nodes=NODES)[0]
    along = (adjacency / adjacency.sum(1, keepdim=True)).T
    against = (adjacency.T / adjacency.sum(0)[:, None]).T

    def gate(number: int, x: Tensor, h: Tensor) -> Tensor:
        part, first = (cell.gates, number) if number < 2 else (cell.candidate, 0)
        columns = slice(first * HIDDEN, (first + 1) * HIDDEN)
        both, total = torch.cat([x, h], 1), part.bias[columns]
        for walk, weight in zip((along, against), part.weight, strict=True):
            start, hop = weight[..., columns]
            total = total + both @ start + walk @ both @ hop
        return total

    shuffled = edges[:, torch.randperm(edges.size(1))]
    walks = transition_matrices(node_graph(shuffled, NODES))
    assert (walks[0] is walks[1]) == symmetric
    assert_same(
        lambda x, h: cell(x, h, walks),
        lambda x, h: written_out(x, h, gate),
        fields(),
        cell.parameters(),
    )


def weighted() -> tuple[Tensor, Tensor]:
    """Shuffled edges of a directed graph and their weights."""
    edges = random_edges(symmetric=False)
    edges = edges[:, torch.randperm(edges.size(1))]
    return edges, torch.rand(edges.size(1)) + 0.1


def test_edge_weights_are_those_of_the_walks_and_of_the_laplacian():
    edges, weight = weighted()
    adjacency = to_dense_adj(edges, None, weight, NODES)[0]
    x = torch.randn(NODES, INPUTS)
    graph = node_graph(edges, NODES, weight)
    walks = transition_matrices(graph, edge_weight=graph.base_weight)
    rows = adjacency.sum(1, keepdim=True), adjacency.sum(0)[:, None]
    along, against = (adjacency / rows[0]).T, (adjacency.T / rows[1]).T
    for walk, matrix in zip(walks, (along, against), strict=True):
        torch.testing.assert_close(shifted(x, walk), matrix @ x)
        # The value of a node is distributed among its neighbours, none is lost.
        torch.testing.assert_close(shifted(x, walk).sum(0), x.sum(0))
    both = adjacency + adjacency.T
    edges = both.nonzero().T
    graph = node_graph(edges, NODES, both[*edges])
    laplacian = scaled_laplacian(graph, edge_weight=graph.base_weight)
    scale = both.sum(1).rsqrt()
    torch.testing.assert_close(
        shifted(x, laplacian), -(scale[:, None] * both * scale) @ x
    )


@pytest.mark.parametrize("kind", [ChebConvGRU, DiffusionGRU, AdaptiveGRU])
def test_cells_are_called_as_those_of_pytorch_geometric(kind):
    sizes = (NODES,) * (kind is AdaptiveGRU)
    cell, (edges, weight) = awaken(kind(*sizes, INPUTS, HIDDEN)), weighted()
    x, h = fields()
    prepared = cell.prepared(edges, NODES, weight)
    after = cell(x, h, prepared)
    torch.testing.assert_close(cell(x, edges, weight, h), after)
    torch.testing.assert_close(cell(x, edges, edge_weight=weight, h=h), after)
    torch.testing.assert_close(cell(x, edges), cell(x, edges, None, 0 * h))
    # Several samples on one graph.
    xs, hs = torch.randn(3, NODES, INPUTS), torch.randn(3, NODES, HIDDEN)
    each = [cell(x, edges, weight, h) for x, h in zip(xs, hs, strict=True)]
    torch.testing.assert_close(cell(xs, edges, weight, hs), torch.stack(each))
    torch.testing.assert_close(cell(xs, hs, prepared), torch.stack(each))
    xs.requires_grad_()
    (change,) = torch.autograd.grad(cell(xs, edges, weight, hs).sum(), [xs])
    assert change.abs().sum() > 0
    with pytest.raises(UserError, match="a hidden state"):
        cell(x, h)
    if kind is not AdaptiveGRU:
        assert not torch.allclose(cell(x, edges, None, h), after)
        with pytest.raises(UserError, match="pass edge_index"):
            cell(x)
        with pytest.raises(UserError, match="a weight of each"):
            cell(x, edges, weight[:-1])


def test_adaptive_cell_is_its_equations():
    cell = awaken(AdaptiveGRU(NODES, INPUTS, HIDDEN))

    def convolve(part: nn.Module, x: Tensor) -> Tensor:
        graph = torch.softmax(torch.relu(cell.embedding @ cell.embedding.T), 1)
        rows = []
        for n in range(NODES):
            near, far = torch.tensordot(cell.embedding[n], part.weight, 1)
            bias = cell.embedding[n] @ part.bias
            rows.append(x[n] @ near + (graph[n] @ x) @ far + bias)
        return torch.stack(rows)

    def plain(x: Tensor, h: Tensor) -> Tensor:
        z, r = torch.sigmoid(convolve(cell.gates, torch.cat([x, h], 1))).chunk(2, 1)
        c = torch.tanh(convolve(cell.candidate, torch.cat([x, z * h], 1)))
        return r * h + (1 - r) * c

    assert_same(
        lambda x, h: cell(x, h, cell.adjacency()), plain, fields(), cell.parameters()
    )


def test_adaptive_cell_wants_whole_meshes():
    cell = AdaptiveGRU(NODES, INPUTS, HIDDEN)
    x, h = fields()
    with pytest.raises(UserError, match="11 points: expected 12 in every sample"):
        cell(x[:-1], h[:-1], cell.adjacency())


def published(name: str) -> ModuleType:
    """One file of torch-geometric-temporal."""
    package = importlib.util.find_spec("torch_geometric_temporal")
    if package is None or not package.submodule_search_locations:
        pytest.skip("torch-geometric-temporal is not installed")
    file = Path(package.submodule_search_locations[0], "nn", "recurrent", f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"published_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where PyTorch Geometric looks for the types of a layer's arguments.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def chebyshev_weights(cell: ChebConvGRU) -> dict[str, Tensor]:
    """As a GConvGRU names them."""
    weights = {}
    from_x = cell.inputs.weight.chunk(3, -1), cell.inputs.bias.chunk(3)
    for letter, (matrices, biases) in (("x", from_x), ("h", gates_of(cell))):
        for gate, matrix, bias in zip(NAMES, matrices, biases, strict=True):
            weights[f"conv_{letter}_{gate}.bias"] = bias
            for k, term in enumerate(matrix):
                weights[f"conv_{letter}_{gate}.lins.{k}.weight"] = term.T
    return weights


def diffusion_weights(cell: DiffusionGRU) -> dict[str, Tensor]:
    """As a DCRNN names them."""
    weights = {}
    for gate, matrix, bias in zip(NAMES, *gates_of(cell), strict=True):
        weights |= {f"conv_x_{gate}.weight": matrix, f"conv_x_{gate}.bias": bias}
    return weights


def gates_of(cell: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    return (
        [*cell.gates.weight.chunk(2, -1), cell.candidate.weight],
        [*cell.gates.bias.chunk(2), cell.candidate.bias],
    )


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "file", "name", "connect", "weights"),
    [
        (ChebConvGRU, "gconv_gru", "GConvGRU", scaled_laplacian, chebyshev_weights),
        # On symmetric graphs: on others it takes in-degrees in the wrong order.
        (DiffusionGRU, "dcrnn", "DCRNN", transition_matrices, diffusion_weights),
    ],
)
def test_cells_are_the_published_ones(order, kind, file, name, connect, weights):
    theirs = getattr(published(file), name)(INPUTS, HIDDEN, order)
    cell, edges = awaken(kind(INPUTS, HIDDEN, order)), random_edges()
    graph = connect(node_graph(edges, NODES))
    assert_same(
        lambda x, h: cell(x, h, graph),
        lambda x, h: functional_call(theirs, weights(cell), (x, edges), {"H": h}),
        fields(),
        cell.parameters(),
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_weights_of_the_chebyshev_cell_are_the_published_ones(order):
    """DCRNN there divides by sums of weights and leaves the weights themselves out."""
    theirs = published("gconv_gru").GConvGRU(INPUTS, HIDDEN, order)
    cell, edges = awaken(ChebConvGRU(INPUTS, HIDDEN, order)), random_edges()
    weight = to_dense_adj(edges)[0] * torch.rand(NODES, NODES)
    weight = (weight + weight.T)[*edges]
    assert_same(
        lambda x, h: cell(x, edges, weight, h),
        lambda x, h: functional_call(
            theirs, chebyshev_weights(cell), (x, edges, weight), {"H": h}
        ),
        fields(),
        cell.parameters(),
    )


@pytest.mark.parametrize("order", [2, 3])
def test_adaptive_cell_is_the_published_one(order):
    theirs = published("agcrn").AGCRN(NODES, INPUTS, HIDDEN, order, 2)
    cell = awaken(AdaptiveGRU(NODES, INPUTS, HIDDEN, order, 2))

    def plain(x: Tensor, h: Tensor) -> Tensor:
        weights = {}
        for name, part in (("_gate", cell.gates), ("_update", cell.candidate)):
            weights |= {f"{name}.weights_pool": part.weight}
            weights |= {f"{name}.bias_pool": part.bias}
        x, h = (f.unflatten(0, (-1, NODES)) for f in (x, h))
        return functional_call(theirs, weights, (x, cell.embedding, h)).flatten(0, 1)

    assert_same(
        lambda x, h: cell(x, h, cell.adjacency()), plain, fields(3), cell.parameters()
    )
