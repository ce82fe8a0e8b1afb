"""The radius at which a ball holds c log n points."""

from __future__ import annotations

import math

import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, radius_edges, radius_for


@pytest.mark.parametrize(
    ("dim", "ball"), [(1, 2.0), (2, math.pi), (3, 4 / 3 * math.pi)]
)
def test_ball_covers_its_share_of_the_domain(dim: int, ball: float) -> None:
    domain = Domain((0.0, -1.0, 2.0)[:dim], (2.0, 1.0, 5.0)[:dim], (True,) * dim)
    radius = radius_for(1000, domain, 1.5)
    expected = 1.5 * math.log(1000) * domain.volume / 1000
    assert ball * radius**dim == pytest.approx(expected)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_mean_neighbourhood_of_even_points(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    num_points, c = 4000, 2.0
    domain = Domain((0.0,) * dim, (2.0,) + (1.0,) * (dim - 1), (True,) * dim)
    ends = torch.tensor(domain.upper)
    source = torch.rand(num_points, dim, generator=generator) * ends
    target = torch.rand(2000, dim, generator=generator) * ends
    radius = radius_for(num_points, domain, c)
    mean = radius_edges(source, target, radius, domain).size(1) / 2000
    assert mean == pytest.approx(c * math.log(num_points), rel=0.03)


@pytest.mark.parametrize(
    ("num_points", "c"), [(1, 1.0), (0, 1.0), (100, 0.0), (100, math.nan)]
)
def test_no_radius_follows(num_points: int, c: float) -> None:
    with pytest.raises(UserError, match="expected"):
        radius_for(num_points, Domain.unit(2), c)
