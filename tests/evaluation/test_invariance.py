"""Errors on meshes of every kind."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo.data
from nfsgeo.data.meshes import Mesh, disjoint, random_subset
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_meshes, evaluate_run
from nfsgeo.evaluation.invariance import COLUMNS, MESHES, _with_others
from nfsgeo.training import RunPaths, begin_run, fit, load_config, prepare


def by_mesh(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["mesh"]: row for row in rows}


def test_a_row_for_each_mesh_and_the_same_again(run: RunPaths) -> None:
    names = [name for name in MESHES if name != "own"]
    rows = evaluate_meshes(run.root, names)
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


def test_other_points_are_neither_observed_nor_trained_on(waves: Path) -> None:
    with nfsgeo.data.open(waves) as file:
        everything = file.num_points()
        seen = random_subset(file, everything // 4, 0)
        mesh = disjoint(seen, file, everything // 4, 1)
        assert mesh.index is not None and seen.index is not None
        assert not np.intersect1d(mesh.index, seen.index).size
        both = _with_others(file, seen, mesh, 0, 0)
        others = both.index[len(mesh) :]
        assert len(others) == len(mesh)
        assert not np.intersect1d(others, [*mesh.index, *seen.index]).size
        # Nothing is left in the file: points between its own.
        whole = Mesh(file.coordinates(), np.arange(everything))
        between = _with_others(file, seen, whole, 0, 0)
        assert between.index is None and len(between) == 2 * everything
        with pytest.raises(UserError, match="fewer points"):
            disjoint(whole, file, 1, 0)


@pytest.mark.parametrize(("name", "word"), [("halves", "half"), ("nested-x", "number")])
def test_names_that_are_none(run: RunPaths, name: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        evaluate_meshes(run.root, [name])


def test_the_first_of_several_meshes_is_the_seen_one(run: RunPaths) -> None:
    (alone,) = evaluate_meshes(run.root, ["disjoint"])
    text = run.config.read_text()
    assert "  meshes: 16\n" in text
    run.config.write_text(text.replace("  meshes: 16\n", "  meshes: 1\n"))
    assert evaluate_meshes(run.root, ["disjoint"]) == [alone]


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
