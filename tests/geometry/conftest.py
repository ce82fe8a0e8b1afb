"""Backends of the neighbour search, and a plain reference."""

from collections.abc import Callable

import pytest
from torch import Tensor

from nfsgeo.geometry import Domain

Reference = Callable[..., Tensor]


def all_pairs(
    source: Tensor,
    target: Tensor,
    radius: float,
    domain: Domain,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
) -> Tensor:
    """Edges by looking at every pair, target by target."""
    distance = domain.distance(source.double()[None], target.double()[:, None])
    near = distance <= radius
    if source_batch is not None and target_batch is not None:
        near &= source_batch[None] == target_batch[:, None]
    return near.nonzero().flip(1).T.contiguous()


@pytest.fixture(scope="session")
def brute_force() -> Reference:
    return all_pairs


CLUSTER = pytest.param("torch_cluster", marks=pytest.mark.cluster)


@pytest.fixture(params=["scipy", CLUSTER])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "torch_cluster":
        pytest.importorskip("torch_cluster")
    return request.param
