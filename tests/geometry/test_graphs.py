"""Graphs of batches: joined samples, copies, devices, worker processes."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, Graphs, bipartite_graph
from nfsgeo.geometry.graphs import by_sample

TORUS = Domain.unit(2)


def mesh(seed: int, num: int = 30) -> Tensor:
    return torch.rand(num, 2, generator=torch.Generator().manual_seed(seed))


def graphs_of(pos: Tensor, query_pos: Tensor | None = None) -> Graphs:
    queries = pos if query_pos is None else query_pos
    near = bipartite_graph(pos, queries, 0.2, TORUS)
    sizes = None if query_pos is None else (len(query_pos),)
    return Graphs(pos, (len(pos),), query_pos, sizes, {"near": near})


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0, 0, 0), (0, 0, 1)])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_joined_samples_are_the_graph_of_the_batch(seeds, elsewhere):
    meshes = [mesh(seed, 20 + seed) for seed in seeds]
    queries = [mesh(seed + 9, 5 + seed) if elsewhere else None for seed in seeds]
    joined = Graphs.join(list(map(graphs_of, meshes, queries)))
    ends, sizes, batches = [], [], []
    for parts in (meshes, queries if elsewhere else meshes):
        sizes.append(tuple(map(len, parts)))
        batches.append(torch.arange(3).repeat_interleave(torch.tensor(sizes[-1])))
        ends.append(torch.cat(parts))
    of = dict(zip(("source_batch", "target_batch"), batches, strict=True))
    direct, near = bipartite_graph(*ends, 0.2, TORUS, **of), joined.edges["near"]
    for name in ("edge_index", "ptr", "displacement", "base_weight"):
        assert torch.equal(getattr(near, name), getattr(direct, name))
    # Joined from those of the samples, and sorted anew.
    permutation = replace(direct).transpose.permutation
    assert torch.equal(near.transpose.permutation, permutation)
    assert torch.equal(joined.pos, ends[0]) and torch.equal(joined.queries, ends[1])
    assert torch.equal(joined.batch, batches[0]) and joined.sizes == sizes[0]
    assert elsewhere or joined.queries is joined.pos
    if elsewhere:
        assert joined.query_sizes == sizes[1]
        assert torch.equal(joined.query_batch, batches[1])
        with pytest.raises(ValueError, match="in all or none"):
            Graphs.join([graphs_of(meshes[0]), graphs_of(meshes[0], queries[0])])


def test_copies_of_one_mesh_are_put_side_by_side_once():
    one = graphs_of(mesh(0))
    twice = Graphs.join([one, one]).edges["near"]
    assert Graphs.join([one, one]).edges["near"] is twice
    assert Graphs.join([one] * 3).edges["near"].num_source == 90
    assert Graphs.join([one]) is one and one.batch is None


def test_a_copy_holds_the_edges_and_not_what_is_made_of_them():
    """Nor does what a worker process sends, which is copied likewise."""
    one = graphs_of(mesh(0))
    near = one.edges["near"]
    assert near.transpose
    plain = one.nbytes
    near.csr, near.repeated(8)
    assert one.nbytes > 8 * plain
    other = copy.deepcopy(one)
    assert other.nbytes == plain
    assert torch.equal(other.edges["near"].edge_index, near.edge_index)
    assert torch.equal(Graphs.join([other] * 2).pos, torch.cat([one.pos] * 2))


def test_rows_are_some_of_the_targets():
    near, x = graphs_of(mesh(0), mesh(1, 11)).edges["near"], torch.randn(30)

    def sums(graph: BipartiteGraph) -> Tensor:
        source, target = graph.edge_index
        value = graph.base_weight * x[source]
        return torch.zeros(graph.num_target).index_add(0, target, value)

    for rows in ((3, 8), (0, 11)):
        part = near.rows(*rows)
        assert part.num_source == 30
        torch.testing.assert_close(sums(part), sums(near)[slice(*rows)])


def test_points_of_samples():
    pos, few = torch.rand(5, 2), torch.rand(2, 2)
    assert by_sample(pos, few, None, None) == [(pos, few)]
    batch = torch.tensor([0, 0, 2, 2, 2])
    found = by_sample(pos, few, batch, torch.tensor([1, 2]))
    assert [[*map(len, ends)] for ends in found] == [[2, 0], [0, 1], [3, 1]]
    for wrong in (torch.tensor([0, 1, 0, 0, 0]), torch.tensor([0, 0]), None):
        with pytest.raises(ValueError, match="sort the points by sample"):
            by_sample(pos, pos, wrong, batch)
