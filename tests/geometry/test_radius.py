"""Every backend of the radius search against looking at every pair."""

from __future__ import annotations

import itertools
import math
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import (
    Domain,
    equispaced_grid,
    images,
    radius_edges,
    search_cell_list,
    search_pyg_lib,
)
from nfsgeo.geometry.query import RadiusQuery
from nfsgeo.geometry.radius import BACKENDS

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
    if request.param == "pyg_lib" and not search_pyg_lib.available(CPU):
        pytest.skip("pyg-lib 0.6 or later is not installed")
    return request.param


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


@pytest.mark.parametrize("radius", [0.5, 0.49999, 0.70711, 3.0])
def test_half_a_box_and_more_finds_each_pair_once(
    radius: float, backend: str, brute_force: Reference
) -> None:
    domain = Domain((0.0, 0.0), (1.0, 2.0), (True, True))
    source, target = torch.rand(40, 2), torch.rand(30, 2)
    edges = radius_edges(source, target, radius, domain, backend=backend)
    assert torch.equal(edges, brute_force(source, target, radius, domain))
    if radius == 3.0:
        assert edges.size(1) == 40 * 30


def test_more_than_32_neighbours(backend: str) -> None:
    pos = torch.full((100, 2), 0.5)
    edges = radius_edges(pos, pos, 0.1, Domain.unit(2), backend=backend)
    assert edges.size(1) == 100 * 100


def test_batch_equals_loop_over_samples(backend: str) -> None:
    domain = Domain.unit(2)
    sizes = [(30, 20), (0, 5), (7, 0), (50, 60)]
    sources = [torch.rand(n, 2) for n, _ in sizes]
    targets = [torch.rand(m, 2) for _, m in sizes]
    loop, n, m = [], 0, 0
    for source, target in zip(sources, targets, strict=True):
        edges = radius_edges(source, target, 0.2, domain, backend=backend)
        loop.append(edges + torch.tensor([[n], [m]]))
        n, m = n + source.size(0), m + target.size(0)
    samples = torch.arange(len(sizes))
    edges = radius_edges(
        torch.cat(sources),
        torch.cat(targets),
        0.2,
        domain,
        source_batch=samples.repeat_interleave(torch.tensor([n for n, _ in sizes])),
        target_batch=samples.repeat_interleave(torch.tensor([m for _, m in sizes])),
        backend=backend,
    )
    assert torch.equal(edges, torch.cat(loop, dim=1))


def test_permuting_points_permutes_edges(backend: str) -> None:
    domain = Domain((0.0, 0.0), (1.0, 1.0), (True, False))
    source, target = torch.rand(60, 2), torch.rand(50, 2)
    edges = radius_edges(source, target, 0.2, domain, backend=backend)
    new_source, new_target = torch.randperm(60), torch.randperm(50)
    permuted = radius_edges(
        source[new_source], target[new_target], 0.2, domain, backend=backend
    )
    back = torch.stack([new_source[permuted[0]], new_target[permuted[1]]])
    assert set(map(tuple, back.T.tolist())) == set(map(tuple, edges.T.tolist()))
    assert back.size(1) == edges.size(1)


def test_translation_on_the_torus_keeps_edges(backend: str) -> None:
    domain = Domain.unit(2)
    source, target = torch.rand(80, 2).double(), torch.rand(70, 2).double()
    shift = torch.tensor([0.61, 0.83], dtype=torch.float64)
    before = radius_edges(source, target, 0.15, domain, backend=backend)
    moved = domain.wrap(source + shift), domain.wrap(target + shift)
    assert torch.equal(before, radius_edges(*moved, 0.15, domain, backend=backend))


def test_edges_are_symmetric_when_the_sets_change_places(backend: str) -> None:
    domain = Domain.unit(2)
    source, target = torch.rand(80, 2), torch.rand(70, 2)
    there = radius_edges(source, target, 0.25, domain, backend=backend)
    back = radius_edges(target, source, 0.25, domain, backend=backend).flip(0)
    assert set(map(tuple, there.T.tolist())) == set(map(tuple, back.T.tolist()))


@pytest.mark.parametrize("name", ["auto", "scipy", "cell_list"])
def test_devices(name: str, device: torch.device, brute_force: Reference) -> None:
    domain = Domain.unit(2)
    source, target = torch.rand(300, 2), torch.rand(200, 2)
    edges = radius_edges(
        source.to(device), target.to(device), 0.1, domain, backend=name
    )
    assert edges.device.type == device.type
    assert torch.equal(edges.cpu(), brute_force(source, target, 0.1, domain))


