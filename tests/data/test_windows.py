"""Windows: right values in right places, few reads and searches, bounded memory."""

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fields import Array, build
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.loader import DataLoader as GraphLoader

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import STATIC
from nfsgeo.data.meshes import (
    MeshesInTurn,
    SubsetsInTurn,
    every_point,
    off_grid,
    random_subset,
    with_queries,
)
from nfsgeo.data.windows import ConnectedBatches, WindowDataset, batches
from nfsgeo.geometry import Domain, GraphBuilder, Graphs, quadrature_weights


@pytest.fixture
def file(grid_case: Any) -> Iterator[Fields]:
    with nfsgeo.data.open(grid_case.path) as opened:
        yield opened


def test_static_problem_maps_coefficient_to_solution():
    u, a = (np.random.rand(3, 12, n).astype("f4") for n in (1, 2))
    arrays = [Array(u, "npc", ["u"]), Array(a, "npc", ["a", "b"], STATIC)]
    file = build(Path("darcy"), arrays, points=np.random.rand(12, 2), times=[0.0])
    data = WindowDataset(file, range(3), 0, 1, every_point(file))[2]
    np.testing.assert_array_equal(data.x, a[2][:, None])
    np.testing.assert_array_equal(data.y, u[2][:, None])


def test_off_grid_mesh_is_interpolated():
    x, y = np.arange(8) / 8, np.arange(6) / 6
    wave = np.cos(2 * np.pi * (x[:, None] + 2 * y))
    u, domain = Array(np.stack([wave, 2 * wave]), "txy", ["u"]), Domain.unit(2)
    file = build(Path("a"), [u], axes=[x, y], times=[0.0, 1.0], domain=domain)
    for mesh in (off_grid(file, 20, 0), partial(off_grid, file, 20, 0)):
        data = WindowDataset(file, [0], 1, 1, mesh)[0]
        exact = torch.cos(2 * torch.pi * (data.pos[:, 0] + 2 * data.pos[:, 1])).to(
            data.x
        )
        torch.testing.assert_close(data.x[:, 0, 0], exact, atol=1e-5, rtol=0)
        torch.testing.assert_close(data.y[:, 0, 0], 2 * exact, atol=1e-5, rtol=0)


def test_positions_keep_their_digits_far_from_the_origin():
    axis, domain = 1e6 + np.arange(512) / 512, Domain((1e6,), (1e6 + 1,), (True,))
    u = Array(np.zeros((2, 512), "f4"), "tx", ["u"])
    file = build(Path("a"), [u], axes=[axis], times=[0.0, 1.0], domain=domain)
    pos = WindowDataset(file, [0], 1, 1, every_point(file))[0].pos
    assert len(pos.unique()) == 512
    assert len(file.domain.normalise(pos).unique()) == 512


@pytest.mark.slow
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_workers_read_the_same(file, method, workers):
    mesh = partial(random_subset, file, 8, 0)
    dataset = WindowDataset(file, range(7), 2, 3, mesh)
    alone = list(GraphLoader(dataset, batch_size=2))
    loader = GraphLoader(
        dataset, batch_size=2, num_workers=workers, multiprocessing_context=method
    )
    for expected, found in zip(alone, loader, strict=True):
        torch.testing.assert_close(found.x, expected.x)
        torch.testing.assert_close(found.y, expected.y)
    again = copy.deepcopy(dataset)
    assert again.file is not dataset.file
    torch.testing.assert_close(again[3].x, dataset[3].x)


def test_values_that_are_not_finite_name_file_and_sample(grid_case, one_line):
    grid_case.u[4, 0, 0, 0, 0] = np.inf
    file = grid_case.make(grid_case.u)
    dataset = WindowDataset(file, range(7), 1, 1, every_point(file))
    dataset[3]
    message = one_line(dataset.__getitem__, 4)
    assert "sample 4" in message and str(file.path) in message


