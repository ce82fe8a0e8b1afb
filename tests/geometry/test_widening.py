"""Empty neighbourhoods are widened to the nearest source."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain, bipartite_graph, equispaced_grid

MIXED = Domain((0.0, -1.0), (1.0, 1.0), (True, False))


def cloud(num: int, seed: int, domain: Domain = MIXED) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    low, lengths = torch.tensor(domain.lower), torch.tensor(domain.lengths)
    return low + lengths * torch.rand(num, domain.dim, generator=generator)


def nearest(source: Tensor, target: Tensor, domain: Domain) -> Tensor:
    distance = domain.distance(source.double()[None], target.double()[:, None])
    return distance.argmin(dim=1)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), radius=st.sampled_from([1e-3, 0.05, 0.1]))
def test_empty_neighbourhoods_get_the_nearest_source(seed: int, radius: float) -> None:
    source, target = cloud(40, seed), cloud(60, seed + 1)
    graph = bipartite_graph(source, target, radius, MIXED)
    assert (graph.degree() >= 1).all()
    distance = MIXED.distance(source.double()[None], target.double()[:, None])
    empty = (distance > radius).all(dim=1)
    assert empty.any()
    given_source = graph.edge_index[0, graph.ptr[:-1][empty]]
    assert torch.equal(given_source, nearest(source, target, MIXED)[empty])
    assert (graph.degree()[empty] == 1).all()
    kept = ~empty[graph.edge_index[1]]
    assert (distance <= radius).sum() == kept.sum()


def test_ties_do_not_depend_on_the_order_of_the_points() -> None:
    grid = equispaced_grid(Domain.unit(2), (4, 4))
    mixed = torch.randperm(16)
    found = [
        points[
            bipartite_graph(points, grid + 0.125, 0.01, Domain.unit(2)).edge_index[0]
        ]
        for points in (grid, grid[mixed])
    ]
    assert torch.equal(*found)


def test_sample_without_a_source_is_refused() -> None:
    with pytest.raises(ValueError, match="a sample without a source"):
        bipartite_graph(
            cloud(4, 0),
            cloud(6, 1),
            0.1,
            MIXED,
            source_batch=torch.tensor([0, 0, 0, 2]),
            target_batch=torch.tensor([0, 1, 1, 1, 2, 2]),
        )
