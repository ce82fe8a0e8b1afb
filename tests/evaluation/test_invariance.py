"""Errors on meshes of every kind."""

import csv
from pathlib import Path

import pytest

import nfsgeo
from nfsgeo.evaluation import evaluate_meshes, evaluate_run
from nfsgeo.evaluation.unseen import MESH_COLUMNS, MESHES


@pytest.mark.slow
def test_a_row_for_each_mesh_and_the_same_again(run):
    text = run.config.read_text()  # as if it had been trained on one point set
    assert "  point_sets: 16\n" in text and "  query_points: 16\n" in text
    text = text.replace("  point_sets: 16\n", "  point_sets: 1\n")
    run.config.write_text(text.replace("  query_points: 16\n", "  query_points: 0\n"))
    names = [name for name in MESHES if name != "own"]
    rows = evaluate_meshes(run.root, names)
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


def test_the_seen_mesh_is_that_of_training(run):
    (row,) = evaluate_meshes(run.root, ["seen"])
    summary = evaluate_run(run.root)
    assert row["mae_observed"] == pytest.approx(summary["test"]["mae"], rel=1e-4)


def test_noise_on_the_inputs_raises_errors(run):
    rows = evaluate_meshes(run.root, ["seen", "noise-1", "noise-100"])
    seen, little, much = (row["mae_observed"] for row in rows)
    assert abs(little - seen) < abs(much - seen) and much > 1.1 * seen


@pytest.mark.parametrize(("name", "word"), [("halves", "half"), ("nested-x", "number")])
def test_names_that_are_none(run, name, word, refuses):
    refuses(word, evaluate_meshes, run.root, [name])


def test_a_grid_is_its_only_mesh(waves, tiny):
    chosen = tiny | {"data.grid": 8, "trainer.epochs": 1, "data.max_train": 4}
    run = nfsgeo.fit(nfsgeo.prepare(waves, chosen), Path("run"))
    (row,) = evaluate_meshes(run)
    assert row["mesh"] == "equispaced" and row["num_points"] == 64