def test_windows_that_do_not_fit_are_refused(file, point_case, one_line):
    mesh = every_point(file)
    assert "5 time steps" in one_line(WindowDataset, file, [0], 2, 4, mesh)
    one_line(WindowDataset, file, [0], 2, 3, mesh, first_step=1)
    one_line(WindowDataset, file, [0], 1, 2, mesh, numbers=3 * np.arange(3))
    with nfsgeo.data.open(point_case.path) as points:
        one_line(WindowDataset, points, [0], 0, 1, every_point(points))


def test_in_every_turn_a_sample_is_on_another_mesh(grid_case, file):
    meshes = [random_subset(file, 9, 0, each) for each in range(3)]
    dataset = WindowDataset(file, [5, 1], 2, 2, MeshesInTurn(tuple(meshes)))
    for epoch in (0, 1, 2, 4, 0):
        dataset.epoch = epoch
        for item, sample in enumerate((5, 1)):
            mesh = meshes[(sample + epoch) % 3]
            u = grid_case.u[sample].reshape(5, 24, 2)[:, mesh.index].swapaxes(0, 1)
            data = dataset[item]
            assert data.x.dtype == torch.float32
            np.testing.assert_array_equal(data.pos, mesh.pos)
            np.testing.assert_array_equal(data.x[..., :2], u[:, :2])
            np.testing.assert_array_equal(data.y, u[:, 2:4])


def test_items_of_equal_mesh_numbers_have_equal_points(grid_case, file):
    meshes = [random_subset(file, 9 + k, 0, k) for k in range(2)]
    numbers = np.array([0, 1, 0, 1, 0, 1, 0])
    observed = SubsetsInTurn(lambda sample: meshes[numbers[sample]], numbers, 0.3, 0)
    dataset = WindowDataset(file, range(7), 2, 2, observed)
    points: dict[int, np.ndarray] = {}
    for epoch in range(12):
        dataset.epoch = epoch
        for sample, data in enumerate(dataset):
            mesh = observed(sample, epoch)
            u = grid_case.u[sample].reshape(5, 24, 2)[:, mesh.index].swapaxes(0, 1)
            np.testing.assert_array_equal(data.x[..., :2], u[:, :2])
            np.testing.assert_array_equal(data.y, u[:, 2:4])
            seen = points.setdefault(data.mesh, data.pos.numpy())
            np.testing.assert_array_equal(seen, data.pos)
    assert len(points) == 2 * observed.period
    assert len({pos.tobytes() for pos in points.values()}) > observed.period


def test_items_tell_the_volumes_of_their_points(file):
    mesh = random_subset(file, 9, 0)
    dataset = WindowDataset(file, [5, 1], 2, 2, mesh, volumes=True)
    expected = 9 * quadrature_weights(torch.from_numpy(mesh.pos), file.domain)
    for item in dataset:
        assert item.volume.dtype == torch.float32
        torch.testing.assert_close(item.volume, expected.float())
        item.volume.zero_()  # a copy
    assert "volume" not in WindowDataset(file, [5], 2, 2, mesh)[0]


def test_items_hold_unobserved_query_points_and_their_targets(grid_case, file):
    mesh = with_queries(random_subset(file, 9, seed=0), file, 6, seed=0)
    assert mesh.queries is not None and mesh.queries.index is not None
    assert not set(mesh.queries.index) & set(mesh.index)
    data = WindowDataset(file, [5], 2, 2, mesh, volumes=True)[0]
    plain = WindowDataset(file, [5], 2, 2, random_subset(file, 9, seed=0))[0]
    index = np.concatenate([mesh.index, mesh.queries.index])
    u = grid_case.u[5].reshape(5, 24, 2)[:, index].swapaxes(0, 1)
    np.testing.assert_array_equal(data.query_y, u[:, 2:4])
    np.testing.assert_array_equal(data.query_pos[:9], mesh.pos)
    np.testing.assert_array_equal(data.query_pos[9:], mesh.queries.pos)
    for name in ("x", "y", "pos"):
        assert torch.equal(data[name], plain[name])
    assert len(data.volume) == 15 and (data.volume[9:] == 1).all()
    assert "query_pos" not in plain


