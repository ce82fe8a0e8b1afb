"""Graphs of meshes seen before."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    GraphCache,
    bipartite_graph,
    equispaced_grid,
)

TORUS = Domain.unit(2)
RADIUS = 0.15
GRID = equispaced_grid(TORUS, (8, 8))
KINDS = ["points_to_grid", "grid_to_points", "points_to_points"]


def mesh(seed: int, num: int = 50) -> Tensor:
    return torch.rand(num, 2, generator=torch.Generator().manual_seed(seed))


def join(meshes: list[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([m.size(0) for m in meshes])
    return torch.cat(meshes), torch.arange(len(meshes)).repeat_interleave(sizes)


def ask(
    cache: GraphCache, kind: str, pos: Tensor, batch: Tensor | None
) -> BipartiteGraph:
    if kind == "points_to_grid":
        return cache.points_to_grid(pos, batch, GRID.to(pos.device))
    if kind == "grid_to_points":
        return cache.grid_to_points(GRID.to(pos.device), pos, batch)
    return cache.points_to_points(pos, batch)


def direct(kind: str, pos: Tensor, batch: Tensor) -> BipartiteGraph:
    num = int(batch[-1]) + 1
    nodes = GRID.repeat(num, 1)
    node_batch = torch.arange(num).repeat_interleave(len(GRID))
    source = (nodes, node_batch) if kind == "grid_to_points" else (pos, batch)
    target = (nodes, node_batch) if kind == "points_to_grid" else (pos, batch)
    return bipartite_graph(
        source[0],
        target[0],
        RADIUS,
        TORUS,
        source_batch=source[1],
        target_batch=target[1],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_graph_of_the_batch(kind: str, device: torch.device) -> None:
    pos, batch = join([mesh(0), mesh(1, 20), mesh(0), mesh(2, 1)])
    cache = GraphCache(TORUS, RADIUS)
    expected = direct(kind, pos, batch)
    for _ in range(2):
        graph = ask(cache, kind, pos.to(device), batch.to(device))
        assert graph.edge_index.device.type == device.type
        graph = graph.to("cpu")
        assert torch.equal(graph.edge_index, expected.edge_index)
        assert torch.equal(graph.ptr, expected.ptr)
        assert torch.equal(graph.displacement, expected.displacement)
        assert torch.equal(graph.transpose.permutation, expected.transpose.permutation)
        assert torch.equal(graph.transpose.ptr, expected.transpose.ptr)
        assert graph.num_source == expected.num_source
        assert graph.num_target == expected.num_target


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_one_mesh_cost_one_search(kind: str) -> None:
    cache = GraphCache(TORUS, RADIUS)
    pos, batch = join([mesh(0)] * 4)
    first = ask(cache, kind, pos, batch)
    assert (cache.searches, cache.mesh_hits, cache.batch_hits) == (1, 3, 0)
    assert ask(cache, kind, pos.clone(), batch) is first
    assert (cache.searches, cache.mesh_hits, cache.batch_hits) == (1, 3, 1)
    ask(cache, kind, *join([mesh(0)] * 2))
    assert (cache.searches, cache.mesh_hits, cache.batch_hits) == (1, 5, 1)


def test_no_batch_is_one_sample() -> None:
    cache = GraphCache(TORUS, RADIUS)
    graph = cache.points_to_points(mesh(0), None)
    assert cache.points_to_points(*join([mesh(0)])) is graph


def test_meshes_of_a_batch_in_another_order_are_known() -> None:
    cache = GraphCache(TORUS, RADIUS)
    cache.points_to_points(*join([mesh(0), mesh(1)]))
    pos, batch = join([mesh(1), mesh(0)])
    graph = cache.points_to_points(pos, batch)
    assert (cache.searches, cache.mesh_hits, cache.batch_hits) == (2, 2, 0)
    expected = direct("points_to_points", pos, batch)
    assert torch.equal(graph.edge_index, expected.edge_index)


def test_positions_changed_in_place_are_another_mesh() -> None:
    cache = GraphCache(TORUS, RADIUS)
    pos = mesh(0)
    before = cache.points_to_points(pos, None)
    pos[0] = 1 - pos[0]
    after = cache.points_to_points(pos, None)
    assert cache.searches == 2
    assert not torch.equal(before.displacement, after.displacement)


def test_another_grid_is_another_graph() -> None:
    cache = GraphCache(TORUS, RADIUS)
    fine = equispaced_grid(TORUS, (16, 16))
    assert cache.points_to_grid(mesh(0), None, GRID).num_target == 64
    assert cache.points_to_grid(mesh(0), None, fine).num_target == 256
    assert cache.searches == 2


def test_least_recently_used_mesh_goes_first() -> None:
    cache = GraphCache(TORUS, RADIUS, capacity=2)

    def searched(*seeds: int) -> int:
        before = cache.searches
        # A companion of its own keeps the whole batch from being known.
        cache.points_to_points(*join([mesh(s) for s in seeds]))
        return cache.searches - before

    assert searched(0, 1) == 2
    assert searched(0, 0, 2) == 1  # 1 is the oldest and goes
    assert searched(2, 0) == 0
    assert searched(0, 1) == 0  # this very batch is kept whole
    assert searched(1, 1) == 1


def test_kinds_do_not_push_each_other_out() -> None:
    cache = GraphCache(TORUS, RADIUS, capacity=1)
    for repeats in (1, 2, 3):
        for kind in KINDS:
            ask(cache, kind, *join([mesh(0)] * repeats))
    assert cache.searches == 3


def test_batches_kept_are_few() -> None:
    cache = GraphCache(TORUS, RADIUS)
    for repeats in range(1, 30):
        cache.points_to_points(*join([mesh(0, 5)] * repeats))
    assert len(cache._batches.entries) < 10
    assert cache.searches == 1


def test_copies_start_empty() -> None:
    cache = GraphCache(TORUS, RADIUS, backend="cell_list", capacity=3)
    cache.points_to_points(mesh(0), None)
    other = copy.deepcopy(cache)
    assert (other.searches, other.radius, other.capacity) == (0, RADIUS, 3)
    other.points_to_points(mesh(0), None)
    assert (other.searches, cache.searches) == (1, 1)


def test_settings_reach_the_search(caplog: pytest.LogCaptureFixture) -> None:
    cache = GraphCache(TORUS, 0.9, max_neighbours=3)
    graph = cache.points_to_points(mesh(0), None)
    assert graph.degree().unique().tolist() == [3]
    assert "leaves out" in caplog.text
    with pytest.raises(ValueError, match="backend"):
        GraphCache(TORUS, 0.9, backend="none").points_to_points(mesh(0), None)


def test_first_seen_in_inference_mode() -> None:
    cache = GraphCache(TORUS, RADIUS)
    pos, batch = join([mesh(0), mesh(1)])
    with torch.inference_mode():
        cache.points_to_grid(pos * 1, batch, GRID)
    graph = cache.points_to_grid(pos, batch, GRID)
    assert cache.batch_hits == 1
    assert not graph.displacement.is_inference()


def test_sample_without_points() -> None:
    cache = GraphCache(TORUS, RADIUS)
    pos, batch = mesh(0), torch.arange(50) // 25 * 2
    with pytest.raises(ValueError, match="sample 1 of 3 has no point"):
        cache.points_to_grid(pos, batch, GRID)
    assert cache.grid_to_points(GRID, pos, batch).num_source == 3 * 64
    assert cache.points_to_points(pos[:0], None).num_edges == 0
    assert cache.points_to_points(pos[:0], batch[:0]).num_edges == 0


def test_last_samples_without_a_query_still_have_a_grid() -> None:
    cache = GraphCache(TORUS, RADIUS)
    pos, batch = join([mesh(0), mesh(1)])
    graph = cache.grid_to_points(GRID, pos, batch, num_samples=4)
    short = cache.grid_to_points(GRID, pos, batch)
    assert (short.num_source, graph.num_source) == (2 * 64, 4 * 64)
    assert torch.equal(graph.edge_index, short.edge_index)
    assert graph.transpose.ptr.numel() == 4 * 64 + 1


@pytest.mark.parametrize("batch", [torch.tensor([0, 1]), torch.arange(50) % 2])
def test_batches_that_do_not_fit_are_refused(batch: Tensor) -> None:
    with pytest.raises(ValueError, match="sorted"):
        GraphCache(TORUS, RADIUS).points_to_points(mesh(0), batch)


def test_capacity_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 mesh"):
        GraphCache(TORUS, RADIUS, capacity=0)


def test_queries_of_their_own_for_every_sample():
    """Also none for a sample; searched once for each pair of meshes."""
    cache = GraphCache(TORUS, RADIUS, interpolation="spline")
    sizes, asked = ([40, 20, 30], [30, 0, 20])
    (pos, batch), (queries, asking) = (
        (mesh(k, sum(n)), torch.arange(3).repeat_interleave(torch.tensor(n)))
        for k, n in enumerate((sizes, asked))
    )
    graph = cache.points_to_queries(pos, batch, queries, asking)
    assert graph.num_source == 90 and graph.num_target == 50
    first = 0
    pairs = zip(pos.split(sizes), queries.split(asked), strict=True)
    for number, (own, its_queries) in enumerate(pairs):
        alone = bipartite_graph(own, its_queries, RADIUS, TORUS, interpolation="spline")
        edges = slice(first, first + alone.num_edges)
        torch.testing.assert_close(graph.weight[edges], alone.weight)
        assert (batch[graph.edge_index[0, edges]] == number).all()
        first += alone.num_edges
    assert first == graph.num_edges and cache.searches == 3
    assert cache.points_to_queries(pos, batch, queries.clone(), asking) is graph
