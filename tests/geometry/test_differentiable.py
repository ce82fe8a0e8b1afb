"""Derivatives of graphs with respect to positions."""

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.geometry.radius_graph import Interpolation

INTERPOLATIONS: tuple[Interpolation, ...] = ("mean", "linear", "quadratic", "spline")


def points(dim: int) -> list[Tensor]:
    ends = (torch.rand(num, dim, dtype=torch.float64) for num in (30, 4))
    return [pos.requires_grad_() for pos in ends]


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_derivatives_are_those_of_finite_differences(interpolation, dim, periodic):
    """Of the interpolated value and of the displacements, first and second."""
    domain, values = Domain.unit(dim, periodic), torch.randn(30, dtype=torch.float64)

    def interpolated(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        given = source, target, 0.4, domain
        graph = bipartite_graph(*given, interpolation=interpolation)
        edge = graph.base_weight * values[graph.edge_index[0]]
        found = edge.new_zeros(4).index_add(0, graph.edge_index[1], edge)
        return found, graph.displacement.square().sum()

    ends = points(dim)
    assert torch.autograd.gradcheck(interpolated, ends)
    assert torch.autograd.gradgradcheck(interpolated, ends)


def test_values_are_those_of_the_constant_graph():
    ends = points(2)
    for interpolation in INTERPOLATIONS:
        differentiable, constant = (
            bipartite_graph(*given, 0.3, Domain.unit(2), interpolation=interpolation)
            for given in (ends, [pos.detach() for pos in ends])
        )
        assert differentiable.differentiable and not constant.differentiable
        assert torch.equal(differentiable.edge_index, constant.edge_index)
        for name in ("base_weight", "displacement"):
            found = getattr(differentiable, name).detach()
            torch.testing.assert_close(
                found, getattr(constant, name), check_dtype=False, rtol=1e-6, atol=1e-7
            )
    with torch.no_grad():
        assert not bipartite_graph(*ends, 0.3, Domain.unit(2)).differentiable


def test_targets_at_a_source_have_the_derivatives_of_targets_nearby():
    source, domain = points(2)[0].detach(), Domain.unit(2)
    values = torch.sin(6 * source).sum(1)
    slopes = []
    for shift in (0.0, 1e-9):
        target = (source[:5] + shift).requires_grad_()
        graph = bipartite_graph(source, target, None, domain, interpolation="spline")
        edge = graph.base_weight * values[graph.edge_index[0]]
        if shift == 0:
            found = edge.new_zeros(5).index_add(0, graph.edge_index[1], edge)
            torch.testing.assert_close(found, values[:5])
        slopes.append(torch.autograd.grad(edge.sum(), target)[0])
        assert slopes[-1].abs().min() > 0
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5)