def test_noise_is_on_the_inputs_alone_and_new_in_every_turn(file):
    mesh = random_subset(file, 9, seed=0)
    clean, noisy = (WindowDataset(file, [5, 1], 2, 2, mesh) for _ in range(2))
    noisy.noise = torch.tensor([0.5, 0.0, 2.0])  # the last is of the coefficient
    for item in range(2):
        assert torch.equal(noisy[item].y, clean[item].y)
        assert torch.equal(noisy[item].x, noisy[item].x)
    added = torch.stack([noisy[item].x - clean[item].x for item in range(2)])
    assert (added[..., 0] != 0).all() and (added[..., 1:] == 0).all()
    assert not torch.equal(added[0], added[1])
    drawn = []
    for noisy.epoch in range(1, 200):
        drawn.append(noisy[0].x - clean[0].x)
    std = torch.stack([added[0], *drawn]).std(dim=(0, 1, 2))
    torch.testing.assert_close(std, torch.tensor([0.5, 0, 0]), rtol=0.05, atol=0)


def test_memory_is_bounded():
    made: list[int] = []

    def make(key: int) -> np.ndarray:
        made.append(key)
        return np.full(100, key, np.uint8)

    cache = Cache(200)
    for key in (0, 1, 0, 2, 0, 1):
        assert cache.get(key, partial(make, key))[0] == key
    assert made == [0, 1, 2, 1]
    again = copy.copy(cache)  # as other processes are given it
    again.get(1, partial(make, 1))
    none = Cache(99)
    for _ in range(2):
        assert none.get(3, partial(make, 3))[0] == 3
    assert made[4:] == [1, 3, 3]


BUILDER = GraphBuilder(Domain.unit(2), 0.2)


class Connect:
    """Joins points to each other and counts how often."""

    calls = 0

    def __call__(self, pos: Tensor, **_: Tensor) -> Graphs:
        self.calls += 1
        near = BUILDER.points_to_points(pos.float())
        return Graphs(pos.float(), (len(pos),), edges={"near": near})


@pytest.fixture
def long_file(waves: Path) -> nfsgeo.data.Fields:
    return nfsgeo.data.open(waves)


@pytest.fixture
def long_windows(long_file: Fields) -> WindowDataset:
    mesh = partial(random_subset, long_file, 20, 0)
    return WindowDataset(long_file, range(4), 2, 2, mesh)


def test_batches_carry_the_graphs_of_their_points(long_file):
    meshes = [random_subset(long_file, 20 + n, seed=0, sample=n) for n in range(3)]
    windows = WindowDataset(long_file, range(6), 2, 2, MeshesInTurn(tuple(meshes)))
    connect = Connect()
    for epoch in range(2):
        windows.epoch = epoch
        for batch in batches(windows, 4, connect):
            assert torch.equal(batch.graphs.pos, batch.pos.float())
            assert torch.equal(batch.graphs.batch, batch.batch)
            assert batch.graphs.edges["near"].num_source == len(batch.pos)
    assert connect.calls == 2 * 3


def test_a_mesh_is_connected_once_while_it_fits_into_memory(long_windows):
    for bound, calls in ((2**20, 4), (0, 8)):
        connect = Connect()
        collate = ConnectedBatches(connect, max_bytes=bound)
        for _ in range(2):
            list(DataLoader(long_windows, batch_size=2, collate_fn=collate))
        assert connect.calls == calls


def test_workers_connect(long_windows):
    how = {"batch_size": 2, "collate_fn": ConnectedBatches(Connect())}
    pair = (DataLoader(long_windows, **how, num_workers=num) for num in (0, 2))
    for here, there in zip(*pair, strict=True):
        edges = (batch.graphs.edges["near"].edge_index for batch in (here, there))
        assert torch.equal(*edges)
