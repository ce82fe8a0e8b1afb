"""Errors on meshes of every kind."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo
import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_meshes, evaluate_run
from nfsgeo.evaluation.unseen import (
    MESH_COLUMNS,
    MESHES,
)
from nfsgeo.geometry import Domain, Region
from nfsgeo.training import RunPaths, begin_run, fit, load_config, prepare


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
    assert tuple(written[0]) == MESH_COLUMNS and [r["mesh"] for r in written] == names
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


@pytest.mark.parametrize(("name", "word"), [("halves", "half"), ("nested-x", "number")])
def test_names_that_are_none(run: RunPaths, name: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        evaluate_meshes(run.root, [name])


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
