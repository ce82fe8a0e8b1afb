"""Batches that carry their graphs: one search for each mesh, within a bound."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import nfsgeo.data
from nfsgeo.data.meshes import MeshesInTurn, random_subset
from nfsgeo.data.windows import ConnectedBatches, WindowDataset, batches
from nfsgeo.geometry import Domain, GraphBuilder, Graphs

BUILDER = GraphBuilder(Domain.unit(2), 0.2)


class Connect:
    """Joins points to each other and counts how often."""

    calls = 0

    def __call__(self, pos: Tensor) -> Graphs:
        self.calls += 1
        near = BUILDER.points_to_points(pos.float())
        return Graphs(pos.float(), (len(pos),), edges={"near": near})


@pytest.fixture
def file(waves: Path) -> nfsgeo.data.Fields:
    return nfsgeo.data.open(waves)


def test_batches_carry_the_graphs_of_their_points(file):
    meshes = [random_subset(file, 20 + n, seed=0, sample=n) for n in range(3)]
    windows = WindowDataset(file, range(6), 2, 2, MeshesInTurn(tuple(meshes)))
    connect = Connect()
    for epoch in range(2):
        windows.turn = epoch
        for batch in batches(windows, 4, connect):
            assert torch.equal(batch.graphs.pos, batch.pos.float())
            assert torch.equal(batch.graphs.batch, batch.batch)
            assert batch.graphs.edges["near"].num_source == len(batch.pos)
    assert connect.calls == 2 * 3


def test_a_mesh_is_connected_once_while_it_fits_into_memory(file):
    windows = WindowDataset(file, range(4), 2, 2, partial(random_subset, file, 20, 0))
    for bound, calls in ((2**20, 4), (0, 8)):
        connect = Connect()
        collate = ConnectedBatches(connect, max_bytes=bound)
        for _ in range(2):
            list(DataLoader(windows, batch_size=2, collate_fn=collate))
        assert connect.calls == calls


def test_workers_connect(file):
    windows = WindowDataset(file, range(4), 2, 2, partial(random_subset, file, 20, 0))
    collate = ConnectedBatches(Connect())
    alone = DataLoader(windows, batch_size=2, collate_fn=collate)
    loader = DataLoader(windows, batch_size=2, collate_fn=collate, num_workers=2)
    for here, there in zip(alone, loader, strict=True):
        edges = (batch.graphs.edges["near"].edge_index for batch in (here, there))
        assert torch.equal(*edges)
