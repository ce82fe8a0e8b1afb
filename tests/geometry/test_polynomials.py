"""Polynomials that are orthonormal over the neighbours of a target."""

from __future__ import annotations

import pytest
import torch

from nfsgeo.geometry import Domain, bipartite_graph, orthonormal_polynomials


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_are_orthonormal_over_every_neighbourhood(dim: int, degree: int) -> None:
    torch.manual_seed(0)
    source, target = torch.rand(60 * dim, dim), torch.rand(20, dim)
    graph = bipartite_graph(source, target, 0.5, Domain.unit(dim))
    share, columns = graph.mean_weight(torch.float64), graph.polynomials(degree)
    product = (share[:, None] * columns)[:, :, None] * columns[:, None]
    gram = product.new_zeros(20, *product.shape[1:])
    gram.index_add_(0, graph.edge_index[1], product)
    identity = torch.eye(columns.size(1), dtype=torch.float64)
    torch.testing.assert_close(gram, identity.expand_as(gram))
    assert graph.polynomials(degree) is columns


def test_leave_out_what_neighbours_can_not_tell() -> None:
    """Two neighbours on a line along x: constants and x, and nothing of y."""
    displacement = torch.tensor([[-0.1, 0.0], [0.2, 0.0]])
    target, share = torch.zeros(2, dtype=torch.int64), torch.full((2,), 0.5)
    columns = orthonormal_polynomials(displacement, target, share, 1, 1)
    gram = 0.5 * columns.t() @ columns
    assert sorted(gram.diagonal().round(decimals=6).tolist()) == [0, 1, 1]
