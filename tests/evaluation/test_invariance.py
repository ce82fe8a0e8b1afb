"""Errors on meshes of every kind."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nfsgeo
import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.build import Array, build
from nfsgeo.data.meshes import Mesh, disjoint, random_subset
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_meshes, evaluate_run
from nfsgeo.evaluation.invariance import (
    COLUMNS,
    MESHES,
    _drawn,
    _those_there_are,
    _Training,
    _with_others,
)
from nfsgeo.geometry import Domain, Region
from nfsgeo.training import RunPaths, begin_run, fit, load_config, prepare
from nfsgeo.training.config import DataSection
from nfsgeo.training.observation import observe, observe_in_turn, trained_points


def with_meshes(run: RunPaths, num: int) -> RunPaths:
    """The run, as if it had been trained on so many point sets."""
    text = run.config.read_text()
    assert "  point_sets: 16\n" in text
    text = text.replace("  point_sets: 16\n", f"  point_sets: {num}\n")
    run.config.write_text(text.replace("  query_points: 16\n", "  query_points: 0\n"))
    return run


def by_mesh(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["mesh"]: row for row in rows}


def test_a_row_for_each_mesh_and_the_same_again(run: RunPaths) -> None:
    names = [name for name in MESHES if name != "own"]
    rows = evaluate_meshes(with_meshes(run, 1).root, names)
    with open(run.meshes, newline="") as file:
        written = list(csv.DictReader(file))
    assert tuple(written[0]) == COLUMNS and [r["mesh"] for r in written] == names
    sizes = {row["mesh"]: row["num_points"] for row in rows}
    num = sizes["seen"]
    assert sizes["nested-3"] == 3 * num and sizes["quarter"] == num // 4
    for row in rows:
        parts = sorted((row["mae_observed"], row["mae_unobserved"]))
        assert 0 < parts[0] <= row["mae"] <= parts[1]
    assert rows[:1] == evaluate_meshes(run.root, ["seen"])


def test_the_seen_mesh_is_that_of_training(run: RunPaths) -> None:
    (row,) = evaluate_meshes(run.root, ["seen"])
    summary = evaluate_run(run.root)
    assert row["mae_observed"] == pytest.approx(summary["test"]["mae"], rel=1e-4)


def test_noise_on_the_inputs_raises_errors(run: RunPaths) -> None:
    rows = by_mesh(evaluate_meshes(run.root, ["seen", "noise-1", "noise-100"]))
    seen, little, much = (rows[n]["mae_observed"] for n in rows)
    assert abs(little - seen) < abs(much - seen) and much > 1.1 * seen


def training_of(
    file: Fields, points: int, meshes: int, seed: int, off_grid: bool
) -> _Training:
    data = DataSection(mesh="random-subset", points=points, point_sets=meshes)
    first, known = observe(data, file, seed), trained_points(data, file, seed)
    return _Training(file, first, known, off_grid)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([1, 4, 16]),
    st.integers(1, 12),
    st.integers(0, 99),
    st.sampled_from(["nested-2", "nested-4", "disjoint", "half", "off-grid"]),
    st.booleans(),
)
def test_unseen_points_are_in_no_point_set_of_training(
    waves: Path, meshes: int, points: int, seed: int, name: str, off_grid: bool
) -> None:
    with nfsgeo.data.open(waves) as file:
        training = training_of(file, 2 * points, meshes, seed, off_grid)
        data = DataSection(mesh="random-subset", points=2 * points, point_sets=meshes)
        in_turn = observe_in_turn(data, file, seed)
        sets = [in_turn] if meshes == 1 else in_turn.meshes
        assert len(sets) == meshes
        trained = {tuple(place) for mesh in sets for place in mesh.pos.tolist()}
        known = file.coordinates()[training.points(0)].tolist()
        assert trained == set(map(tuple, known))
        # Sixteen sets of 24 points leave too few for four times as many.
        assume(not (name == "nested-4" and meshes == 16 and points > 8))
        mesh = _drawn(name, training, seed, 3)
        old = 2 * points if name.startswith("nested") else 0
        new = mesh.pos[old:].tolist()
        assert new and not trained & set(map(tuple, new))
        both = _with_others(training, mesh, seed, 3).with_queries_joined()
        assert len(both) == 2 * len(mesh) or meshes == 16 and not off_grid
        others = set(map(tuple, both.pos[len(mesh) :].tolist()))
        assert not others & trained and not others & set(map(tuple, mesh.pos.tolist()))
        assert (both.index is None) == (off_grid or name == "off-grid")


def test_meshes_that_training_has_seen_are_left_out(
    waves: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with nfsgeo.data.open(waves) as file:
        training = training_of(file, 64, 16, 0, True)
        assert len(training.points(0)) > 250
        names = ["seen", "off-grid", "nested-2", "disjoint", "own"]
        assert _those_there_are(names, training) == ["seen", "off-grid", "own"]
        assert "nested-2 is left out: of the 256 points" in caplog.text
        with pytest.raises(UserError, match="256 points training has seen 25"):
            _those_there_are(["nested-2", "half"], training)
        # Where fields are not known between the points, there is no off-grid.
        bounded = training_of(file, 64, 16, 0, False)
        assert _those_there_are(names, bounded) == ["seen", "own"]


def test_other_points_run_out(waves: Path) -> None:
    with nfsgeo.data.open(waves) as file:
        everything = file.num_points()
        seen = random_subset(file, everything // 4, 0)
        whole = Mesh(file.coordinates(), np.arange(everything))
        none_left = training_of(file, 8, 1, 0, False)
        assert not len(_with_others(none_left, whole, 0, 0).queries)
        with pytest.raises(UserError, match="fewer points"):
            disjoint(whole, file, 1, 0)
        with pytest.raises(UserError, match="training has seen 255 of its 256"):
            disjoint(seen, file, 2, 0, trained=np.arange(everything - 1))


@pytest.mark.parametrize(("name", "word"), [("halves", "half"), ("nested-x", "number")])
def test_names_that_are_none(run: RunPaths, name: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        evaluate_meshes(run.root, [name])


def test_the_first_of_several_meshes_is_the_seen_one(run: RunPaths) -> None:
    (several,) = evaluate_meshes(run.root, ["seen"])
    assert evaluate_meshes(with_meshes(run, 1).root, ["seen"]) == [several]


def test_a_grid_is_its_only_mesh(waves: Path, tmp_path: Path) -> None:
    small = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1}
    overrides: dict[str, Any] = {f"model.settings.{k}": v for k, v in small.items()}
    overrides |= {"data.file": str(waves), "data.grid": 8, "trainer.epochs": 1}
    experiment = prepare(load_config(overrides=overrides | {"data.max_train": 4}))
    paths = begin_run(experiment, tmp_path / "run")
    fit(experiment, paths)
    torch.manual_seed(0)
    (row,) = evaluate_meshes(paths.root)
    assert row["mesh"] == "equispaced" and row["num_points"] == 64


def test_meshes_of_a_grid_with_an_obstacle(
    tmp_path: Path, tiny: dict[str, Any]
) -> None:
    """No point is drawn inside the obstacle."""
    axis = (np.arange(16) + 0.5) / 16
    square = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]
    domain = Domain((0, 0), (1, 1), (False, False), Region.polygons([square]))
    phase, times = 6 * np.random.default_rng(0).random((20, 1, 1)), np.arange(4.0)
    u = np.sin(6 * axis + phase + times[:, None]).astype("f4")
    u = np.broadcast_to(u[..., None], (20, 4, 16, 16))
    fields = build(
        tmp_path / "obstacle.nc",
        [Array(u, "ntxy", ["u"])],
        axes=[axis, axis],
        times=times,
        domain=domain,
    )
    fields.write(tmp_path / "obstacle.nc")
    settings = tiny | {
        "model.name": "nfs",
        "data.n_in": 2,
        "data.n_out": 2,
        "data.points": 40,
        "data.point_sets": 1,
        "data.query_points": 0,
    }
    experiment = nfsgeo.prepare(tmp_path / "obstacle.nc", settings)
    run = nfsgeo.fit(experiment, tmp_path / "run")
    rows = by_mesh(evaluate_meshes(run.root, ["seen", "half", "nested-2"]))
    assert all(np.isfinite(row["mae_unobserved"]) for row in rows.values())
