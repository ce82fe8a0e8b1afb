"""Backends of the neighbour search, and a plain reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, search_pyg_lib

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


@pytest.fixture(
    params=[
        "scipy",
        "cell_list",
        pytest.param("torch_cluster", marks=pytest.mark.cluster),
        "pyg_lib",
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "torch_cluster":
        pytest.importorskip("torch_cluster")
    if request.param == "pyg_lib" and not search_pyg_lib.available(torch.device("cpu")):
        pytest.skip("pyg-lib 0.6 or later is not installed")
    return request.param
