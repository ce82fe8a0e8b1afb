"""What a configuration leaves to the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.training import load_config
from nfsgeo.training.config import RunConfig
from nfsgeo.training.resolution import resolved
from nfsgeo.training.run_data import RunData


def resolve(path: Path, **overrides: Any) -> RunConfig:
    keys = {name.replace("__", "."): value for name, value in overrides.items()}
    with nfsgeo.data.open(path) as file:
        return resolved(load_config(overrides=keys), file)


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    """Ten samples on two meshes of 30 and 40 points."""
    path = tmp_path / "cloud.nc"
    random = np.random.default_rng(0)
    meshes = 5 * [random.random((num, 2)) for num in (30, 40)]
    u = [random.random((len(mesh), 24)) for mesh in meshes]
    domain = Domain.unit(2, periodic=False)
    fields = build(
        path,
        [Array(u, "pt", ["u"])],
        points=meshes,
        times=np.arange(24.0),
        domain=domain,
    )
    return fields.write(path)


def test_nothing_is_left_open(waves: Path) -> None:
    data = resolve(waves).data
    assert (data.mesh, data.points) == ("random-subset", 64)
    assert (data.n_in, data.n_out) == (10, 10)
    assert data.file == waves.resolve()


def test_a_model_of_grids_gets_a_grid(waves: Path) -> None:
    data = resolve(waves, model__name="fno").data
    assert (data.mesh, data.grid) == ("grid", 8)
    data = resolve(waves, model__name="fno", data__points=16).data
    assert (data.mesh, data.grid, data.points) == ("grid", 4, None)
    with pytest.raises(UserError, match=r"give --grid 8 \(64 points\)"):
        resolve(waves, model__name="fno", data__points=60)


def test_the_default_grid_fits_one_of_any_size(tmp_path: Path) -> None:
    axis = np.arange(22) / 22
    path = tmp_path / "odd.nc"
    u = [Array(np.random.default_rng(0).random((10, 24, 22)), "ntx", ["u"])]
    domain = Domain.unit(1)
    build(path, u, axes=[axis], times=np.arange(24.0), domain=domain).write(path)
    # A quarter would be 5 points, which do not divide 22.
    config = resolve(path, model__name="fno")
    with nfsgeo.data.open(path) as file:
        assert len(RunData(config, file).mesh(0)) == config.data.grid == 2


def test_points_of_a_cloud_are_all_of_them(cloud: Path) -> None:
    config = resolve(cloud)
    assert (config.data.mesh, config.data.point_sets) == ("all", 1)
    with nfsgeo.data.open(cloud) as file:
        used = RunData(config, file)
        for mesh in (used.mesh, used.training_mesh):
            assert [len(mesh(sample)) for sample in (0, 1)] == [30, 40]


def test_a_grid_of_a_cloud_is_refused(cloud: Path) -> None:
    with pytest.raises(UserError, match="fields on a grid"):
        resolve(cloud, model__name="fno")


@pytest.mark.parametrize(
    "records",
    [{"data__n_out": 15}, {"data__first_step": 5}, {"data__time_stride": 2}],
)
def test_too_few_records(waves: Path, records: dict[str, int]) -> None:
    with pytest.raises(UserError, match="at most the 24 time steps"):
        resolve(waves, **records)


@pytest.mark.parametrize("mesh", ["random-subset", "off-grid", "clustered", "jittered"])
def test_meshes_follow_the_seed(waves: Path, mesh: str) -> None:
    with nfsgeo.data.open(waves) as file:
        first, again, other = (
            RunData(resolve(waves, data__mesh=mesh, seed=seed), file).mesh(0).pos
            for seed in (0, 0, 1)
        )
    assert len(first) == 64
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_mesh_for_every_sample(waves: Path) -> None:
    config = resolve(waves, data__mesh_per_sample=True)
    with nfsgeo.data.open(waves) as file:
        one, other = map(RunData(config, file).mesh, (0, 1))
    assert not np.array_equal(one.pos, other.pos)


def test_samples_take_turns_on_meshes(waves: Path) -> None:
    config = resolve(waves, data__point_sets=3)
    with nfsgeo.data.open(waves) as file:
        used = RunData(config, file)
        meshes = [used.training_mesh(sample).pos for sample in range(6)]
        alone = [used.mesh(sample).pos for sample in range(2)]
    assert np.array_equal(alone[0], alone[1])
    assert np.array_equal(meshes[0], alone[0])
    assert np.array_equal(meshes[1], meshes[4])
    assert len({pos.tobytes() for pos in meshes}) == 3
    with pytest.raises(UserError, match=r"data\.point_sets with --mesh grid"):
        resolve(waves, data__point_sets=3, data__mesh="grid", data__grid=8)


@pytest.mark.parametrize(
    "changes, meshes",
    [
        ({}, 16),
        ({"data__point_sets": 1}, 1),
        ({"data__mesh": "grid"}, 1),
        ({"data__mesh_per_sample": True}, 1),
        ({"model__name": "mppde"}, 1),
        ({"preset": "paper"}, 1),
    ],
)
def test_how_many_meshes(waves: Path, changes: dict[str, Any], meshes: int) -> None:
    assert resolve(waves, **changes).data.point_sets == meshes


def test_which_weights_the_loss_has(waves: Path, cloud: Path) -> None:
    def weighting(path: Path, **overrides: Any) -> str | None:
        return resolve(path, **overrides).loss.weighting

    assert weighting(waves) == weighting(waves, data__mesh="off-grid") == "quadrature"
    assert weighting(waves, data__mesh="grid") == weighting(cloud) == "uniform"
    assert weighting(waves, data__mesh="clustered", data__points=64) == "uniform"
    assert weighting(waves, model__name="dse") == "uniform"
    assert weighting(waves, loss__weighting="uniform") == "uniform"
    assert weighting(cloud, loss__weighting="quadrature") == "quadrature"
    assert weighting(waves, preset="paper") == "uniform"
