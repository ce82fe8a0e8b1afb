"""Points along a curve that fills the box."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nfsgeo.geometry import Domain, equispaced_grid, spatial_order


def test_visits_quadrants_one_after_the_other():
    """And those of quadrants: the letter Z, again and again."""
    grid = equispaced_grid(Domain.unit(2), (4, 4))
    corner = [0, 1, 4, 5]
    expected = [start + node for start in (0, 2, 8, 10) for node in corner]
    assert spatial_order(grid, Domain.unit(2)).tolist() == expected


@given(st.integers(1, 4), st.integers(0, 40), st.integers(0, 2**31))
def test_orders_whatever_comes(dim: int, num: int, seed: int):
    random = torch.Generator().manual_seed(seed)
    domain = Domain((-1.0,) * dim, (3.0,) * dim, (False,) * dim)
    pos = torch.randn(num, dim, generator=random) * 3
    batch = torch.randint(3, (num,), generator=random)
    order = spatial_order(pos, domain, batch)
    assert order.sort().values.tolist() == list(range(num))
    assert (batch[order].diff() >= 0).all()
    for sample in range(3):
        alone = spatial_order(pos[batch == sample], domain)
        own = order[batch[order] == sample]
        assert torch.equal(pos[batch == sample][alone], pos[own])


def test_on_a_line_it_is_the_order_of_the_line():
    pos = torch.rand(1000, 1, dtype=torch.float64)
    order = spatial_order(pos, Domain.unit(1))
    assert (pos[order].diff(dim=0) >= 0).all()


def test_points_of_one_place_stay_as_they_were():
    pos = torch.tensor([[0.7, 0.2], [0.1, 0.1], [0.7, 0.2], [0.1, 0.1]])
    assert spatial_order(pos, Domain.unit(2)).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("dim", [2, 3])
def test_neighbours_in_space_are_near_in_the_order(dim: int):
    """Half of them within as many places as a ball of that radius holds, or so."""
    pos, domain = torch.rand(4096, dim), Domain.unit(dim)
    ordered = pos[spatial_order(pos, domain)]
    apart = [
        torch.cdist(points, points).topk(9, largest=False).indices[:, 1:]
        - torch.arange(4096)[:, None]
        for points in (pos, ordered)
    ]
    before, after = (a.abs().double().median() for a in apart)
    assert after < 20 < 500 < before


@pytest.mark.parametrize("pos", [torch.rand(5, 3), torch.full((5, 2), torch.nan)])
def test_says_what_does_not_fit(pos):
    with pytest.raises(ValueError, match=r"expected finite coordinates \[n, 2\]"):
        spatial_order(pos, Domain.unit(2))
