"""What is special to one backend: pieces, cells, images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import (
    Domain,
    radius_edges,
    search_torch_cluster,
)
from nfsgeo.geometry.query import Candidates, RadiusQuery
from nfsgeo.geometry.radius import BACKENDS

Reference = Callable[..., Tensor]
CPU = torch.device("cpu")


@pytest.mark.parametrize("lower", [0.0, -3e4])
def test_pairs_as_near_as_the_radius(
    backend: str, lower: float, brute_force: Reference
) -> None:
    domain = Domain((lower, lower), (lower + 1.0, lower + 1.0), (True, False))
    target = lower + 0.2 + 0.6 * torch.rand(40, 1, 2, dtype=torch.float64)
    turn = 2 * torch.pi * torch.rand(40, 1, dtype=torch.float64)
    more = torch.tensor([0, 1e-16, 1e-12, 1e-10, 4e-9, 1e-7], dtype=torch.float64)
    length = 0.1 * (1 + torch.cat([more, -more]))
    direction = torch.stack([turn.cos(), turn.sin()], dim=2)
    source = (target + length[:, None] * direction).flatten(0, 1)
    target = target.flatten(0, 1)
    edges = radius_edges(source, target, 0.1, domain, backend=backend)
    assert torch.equal(edges, brute_force(source, target, 0.1, domain))


def test_a_radius_far_below_the_spacing_needs_no_memory(brute_force: Reference) -> None:
    domain = Domain((0.0, 0.0), (1e6, 1.0), (True, False))
    source = torch.rand(50, 2) * torch.tensor([1e6, 1.0])
    for radius in (1e-5, 1.0, 1e5):
        edges = radius_edges(source, source, radius, domain, backend="cell_list")
        assert torch.equal(edges, brute_force(source, source, radius, domain))


def open_search(
    source: Tensor,
    target: Tensor,
    source_ptr: Tensor,
    target_ptr: Tensor,
    radius: float,
    cap: int,
) -> Tensor:
    """What torch-cluster does: distance < radius, the first ``cap``."""
    near = torch.cdist(target, source, compute_mode="donot_use_mm_for_euclid_dist")
    near = near < radius
    samples = torch.arange(source_ptr.numel() - 1)
    source_batch = samples.repeat_interleave(source_ptr.diff())
    target_batch = samples.repeat_interleave(target_ptr.diff())
    near &= target_batch[:, None] == source_batch[None]
    near &= near.cumsum(1) <= cap
    return near.nonzero().T


@pytest.mark.parametrize("first_cap", [1, 3, 64, None])
@pytest.mark.parametrize("radius", [0.05, 0.3, 0.5, 1.7])
def test_images_and_rising_caps_lose_nothing(
    first_cap: int | None,
    radius: float,
    monkeypatch: pytest.MonkeyPatch,
    brute_force: Reference,
) -> None:
    def candidates(query: RadiusQuery) -> Iterator[Candidates]:
        return search_torch_cluster.candidates_by_images(query, open_search, first_cap)

    monkeypatch.setattr(search_torch_cluster, "MAX_SLOTS", 40)
    monkeypatch.setattr(BACKENDS["scipy"], "candidates", candidates)
    domain = Domain((0.0, 0.0), (1.0, 1.0), (True, False))
    source, target = torch.rand(40, 2), torch.rand(37, 2)
    batches: dict[str, Any] = {
        "source_batch": torch.arange(40) // 15,
        "target_batch": torch.arange(37) // 20,
    }
    edges = radius_edges(source, target, radius, domain, backend="scipy", **batches)
    assert torch.equal(edges, brute_force(source, target, radius, domain, **batches))


@pytest.mark.cluster
def test_torch_cluster_without_cuda_is_not_used_on_cuda() -> None:
    pytest.importorskip("torch_cluster")
    built = torch.ops.torch_cluster.cuda_version() > 0
    assert search_torch_cluster.available(torch.device("cuda")) == built
    assert search_torch_cluster.available(CPU)


def test_many_pairs_are_decided_in_pieces(brute_force: Reference) -> None:
    domain = Domain((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (True, False, True))
    source, target = torch.rand(420, 3), torch.rand(400, 3)
    for radius in (0.4, 2.0):
        expected = brute_force(source, target, radius, domain)
        for name in ("scipy", "cell_list"):
            edges = radius_edges(source, target, radius, domain, backend=name)
            assert torch.equal(edges, expected)
