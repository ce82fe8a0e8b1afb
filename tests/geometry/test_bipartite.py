"""Bipartite graphs: displacements, transposes, and widened neighbourhoods."""

import copy
import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    batch_graphs,
    bipartite_graph,
    nearest_neighbour_graph,
    quadrature_weights,
)

MIXED = Domain((0.0, -1.0), (1.0, 1.0), (True, False))


def cloud(num: int, seed: int) -> Tensor:
    unit = torch.rand(num, 2, generator=torch.Generator().manual_seed(seed))
    return torch.tensor(MIXED.lower) + torch.tensor(MIXED.lengths) * unit


def assert_equal(a: BipartiteGraph, b: BipartiteGraph) -> None:
    assert (a.num_source, a.num_target) == (b.num_source, b.num_target)
    for name in ("edge_index", "ptr", "displacement"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    for mine, other in zip(a.transpose, b.transpose, strict=True):
        assert torch.equal(mine, other)


def test_to_device(device):
    graph = bipartite_graph(cloud(20, 0), cloud(10, 1), 0.4, MIXED)
    untouched = copy.copy(graph)
    graph.transpose  # noqa: B018
    for each in (graph, untouched):
        moved = each.to(device)
        assert moved.ptr.device.type == moved.transpose.ptr.device.type == device.type
        assert_equal(moved.to("cpu"), graph)
    assert graph.to("cpu") is graph


def test_graph_built_in_inference_mode_serves_training():
    source, target = cloud(30, 0), cloud(20, 1)
    with torch.inference_mode():
        graph = bipartite_graph(source * 1, target * 1, 0.1, MIXED)
        turned = graph.transpose
        joined = batch_graphs([graph, graph])
    weight = torch.ones(graph.num_edges, 1, requires_grad=True)
    x = torch.rand(30, requires_grad=True)
    (weight * graph.displacement * x[graph.edge_index[0], None]).sum().backward()
    assert weight.grad is not None and x.grad is not None
    for tensor in (graph.edge_index, graph.ptr, *turned, *joined.transpose):
        assert not tensor.is_inference()
    assert not joined.displacement.is_inference()


def test_displacement_is_computed_in_float64():
    """Neighbours far from the origin keep all digits of their difference."""
    domain = Domain((1e6,), (1e6 + 1,), (True,))
    source = torch.tensor([[1e6 + 0.999999]], dtype=torch.float64)
    target = torch.tensor([[1e6 + 0.000001]], dtype=torch.float64)
    graph = bipartite_graph(source, target, 0.1, domain)
    assert graph.displacement.dtype == torch.float32
    assert float(graph.displacement) == pytest.approx(2e-6, rel=1e-3)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), radius=st.sampled_from([1e-3, 0.05, 0.1]))
def test_empty_neighbourhoods_get_the_nearest_source(seed, radius):
    source, target = cloud(40, seed), cloud(60, seed + 1)
    graph = bipartite_graph(source, target, radius, MIXED)
    assert (graph.degree() >= 1).all()
    distance = MIXED.distance(source.double()[None], target.double()[:, None])
    empty = (distance > radius).all(dim=1)
    assert empty.any()
    given_source = graph.edge_index[0, graph.ptr[:-1][empty]]
    assert torch.equal(given_source, distance.argmin(dim=1)[empty])
    assert (graph.degree()[empty] == 1).all()
    kept = ~empty[graph.edge_index[1]]
    assert (distance <= radius).sum() == kept.sum()


@settings(deadline=None, max_examples=20)
@given(
    shift=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    interpolation=st.sampled_from(["mean", "linear", "quadratic", "spline"]),
)
def test_the_torus_has_no_seam(shift, interpolation):
    torus, ends = Domain.unit(2), (cloud(60, 0).double(), cloud(40, 1).double())
    weights = torch.zeros(2, 60, 40, dtype=torch.float64)
    for dense, move in zip(weights, ((0.0, 0.0), shift), strict=True):
        source, target = (
            torus.wrap(pos + torch.tensor(move, dtype=torch.float64)) for pos in ends
        )
        graph = bipartite_graph(
            source, target, 0.25, torus, interpolation=interpolation
        )
        dense[*graph.edge_index] = graph.base_weight.double()
    torch.testing.assert_close(*weights, rtol=0, atol=1e-6)


def test_sample_without_a_source_is_refused():
    batches = {"source_batch": torch.tensor([0, 0, 0, 2])}
    batches["target_batch"] = torch.tensor([0, 1, 1, 1, 2, 2])
    with pytest.raises(ValueError, match="a sample without a source"):
        bipartite_graph(cloud(4, 0), cloud(6, 1), 0.1, MIXED, **batches)


