"""Recurrent cells against their published equations, with dense matrices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
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


def random_edges(*, symmetric: bool = True) -> Tensor:
    """Of a random graph without self-loops, every node with an edge, sorted."""
    adjacency = torch.rand(NODES, NODES) < 0.3
    ring = torch.eye(NODES, dtype=torch.bool).roll(1, 0)
    adjacency |= ring
    if symmetric:
        adjacency |= adjacency.T.clone()
    adjacency.fill_diagonal_(False)
    return adjacency.nonzero().T


def dense(edge_index: Tensor) -> Tensor:
    """``W[i, j]`` is 1 for an edge from i to j."""
    matrix = torch.zeros(NODES, NODES)
    matrix[edge_index[0], edge_index[1]] = 1
    return matrix


def fields() -> tuple[Tensor, Tensor]:
    return torch.randn(NODES, INPUTS), torch.randn(NODES, HIDDEN)


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
    adjacency = dense(edges)
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
    adjacency = dense(edges)
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


def test_adaptive_cell_is_its_equations():
    cell = awaken(AdaptiveGRU(NODES, INPUTS, HIDDEN))

    def convolve(part: nn.Module, x: Tensor) -> Tensor:
        graph = torch.softmax(torch.relu(cell.embedding @ cell.embedding.T), 1)
        rows = []
        for n in range(NODES):
            weight = sum(
                e * w for e, w in zip(cell.embedding[n], part.weight, strict=True)
            )
            bias = cell.embedding[n] @ part.bias
            rows.append(x[n] @ weight[0] + (graph[n] @ x) @ weight[1] + bias)
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