def test_small_pieces_change_nothing(
    monkeypatch: pytest.MonkeyPatch, brute_force: Reference
) -> None:
    monkeypatch.setattr(search_cell_list, "MAX_TARGETS", 7)
    monkeypatch.setattr(RadiusQuery, "piece", 11)
    domain = Domain((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (True, False, True))
    source, target = torch.rand(90, 3), torch.rand(50, 3)
    for radius in (0.1, 0.4, 2.0):
        expected = brute_force(source, target, radius, domain)
        for name in ("scipy", "cell_list"):
            edges = radius_edges(source, target, radius, domain, backend=name)
            assert torch.equal(edges, expected)


def test_cells_are_bounded_in_number(brute_force: Reference) -> None:
    domain = Domain((0.0, 0.0), (1e6, 1.0), (True, False))
    source = torch.rand(50, 2) * torch.tensor([1e6, 1.0])
    query = RadiusQuery.create(source, source, 1e-5, domain, None, None, CPU)
    axes = search_cell_list._axes(query)
    assert math.prod(axis.cells for axis in axes) <= 50 * search_cell_list.CELLS_A_POINT
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
    """What torch-cluster and pyg-lib do: distance < radius, the first ``cap``."""
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
    def candidates(query: RadiusQuery) -> Iterator[tuple[Tensor, Tensor]]:
        return images.candidates_by_images(query, open_search, first_cap)

    monkeypatch.setattr(images, "MAX_SLOTS", 40)
    monkeypatch.setattr(BACKENDS["scipy"], "candidates", candidates)
    domain = Domain((0.0, 0.0), (1.0, 1.0), (True, False))
    source, target = torch.rand(40, 2), torch.rand(37, 2)
    batches: dict[str, Any] = {
        "source_batch": torch.arange(40) // 15,
        "target_batch": torch.arange(37) // 20,
    }
    edges = radius_edges(source, target, radius, domain, backend="scipy", **batches)
    assert torch.equal(edges, brute_force(source, target, radius, domain, **batches))


class TestPygLib:
    """pyg-lib's kernel is stood in for: it is on no package index."""

    @pytest.fixture
    def library(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        def radius(*args: Any) -> Tensor:
            *rest, num_workers, ignore_same_index = args
            assert num_workers == 1 and ignore_same_index is False
            return open_search(*rest)

        library = types.ModuleType("pyg_lib")
        library.__version__ = "0.6.0+pt213cpu"  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "pyg_lib", library)
        monkeypatch.setattr(torch.ops.pyg, "radius", radius, raising=False)
        search_pyg_lib._installed.cache_clear()
        yield library
        search_pyg_lib._installed.cache_clear()

    def test_edges(self, library: Any, brute_force: Reference) -> None:
        domain = Domain.unit(2)
        source, target = torch.rand(40, 2), torch.rand(30, 2)
        edges = radius_edges(source, target, 0.3, domain, backend="pyg_lib")
        assert torch.equal(edges, brute_force(source, target, 0.3, domain))

    @pytest.mark.parametrize("version", ["0.5.0", "0.4.0+pt25", ""])
    def test_older_versions_are_not_used(self, library: Any, version: str) -> None:
        library.__version__ = version
        assert not search_pyg_lib.available(CPU)


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
        monkeypatch.setattr(search_pyg_lib, "available", lambda device: False)
        with pytest.raises(UserError, match="install pyg-lib"):
            radius_edges(self.good, self.good, 0.1, Domain.unit(2), backend="pyg_lib")

    def test_cap_below_one(self) -> None:
        with pytest.raises(UserError, match="at least 1"):
            radius_edges(self.good, self.good, 0.1, Domain.unit(2), max_neighbours=0)


def test_the_upper_end_of_a_periodic_axis_is_its_lower_end() -> None:
    domain = Domain.unit(1)
    pos = torch.tensor([[0.0], [1.0]])
    for name in ("scipy", "cell_list"):
        assert radius_edges(pos, pos, 0.1, domain, backend=name).size(1) == 4


def test_no_points() -> None:
    none, some = torch.empty(0, 2), torch.rand(3, 2)
    for pair in ((none, some), (some, none), (none, none)):
        for name in ("scipy", "cell_list"):
            edges = radius_edges(*pair, 0.1, Domain.unit(2), backend=name)
            assert edges.shape == (2, 0)


def test_regular_grid_has_the_same_neighbourhood_at_every_node() -> None:
    domain = Domain.unit(2)
    grid = equispaced_grid(domain, (16, 16))
    edges = radius_edges(grid, grid, 2 / 16, domain)
    assert torch.bincount(edges[1]).unique().tolist() == [13]