def test_nearest_neighbours_are_of_the_same_sample():
    clouds = [cloud(20, 0), cloud(3, 1), cloud(30, 2)]
    batch = torch.cat([torch.full((len(c),), i) for i, c in enumerate(clouds)])
    places = torch.cat(clouds)
    many = {"source_batch": batch, "target_batch": batch}
    joined = nearest_neighbour_graph(places, places, 5, MIXED, **many)
    assert (batch[joined.edge_index[0]] == batch[joined.edge_index[1]]).all()
    alone = [nearest_neighbour_graph(each, each, 5, MIXED) for each in clouds]
    assert_equal(joined, batch_graphs(alone))
    with pytest.raises(ValueError, match="a batch vector"):
        nearest_neighbour_graph(places, places, 5, MIXED, source_batch=batch)
    with pytest.raises(ValueError, match="a sample without a source"):
        nearest_neighbour_graph(
            places[:20], places, 5, MIXED, source_batch=batch[:20], target_batch=batch
        )


def _o_grid(lines: int, around: int) -> Tensor:
    radius = torch.logspace(-1.3, -0.31, lines, dtype=torch.float64)
    angle = torch.arange(around, dtype=torch.float64) * (2 * math.pi / around)
    place = torch.stack([angle.cos(), angle.sin()], dim=1)
    return (0.5 + radius[:, None, None] * place).flatten(0, 1)


def _lattice(num: int, dim: int) -> Tensor:
    line = (torch.arange(num, dtype=torch.float64) + 0.5) / num
    return torch.cartesian_prod(*[line] * dim)


TIED = {
    "square": _lattice(13, 2),
    "cube": _lattice(6, 3),
    "O-grid": _o_grid(12, 12),
}


@pytest.mark.parametrize("pos", TIED.values(), ids=TIED)
@pytest.mark.parametrize("num", [8, 9])
def test_rounding_and_order_do_not_choose_among_neighbours_as_far(pos, num):
    domain = Domain.unit(pos.size(1), periodic=False)

    def chosen(place: Tensor, numbers: Tensor) -> Tensor:
        source, target = nearest_neighbour_graph(place, place, num, domain).edge_index
        ends = torch.stack([numbers[target], numbers[source]])
        return ends[:, (ends[0] * len(place) + ends[1]).argsort()]

    generator = torch.Generator().manual_seed(0)
    same = torch.arange(len(pos))
    expected = chosen(pos, same)
    noise = torch.rand(pos.shape, generator=generator, dtype=torch.float64) - 0.5
    order = torch.randperm(len(pos), generator=generator)
    assert torch.equal(chosen(pos.float(), same), expected)
    assert torch.equal(chosen((pos + 1e-9 * noise).clamp(0, 1), same), expected)
    assert torch.equal(chosen(pos[order], order), expected)


@pytest.mark.parametrize("domain", [MIXED, Domain.sphere()], ids=["box", "sphere"])
def test_order_does_not_choose_among_points_at_one_place(domain):
    unit = torch.rand(120, 2, generator=torch.Generator().manual_seed(0))
    pos = torch.tensor(domain.lower) + torch.tensor(domain.lengths) * unit
    pos[:20, 0] = domain.lower[0]
    pos[20:60] = pos[:20].repeat(2, 1)
    pos[20:40, 0] = domain.upper[0]  # the same place on a periodic axis
    order = torch.randperm(120)
    space = domain.normalised
    place = domain.normalise(pos)
    for make in (
        partial(nearest_neighbour_graph, num=8),
        partial(bipartite_graph, radius=None, interpolation="spline"),
        partial(bipartite_graph, radius=0.1, interpolation="spline", nearest=1),
        partial(bipartite_graph, radius=1e-6),
    ):
        target = torch.cat(
            [place[::3], domain.normalise(pos.roll(1, 0).lerp(pos, 0.5))]
        )
        weights = []
        for numbers in (torch.arange(120), order):
            graph = make(place[numbers], target, domain=space)
            dense = graph.base_weight.new_zeros(len(target), 120)
            source, ends = numbers[graph.edge_index[0]], graph.edge_index[1]
            weights.append(dense.index_put((ends, source), graph.base_weight + 1))
        torch.testing.assert_close(*weights)
    weight = quadrature_weights(pos, domain)
    torch.testing.assert_close(quadrature_weights(pos[order], domain), weight[order])
