"""Graphs and fields for the tests of layers."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph
from nfsgeo.nn import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationKernel,
)

CHANNELS, FEATURES, RADIUS = 4, 3, 0.3
KERNELS = ("dense", "channel", "grouped", "gaussian")


@dataclass
class Case:
    """A field at sources, and the graph to the targets."""

    domain: Domain
    source: Tensor
    target: Tensor
    graph: BipartiteGraph
    x: Tensor
    features: Tensor


def new_case(dim: int, *, num_source: int = 14, num_target: int = 9) -> Case:
    domain = Domain.unit(dim)
    source = torch.rand(num_source, dim, dtype=torch.float64)
    target = torch.rand(num_target, dim, dtype=torch.float64)
    return Case(
        domain,
        source,
        target,
        bipartite_graph(source, target, RADIUS, domain),
        torch.randn(num_source, 2, CHANNELS, dtype=torch.float64),
        torch.randn(num_source, FEATURES, dtype=torch.float64),
    )


def new_kernel(name: str, dim: int, *, absolute: bool = True) -> InterpolationKernel:
    def network() -> EdgeNetwork:
        return EdgeNetwork(dim, FEATURES, 5, scale=RADIUS, absolute_position=absolute)

    kernel = {
        "dense": lambda: DenseKernel(CHANNELS, network()),
        "channel": lambda: ChannelKernel(CHANNELS, network()),
        "grouped": lambda: ChannelKernel(CHANNELS, network(), groups=2),
        "gaussian": lambda: GaussianKernel(CHANNELS, dim, scale=RADIUS),
    }[name]()
    return kernel.double()


@pytest.fixture
def make_case() -> Callable[..., Case]:
    return new_case


@pytest.fixture
def make_kernel() -> Callable[..., InterpolationKernel]:
    return new_kernel


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, case: Case) -> InterpolationKernel:
    return new_kernel(request.param, case.domain.dim)


@pytest.fixture(params=KERNELS)
def blind_kernel(request: pytest.FixtureRequest, case: Case) -> InterpolationKernel:
    """Without absolute position."""
    return new_kernel(request.param, case.domain.dim, absolute=False)


@pytest.fixture(params=[1, 2, 3], ids="{}d".format)
def case(request: pytest.FixtureRequest) -> Case:
    return new_case(request.param)
