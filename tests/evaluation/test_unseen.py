"""Errors on larger meshes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run, evaluate_unseen
from nfsgeo.evaluation.unseen import COLUMNS
from nfsgeo.training import RunPaths, load_config, prepare, read_config, restore
from nfsgeo.training.observation import observe


def rows_of(run: RunPaths, waves: Path, **options: Any) -> list[dict[str, Any]]:
    config = read_config(run.config)
    with nfsgeo.data.open(waves) as file:
        mesh = observe(config.data, file, config.seed)
        return evaluate_unseen(restore(run, config), config, file, mesh, **options)


def test_a_row_for_each_mesh(run: RunPaths) -> None:
    summary = evaluate_run(run.root, factors=[1.5, 2], repeats=3)
    with open(run.unseen, newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["num_points"] for row in rows] == ["96"] * 3 + ["128"] * 3
    mae = [float(row["mae"]) for row in rows[3:]]
    assert len(set(mae)) == 3  # meshes are drawn anew
    assert summary["unseen"]["2"]["mae"] == pytest.approx(
        {"mean": np.mean(mae), "std": np.std(mae)}
    )


def test_seen_and_unseen_points_make_up_the_whole(run: RunPaths, waves: Path) -> None:
    (row,) = rows_of(run, waves, factors=[3], repeats=1)
    assert row["mae"] == pytest.approx((row["mae_seen"] + 2 * row["mae_unseen"]) / 3)


def test_repeats_come_out_the_same_again(run: RunPaths, waves: Path) -> None:
    one = rows_of(run, waves, factors=[2], repeats=2)
    assert one == rows_of(run, waves, factors=[2], repeats=2)


def test_more_points_than_the_grid_has(run: RunPaths, waves: Path) -> None:
    with pytest.raises(UserError, match="320"):
        rows_of(run, waves, factors=[5], repeats=1)


def test_not_a_larger_mesh(run: RunPaths, waves: Path) -> None:
    with pytest.raises(UserError, match="above 1"):
        rows_of(run, waves, factors=[1], repeats=1)


def test_a_model_of_grids_is_refused(waves: Path) -> None:
    overrides = {"data.file": str(waves), "model.name": "fno"}
    e = prepare(load_config(overrides=overrides | {"model.settings.width": 4}))
    with pytest.raises(UserError, match="takes any points"):
        evaluate_unseen(e.forecaster, e.config, e.file, e.mesh, factors=[2], repeats=1)
