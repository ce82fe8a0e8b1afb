"""Equispaced grids, and the share of the domain of every point."""

import math

import pytest
import torch

from nfsgeo.geometry import (
    Domain,
    equispaced_grid,
    quadrature_weights,
)

TORUS = Domain.unit(2)


def clustered(num: int, seed: int = 0) -> torch.Tensor:
    """Points that are ten times as dense in the left half."""
    generator = torch.Generator().manual_seed(seed)
    pos = torch.rand(num, 2, generator=generator)
    dense = 10 * num // 11
    pos[:dense, 0] *= 0.5
    pos[dense:, 0] = 0.5 + 0.5 * pos[dense:, 0]
    return pos


@pytest.mark.parametrize("periodic", [True, False])
def test_cells_in_one_dimension_are_halfway_between_the_points(periodic):
    pos = torch.tensor([[0.5], [0.2], [0.6]])
    # Over the seam, 0.6 and 0.2 meet at 0.9.
    expected = [0.2, 0.45, 0.35] if periodic else [0.2, 0.35, 0.45]
    volumes = quadrature_weights(pos, Domain.unit(1, periodic))
    assert float(volumes.sum()) == pytest.approx(1)
    assert volumes.tolist() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("dim", [2, 3])
def test_cells_of_a_grid_end_at_the_boundary(dim):
    pos = equispaced_grid(Domain.unit(dim, False), [7] * dim, torch.float64)
    outside = ((pos == 0) | (pos == 1)).sum(1)  # each cuts a cell into halves
    found = quadrature_weights(pos, Domain.unit(dim, False)) * 6**dim * 2.0**outside
    for num in range(dim + 1):
        assert float(found[outside == num].mean()) == pytest.approx(1, abs=0.05)


def test_an_integral_by_cells_does_not_see_the_density():
    """Of a field whose mean over the points is far from that over the domain."""
    cells, count = [], []
    for seed in range(5):
        pos = clustered(500, seed)
        field = torch.cos(2 * torch.pi * (pos[:, 0] - 0.25)).double()
        cells.append((field @ quadrature_weights(pos, TORUS)).abs())
        count.append(field.mean().abs())
    assert sum(cells) / 5 < 0.05 < 0.3 < sum(count) / 5


def test_a_point_without_a_node_counts_for_one():
    pos = torch.full((3, 2), 0.5)
    assert (quadrature_weights(pos, TORUS) > 0).all()
    with pytest.raises(ValueError, match="no points"):
        quadrature_weights(pos[:0], TORUS)


def test_periodic_axes_leave_the_end_point_out_and_others_hold_both():
    domain = Domain((0.0, -1.0), (1.0, 1.0), (True, False))
    grid = equispaced_grid(domain, (4, 3)).reshape(4, 3, 2)
    assert grid[:, 0, 0].tolist() == [0.0, 0.25, 0.5, 0.75]
    assert grid[0, :, 1].tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("upper", [2 * math.pi, 0.1, 1e3])
def test_nodes_lie_in_their_domain(upper, periodic, dtype):
    domain = Domain((-upper / 3,), (upper,), (periodic,))
    for size in (3, 10, 49, 64):
        assert domain.contains(equispaced_grid(domain, (size,), dtype=dtype)).all()


@pytest.mark.parametrize("shape", [(4,), (4, 0), (4, 1)])
def test_impossible_shapes_are_refused(shape):
    domain = Domain((0.0, 0.0), (1.0, 1.0), (True, False))
    with pytest.raises(ValueError, match="grid shape"):
        equispaced_grid(domain, shape)
