"""Every backend of the radius search against looking at every pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import (
    Domain,
    radius_edges,
)

Reference = Callable[..., Tensor]
CPU = torch.device("cpu")
SLOW_START = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ],
)


# Lattice places, ends, places a hair off them, and anything between.
SHARES = st.one_of(
    st.integers(0, 8).map(lambda k: k / 8),
    st.sampled_from([1e-9, 0.125 + 1e-9, 1 - 1e-9, 1 - 2**-20]),
    st.floats(0, 1),
)
RADII = st.one_of(
    st.sampled_from([0.125, 0.25, 0.125 * math.sqrt(2), 0.5, 0.6, 1.0, 5.0, 1e-12]),
    st.floats(1e-3, 2),
)


@st.composite
def clouds(draw: st.DrawFn) -> dict[str, Any]:
    """Two point sets in up to three samples, on a box with periodic axes or not."""
    dim = draw(st.integers(1, 3))
    ends = [
        draw(st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 2 * math.pi), (5.0, 5.3)]))
        for _ in range(dim)
    ]
    lower, upper = zip(*ends, strict=True)
    periodic = tuple(draw(st.booleans()) for _ in range(dim))
    domain = Domain(lower, upper, periodic)
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    result: dict[str, Any] = {"domain": domain, "radius": draw(RADII)}
    for name in ("source", "target"):
        shares = draw(st.lists(st.tuples(*[SHARES] * dim), max_size=25))
        points = torch.tensor(shares, dtype=torch.float64).reshape(-1, dim)
        low = torch.tensor(lower, dtype=torch.float64)
        high = torch.tensor(upper, dtype=torch.float64)
        points = (low + points * (high - low)).minimum(high).to(dtype)
        splits = sorted(
            draw(
                st.lists(st.integers(0, 2), min_size=len(shares), max_size=len(shares))
            )
        )
        result[name] = points
        result[f"{name}_batch"] = torch.tensor(splits, dtype=torch.int64)
    return result


@SLOW_START
@given(cloud=clouds(), batched=st.booleans())
def test_same_edges_as_all_pairs(
    cloud: dict[str, Any], batched: bool, backend: str, brute_force: Reference
) -> None:
    if not batched:
        cloud = {k: v for k, v in cloud.items() if not k.endswith("batch")}
    edges = radius_edges(**cloud, backend=backend)
    assert edges.dtype == torch.int64
    assert torch.equal(edges, brute_force(**cloud))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("radius_in_steps", [1, 2, 3, 4, 7])
def test_lattice_neighbours_on_the_sphere_are_in(
    dim: int, radius_in_steps: int, backend: str
) -> None:
    """Distances of a lattice are integers squared: the count needs no rounding."""
    size = 8
    for periodic in itertools.product([True, False], repeat=dim):
        domain = Domain((0.0,) * dim, (1.0,) * dim, periodic)
        steps = torch.tensor(list(itertools.product(range(size), repeat=dim)))
        pos = (steps / size).float()
        edges = radius_edges(pos, pos, radius_in_steps / size, domain, backend=backend)
        apart = (steps[None] - steps[:, None]).abs()
        around = torch.minimum(apart, size - apart)
        apart = torch.where(torch.tensor(periodic), around, apart)
        near = apart.square().sum(-1) <= radius_in_steps**2
        assert torch.equal(edges, near.nonzero().flip(1).T)


def test_translation_on_the_torus_keeps_edges(backend: str) -> None:
    domain = Domain.unit(2)
    source, target = torch.rand(80, 2).double(), torch.rand(70, 2).double()
    shift = torch.tensor([0.61, 0.83], dtype=torch.float64)
    before = radius_edges(source, target, 0.15, domain, backend=backend)
    moved = domain.wrap(source + shift), domain.wrap(target + shift)
    assert torch.equal(before, radius_edges(*moved, 0.15, domain, backend=backend))


def test_devices(device: torch.device, backend: str, brute_force: Reference) -> None:
    domain = Domain.unit(2)
    source, target = torch.rand(300, 2), torch.rand(200, 2)
    expected = brute_force(source, target, 0.1, domain)
    source, target = source.to(device), target.to(device)
    for name in ("auto", backend):
        edges = radius_edges(source, target, 0.1, domain, backend=name)
        assert edges.device.type == device.type
        assert torch.equal(edges.cpu(), expected)
