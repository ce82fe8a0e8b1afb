"""Caps on the neighbours, and arguments that are refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import (
    Domain,
    radius_edges,
    search_torch_cluster,
)

Reference = Callable[..., Tensor]
CPU = torch.device("cpu")


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


class TestRefusals:
    good = torch.rand(4, 2)

    @pytest.mark.parametrize(
        ("point", "message"),
        [
            ([1.5, 0.5], "domain.wrap"),
            ([-0.1, 0.5], "domain.wrap"),
            ([math.nan, 0.5], "numbers"),
            ([math.inf, 0.5], "within"),
        ],
    )
    def test_points_outside_the_domain(self, point: list[float], message: str) -> None:
        bad = torch.cat([self.good, torch.tensor([point])])
        for args in ((bad, self.good), (self.good, bad)):
            with pytest.raises(UserError, match=message) as caught:
                radius_edges(*args, 0.1, Domain.unit(2))
            assert "point 4" in str(caught.value)
            assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
    def test_radius(self, radius: float) -> None:
        with pytest.raises(UserError, match="above 0"):
            radius_edges(self.good, self.good, radius, Domain.unit(2))

    @pytest.mark.parametrize(
        "bad",
        [
            torch.rand(4),
            torch.rand(4, 3),
            torch.rand(4, 2).half(),
            torch.zeros(4, 2, dtype=torch.int64),
        ],
    )
    def test_shapes_and_types(self, bad: Tensor) -> None:
        with pytest.raises(ValueError, match=r"float32 or float64 \[n, 2\]"):
            radius_edges(bad, self.good, 0.1, Domain.unit(2))

    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            (torch.tensor([0, 1, 0, 1]), "sorted"),
            (torch.tensor([-1, 0, 0, 0]), "below 0"),
            (torch.tensor([0, 0]), "the sample of each point"),
            (torch.zeros(4), "integers"),
        ],
    )
    def test_batches(self, batch: Tensor, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            radius_edges(
                self.good,
                self.good,
                0.1,
                Domain.unit(2),
                source_batch=batch,
                target_batch=torch.zeros(4, dtype=torch.int64),
            )

    def test_one_batch_without_the_other(self) -> None:
        batch = torch.zeros(4, dtype=torch.int64)
        with pytest.raises(ValueError, match="both or neither"):
            radius_edges(self.good, self.good, 0.1, Domain.unit(2), source_batch=batch)

    def test_unknown_backend(self) -> None:
        with pytest.raises(UserError, match="cell_list"):
            radius_edges(self.good, self.good, 0.1, Domain.unit(2), backend="kdtree")

    def test_backend_that_is_not_installed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(search_torch_cluster, "available", lambda device: False)
        with pytest.raises(UserError, match="install torch-cluster"):
            radius_edges(
                self.good, self.good, 0.1, Domain.unit(2), backend="torch_cluster"
            )

    def test_cap_below_one(self) -> None:
        with pytest.raises(UserError, match="at least 1"):
            radius_edges(self.good, self.good, 0.1, Domain.unit(2), max_neighbours=0)
