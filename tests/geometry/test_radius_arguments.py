"""Caps on the neighbours, and arguments that are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.geometry import (
    Domain,
    radius_edges,
    search_torch_cluster,
)


class TestNeighbourCap:
    def test_keeps_the_nearest_and_says_so(
        self, backend: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        domain = Domain.unit(1)
        source = torch.tensor([[0.30], [0.52], [0.495], [0.51], [0.95]])
        target = torch.tensor([[0.5], [0.0]])
        edges = radius_edges(
            source, target, 0.25, domain, backend=backend, max_neighbours=2
        )
        assert edges.tolist() == [[2, 3, 4], [0, 0, 1]]
        assert "leaves out 2 of 5 edges, at 1 of 2 targets" in caplog.text

    def test_ties_go_to_the_lowest_index(self) -> None:
        source = torch.tensor([[0.75], [0.25], [0.75], [0.25]])
        edges = radius_edges(
            source,
            torch.tensor([[0.5]]),
            0.25,
            Domain.unit(1),
            max_neighbours=3,
        )
        assert edges[0].tolist() == [0, 1, 2]

    def test_silent_when_nothing_is_cut(self, caplog: pytest.LogCaptureFixture) -> None:
        pos = torch.rand(20, 2)
        edges = radius_edges(pos, pos, 0.1, Domain.unit(2), max_neighbours=20)
        assert torch.equal(edges, radius_edges(pos, pos, 0.1, Domain.unit(2)))
        assert not caplog.text

    def test_agrees_with_sorting_all_distances(self, backend: str) -> None:
        domain = Domain((0.0, 0.0), (1.0, 1.0), (False, True))
        source, target = torch.rand(200, 2), torch.rand(30, 2)
        edges = radius_edges(
            source, target, 0.6, domain, backend=backend, max_neighbours=7
        )
        distance = domain.distance(source.double()[None], target.double()[:, None])
        nearest = distance.topk(7, largest=False).indices.sort().values
        assert torch.equal(edges[0].reshape(30, 7), nearest)


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
    + [{"backend": "kdtree"}, {"max_neighbours": 0}],
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
