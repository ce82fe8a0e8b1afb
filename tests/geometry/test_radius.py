"""Every backend of the radius search against looking at every pair."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, bipartite_graph, radius_edges, radius_for, search

CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
SLOW_START = settings(deadline=None, max_examples=60, suppress_health_check=CHECKS)
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
        low, high = torch.tensor([lower, upper], dtype=torch.float64)
        points = (low + points * (high - low)).minimum(high).to(dtype)
        num = len(shares)
        samples = sorted(draw(st.lists(st.integers(0, 2), min_size=num, max_size=num)))
        result[name] = points
        result[f"{name}_batch"] = torch.tensor(samples, dtype=torch.int64)
    return result


@SLOW_START
@given(cloud=clouds(), batched=st.booleans())
def test_same_edges_as_all_pairs(cloud, batched, backend, brute_force):
    if not batched:
        cloud = {k: v for k, v in cloud.items() if not k.endswith("batch")}
    edges = radius_edges(**cloud, backend=backend)
    assert edges.dtype == torch.int64
    assert torch.equal(edges, brute_force(**cloud))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("radius_in_steps", [1, 2, 3, 4, 7])
def test_lattice_neighbours_on_the_sphere_are_in(dim, radius_in_steps, backend):
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


def test_devices(device, backend, brute_force):
    domain = Domain.unit(2)
    source, target = torch.rand(300, 2), torch.rand(200, 2)
    expected = brute_force(source, target, 0.1, domain)
    source, target = source.to(device), target.to(device)
    for name in ("auto", backend):
        edges = radius_edges(source, target, 0.1, domain, backend=name)
        assert edges.device.type == device.type
        assert torch.equal(edges.cpu(), expected)


@pytest.mark.parametrize("lower", [0.0, -3e4])
def test_pairs_as_near_as_the_radius(backend, lower, brute_force):
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


@pytest.mark.cluster
def test_torch_cluster_is_used_where_it_was_built_for(monkeypatch):
    module = pytest.importorskip("torch_cluster")
    used, find = list[str](), module.radius

    def radius(x: Tensor, *args: Any, **options: Any) -> Tensor:
        used.append(x.device.type)
        return find(x, *args, **options)

    monkeypatch.setattr(module, "radius", radius)
    pos = torch.rand(9, 2)
    radius_edges(pos, pos, 0.3, Domain.unit(2))
    assert not used
    radius_edges(pos, pos, 0.3, Domain.unit(2), backend="torch_cluster")
    assert used == ["cpu"]
    assert search.cuda_version() == torch.ops.torch_cluster.cuda_version()


@pytest.mark.parametrize("radius", [0.4, 2.0])
def test_many_pairs_are_decided_in_pieces(radius, backend, brute_force):
    domain = Domain((0.0,) * 3, (1.0,) * 3, (True, False, True))
    given = torch.rand(420, 3), torch.rand(400, 3), radius, domain
    assert torch.equal(radius_edges(*given, backend=backend), brute_force(*given))


GOOD = torch.rand(4, 2)
SAMPLES = torch.zeros(4, dtype=torch.int64)


@pytest.mark.parametrize("x", [1.5, -0.1, math.nan, math.inf])
def test_points_outside_the_domain_are_named(x, refuses):
    bad = torch.cat([GOOD, torch.tensor([[x, 0.5]])])
    for args in ((bad, GOOD), (GOOD, bad)):
        refuses("point 4", radius_edges, *args, 0.1, Domain.unit(2))


def test_ends_that_float32_rounds_beyond_the_domain_are_inside():
    domain = Domain((0.0, 0.0), (1.0, 0.8), (False, False))
    pos = torch.tensor([[0.0, 0.8], [1.0, 0.4]])
    assert pos.double()[0, 1] > 0.8
    for at in (pos, pos.double()):
        edges = radius_edges(at, at, 0.1, domain)
        assert edges.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "given",
    [{"radius": radius} for radius in (0.0, -1.0, math.nan, math.inf)]
    + [{"backend": "kdtree"}],
)
def test_settings_without_meaning_are_refused(given):
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
def test_shapes_and_types(given):
    args = {"source": GOOD, "target": GOOD, "radius": 0.1, "domain": Domain.unit(2)}
    args |= {"source_batch": SAMPLES, "target_batch": SAMPLES}
    with pytest.raises(ValueError, match="expected"):
        radius_edges(**args | given)


def test_a_backend_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(search, "cuda_version", lambda: None)
    with pytest.raises(UserError, match="install torch-cluster"):
        radius_edges(GOOD, GOOD, 0.1, Domain.unit(2), backend="torch_cluster")


@pytest.mark.parametrize(
    ("dim", "ball"), [(1, 2.0), (2, math.pi), (3, 4 / 3 * math.pi)]
)
def test_mean_neighbourhood_of_even_points(dim, ball):
    num_points, c = 4000, 2.0
    domain = Domain((0.0,) * dim, (2.0,) + (1.0,) * (dim - 1), (True,) * dim)
    radius = radius_for(num_points, domain, c)
    expected = c * math.log(num_points)
    assert num_points * ball * radius**dim / domain.volume == pytest.approx(expected)
    source, target = (
        torch.rand(num, dim) * torch.tensor(domain.upper) for num in (num_points, 2000)
    )
    mean = radius_edges(source, target, radius, domain).size(1) / 2000
    assert mean == pytest.approx(expected, rel=0.03)


def test_no_radius_follows(refuses):
    for num_points, c in ((1, 1.0), (0, 1.0), (100, 0.0), (100, math.nan)):
        refuses("expected", radius_for, num_points, Domain.unit(2), c)


def test_neighbourhoods_are_widened_at_ends_that_float32_rounds_up():
    domain = Domain((0.0, 0.0), (1.0, 0.999628), (False, False))
    pos = torch.tensor([[0.5, 0.5], [0.0, 0.999628]])
    graph = bipartite_graph(pos[:1], pos, radius=0.1, domain=domain)
    assert graph.edge_index.tolist() == [[0, 0], [0, 1]]
