"""Arguments that are refused, and the radius that a number of points calls for."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, radius_edges, radius_for, search_torch_cluster

GOOD = torch.rand(4, 2)
SAMPLES = torch.zeros(4, dtype=torch.int64)


@pytest.mark.parametrize(
    "point", [[1.5, 0.5], [-0.1, 0.5], [math.nan, 0.5], [math.inf, 0.5]]
)
def test_points_outside_the_domain_are_named(point: list[float]) -> None:
    bad = torch.cat([GOOD, torch.tensor([point])])
    for args in ((bad, GOOD), (GOOD, bad)):
        with pytest.raises(UserError, match="point 4"):
            radius_edges(*args, 0.1, Domain.unit(2))


@pytest.mark.parametrize(
    "given",
    [{"radius": radius} for radius in (0.0, -1.0, math.nan, math.inf)]
    + [{"backend": "kdtree"}],
)
def test_settings_without_meaning_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        radius_edges(GOOD, GOOD, **{"radius": 0.1, "domain": Domain.unit(2)} | given)


@pytest.mark.parametrize(
    "given",
    [{"source": GOOD[:, 0]}, {"source": torch.rand(4, 3)}, {"source": GOOD.half()}]
    + [{"source": SAMPLES[:, None].expand(4, 2)}, {"target_batch": None}]
    + [
        {"source_batch": torch.tensor(batch)}
        for batch in ([0, 1, 0, 1], [-1, 0, 0, 0], [0, 0], [0.0] * 4)
    ],
)
def test_shapes_and_types(given: dict[str, Any]) -> None:
    args = {"source": GOOD, "target": GOOD, "radius": 0.1, "domain": Domain.unit(2)}
    args |= {"source_batch": SAMPLES, "target_batch": SAMPLES}
    with pytest.raises(ValueError, match="expected"):
        radius_edges(**args | given)


def test_a_backend_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_torch_cluster, "available", lambda device: False)
    with pytest.raises(UserError, match="install torch-cluster"):
        radius_edges(GOOD, GOOD, 0.1, Domain.unit(2), backend="torch_cluster")


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
