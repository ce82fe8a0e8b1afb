"""Recurrent cells against torch-geometric-temporal's, with the same weights.

Its package imports libraries that must be compiled, so the files of the three cells
are loaded by themselves: ``pip install --no-deps torch-geometric-temporal`` will do.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from nfsgeo.nn import (
    AdaptiveGRU,
    ChebConvGRU,
    DiffusionGRU,
    node_graph,
    scaled_laplacian,
    transition_matrices,
)
from nfsgeo.testing import assert_same

NODES, INPUTS, HIDDEN = 12, 3, 5
NAMES = ("z", "r", "h")


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


def random_edges() -> Tensor:
    """Of a random symmetric graph, without self-loops, every node joined to some."""
    adjacency = torch.rand(NODES, NODES) < 0.3
    ring = torch.eye(NODES, dtype=torch.bool).roll(1, 0)
    adjacency |= ring
    adjacency |= adjacency.T.clone()
    adjacency.fill_diagonal_(False)
    return adjacency.nonzero().T


def fields(samples: int = 1) -> tuple[Tensor, Tensor]:
    return (
        torch.randn(samples * NODES, INPUTS),
        torch.randn(samples * NODES, HIDDEN),
    )


def awaken(cell: nn.Module) -> nn.Module:
    """Biases that start at zero would hide where they go."""
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    return cell


def chebyshev_weights(cell: ChebConvGRU) -> dict[str, Tensor]:
    """As a GConvGRU names them."""
    weights = {}
    from_x = cell.inputs.weight.chunk(3, -1), cell.inputs.bias.chunk(3)
    from_h = (
        [*cell.gates.weight.chunk(2, -1), cell.candidate.weight],
        [*cell.gates.bias.chunk(2), cell.candidate.bias],
    )
    for letter, (matrices, biases) in (("x", from_x), ("h", from_h)):
        for gate, matrix, bias in zip(NAMES, matrices, biases, strict=True):
            weights[f"conv_{letter}_{gate}.bias"] = bias
            for k, term in enumerate(matrix):
                weights[f"conv_{letter}_{gate}.lins.{k}.weight"] = term.T
    return weights


def diffusion_weights(cell: DiffusionGRU) -> dict[str, Tensor]:
    """As a DCRNN names them."""
    matrices = [*cell.gates.weight.chunk(2, -1), cell.candidate.weight]
    biases = [*cell.gates.bias.chunk(2), cell.candidate.bias]
    weights = {}
    for gate, matrix, bias in zip(NAMES, matrices, biases, strict=True):
        weights |= {f"conv_x_{gate}.weight": matrix, f"conv_x_{gate}.bias": bias}
    return weights


@pytest.mark.parametrize("order", [1, 2, 3])
def test_chebyshev_cell_is_the_published_one(order):
    theirs = published("gconv_gru").GConvGRU(INPUTS, HIDDEN, order)
    cell, edges = awaken(ChebConvGRU(INPUTS, HIDDEN, order)), random_edges()
    laplacian = scaled_laplacian(node_graph(edges, NODES))
    assert_same(
        lambda x, h: cell(x, h, laplacian),
        lambda x, h: functional_call(
            theirs, chebyshev_weights(cell), (x, edges), {"H": h}
        ),
        fields(),
        cell.parameters(),
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_diffusion_cell_is_the_published_one(order):
    """On symmetric graphs: on others it takes in-degrees in the wrong order."""
    theirs = published("dcrnn").DCRNN(INPUTS, HIDDEN, order)
    cell, edges = awaken(DiffusionGRU(INPUTS, HIDDEN, order)), random_edges()
    walks = transition_matrices(node_graph(edges, NODES))
    assert walks[0] is walks[1]
    assert_same(
        lambda x, h: cell(x, h, walks),
        lambda x, h: functional_call(
            theirs, diffusion_weights(cell), (x, edges), {"H": h}
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
