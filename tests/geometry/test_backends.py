"""What is special to one backend: pieces, cells, images."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, radius_edges, search_torch_cluster

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
