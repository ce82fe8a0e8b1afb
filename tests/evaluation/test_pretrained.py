"""Models that come with nfsgeo, and what is kept of a run to make one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data.build import Array, build
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import disjoint, random_subset
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run, find_run, ship_run
from nfsgeo.geometry import Domain
from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo.training import RunPaths

DIMS = {"burgers-small": 1, "ns-small": 2}


@pytest.fixture
def evaluated(run: RunPaths) -> RunPaths:
    evaluate_run(run.root)
    return run


def test_a_shipped_run_predicts_the_same(
    evaluated: RunPaths, waves: Path, tmp_path: Path
):
    shipped = ship_run(evaluated, tmp_path / "shipped")
    assert shipped.best.stat().st_size < 0.7 * evaluated.best.stat().st_size
    torch.manual_seed(0)
    x, pos, query_pos = torch.randn(90, 10, 1), torch.rand(90, 2), torch.rand(40, 2)
    with torch.no_grad():
        found = nfsgeo.load(shipped)(x, pos, query_pos=query_pos)
        expected = nfsgeo.load(evaluated)(x, pos, query_pos=query_pos)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    with nfsgeo.predict(shipped, waves, tmp_path / "p.nc") as predicted:
        assert predicted.num_points() == 256  # all of the grid's
    summary = evaluate_run(shipped.root, data=waves)
    assert summary["test"]["mae"] > 0 and summary["peak_memory_bytes"] is None
    assert str(waves.parent) not in "".join(
        path.read_text() for path in shipped.root.glob("*.*")
    )


def test_what_cannot_be_shipped(run: RunPaths, tmp_path: Path):
    with pytest.raises(UserError, match="evaluate it first"):
        ship_run(run, tmp_path / "shipped")
    assert not (tmp_path / "shipped").exists()
    with pytest.raises(UserError, match="does not exist"):
        ship_run(run, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_along(name: str):
    folder = FOLDER / name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size < 5e6
    checkpoint = torch.load(folder / "checkpoints/best.ckpt", weights_only=True)
    assert set(checkpoint) == {"state_dict", "nfsgeo"}
    provenance, card = (
        checkpoint["nfsgeo"]["provenance"],
        (folder / "card.md").read_text(),
    )
    assert provenance["license"] == "MIT" and provenance["commit"]
    # The card says what was measured.
    summary = json.loads((folder / "summary.json").read_text())
    assert f"{summary['test']['mae']:.2e}" in card
    assert f"{summary['parameters']:,} parameters" in card
    assert summary["unseen_points"]["at"] == "off-grid"
    for errors in summary["unseen"].values():
        assert f"{errors['mae_unseen']['mean']:.2e}" in card
    assert summary["test"]["mae"] < summary["baselines"]["linear_extrapolation"]["mae"]


@pytest.mark.parametrize("name", NAMES)
def test_predicts_on_any_mesh(name: str):
    forecaster, dim = nfsgeo.load(name), DIMS[name]
    torch.manual_seed(0)
    for num, num_queries in ((50, 7), (700, None)):
        pos = torch.rand(num, dim)
        wave = torch.sin(2 * torch.pi * pos[:, :1])[:, None].repeat(1, 10, 1)
        query_pos = None if num_queries is None else torch.rand(num_queries, dim)
        with torch.no_grad():
            out = forecaster(wave, pos, query_pos=query_pos)
        assert out.shape == (num_queries or num, 10, 1) and out.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_predictions_from_two_meshes_agree_within_their_errors(
    name: str, tmp_path: Path
):
    """At common points, of fields that were never seen, observed on disjoint meshes."""
    equation = {"burgers-small": "burgers", "ns-small": "navier-stokes"}[name]
    resolution = {"burgers-small": 1024, "ns-small": 64}[name]
    num = {"burgers-small": 256, "ns-small": 1024}[name]
    path = generate(
        equation,
        tmp_path / "new.nc",
        samples=3,
        resolution=resolution,
        num_steps=20,
        seed=7,
        workers=1,
    )
    forecaster = nfsgeo.load(name)
    with nfsgeo.open(path) as file:
        one = random_subset(file, num, 0)
        other = disjoint(one, file, num, 0)
        common = disjoint(one, file, 2 * num, 1)
        apart, errors = [], []
        for sample in range(3):
            predicted = []
            truth = torch.from_numpy(file.read(sample, slice(10, 20), common.index))
            for mesh in (one, other):
                x = torch.from_numpy(file.read(sample, slice(0, 10), mesh.index))
                where = [torch.from_numpy(m.pos).float() for m in (mesh, common)]
                with torch.no_grad():
                    out = forecaster(x, where[0], query_pos=where[1])
                predicted.append(out)
                errors.append((out - truth).abs().mean())
            apart.append((predicted[0] - predicted[1]).abs().mean())
    assert 0 < torch.stack(apart).mean() < torch.stack(errors).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_beats_linear_extrapolation_on_data_of_another_seed(name: str, tmp_path: Path):
    """On the whole grid, which has more points than there were in training."""
    equation = {"burgers-small": "burgers", "ns-small": "navier-stokes"}[name]
    resolution = {"burgers-small": 512, "ns-small": 48}[name]
    data = generate(
        equation,
        tmp_path / "new.nc",
        samples=60,
        resolution=resolution,
        num_steps=20,
        seed=7,
        workers=1,
    )
    summary = nfsgeo.evaluate(name, data=data)
    baseline = summary["baselines"]["linear_extrapolation"]["mae"]
    assert summary["test"]["mae"] < 0.5 * baseline


def test_a_folder_comes_before_a_name(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert find_run(Path("burgers-small")).root == FOLDER / "burgers-small"
    (tmp_path / "burgers-small").symlink_to(trained)
    assert find_run(Path("burgers-small")).root == Path("burgers-small")


def test_a_model_without_data_asks_for_them():
    with pytest.raises(UserError, match="give --data"):
        nfsgeo.evaluate("burgers-small")


def write(path: Path, kind: str) -> Path:
    """Fields that `burgers-small` cannot take."""
    times = 0.005 * np.arange(9 if kind == "short" else 10)
    domain = Domain.unit(1, periodic=kind != "walls")
    if kind == "two components":
        u = Array(np.zeros((3, 10, 32, 2)), "ntxc", ["p", "q"])
        axes = [np.arange(32) / 32]
        return build(path, [u], axes=axes, times=times, domain=domain).write(path)
    times = (2.0 if kind == "slow" else 1.0) * times
    points = np.linspace(0, 0.99, 40)[:, None]
    u = np.zeros((1, 40, len(times)))
    return nfsgeo.from_arrays(u, points, times, domain=domain).write(path)


@pytest.mark.parametrize("kind", ["short", "walls", "slow", "two components"])
def test_what_a_model_cannot_take(kind: str, tmp_path: Path):
    source = write(tmp_path / "odd.nc", kind)
    with pytest.raises(UserError, match="odd.nc"):
        nfsgeo.predict("burgers-small", source, tmp_path / "p.nc")
    assert not (tmp_path / "p.nc").exists()
