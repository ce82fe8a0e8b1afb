"""Models that come with nfsgeo, and what is kept of a run to make one."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import disjoint, random_subset
from nfsgeo.evaluation import evaluate_run, find_run
from nfsgeo.pretrained import FOLDER, NAMES

MAKING = Path(__file__).parents[2] / "docs" / "making" / "pretrained.py"


def test_a_shipped_run_predicts_the_same(run, waves):
    evaluate_run(run)
    shipped = runpy.run_path(str(MAKING))["ship"](run, Path("shipped"))
    assert shipped.best.stat().st_size < 0.7 * run.best.stat().st_size
    x, pos, query_pos = torch.randn(90, 10, 1), torch.rand(90, 2), torch.rand(40, 2)
    with torch.no_grad():
        found = nfsgeo.load(shipped)(x, pos, query_pos=query_pos)
        expected = nfsgeo.load(run)(x, pos, query_pos=query_pos)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    with nfsgeo.predict(shipped, waves, Path("p.nc")) as predicted:
        assert predicted.num_points() == 256  # all of the grid's
    summary = evaluate_run(shipped, data=waves)
    assert summary["test"]["mae"] > 0 and summary["peak_memory_bytes"] is None
    texts = [path.read_text() for path in shipped.root.glob("*.*")]
    assert str(waves.parent) not in "".join(texts)


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_along(name):
    folder = FOLDER / name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size < 5e6
    checkpoint = torch.load(folder / "checkpoints/best.ckpt", weights_only=True)
    assert set(checkpoint) == {"state_dict", "nfsgeo"}
    provenance = checkpoint["nfsgeo"]["provenance"]
    card = (folder / "card.md").read_text()
    assert provenance["license"] == "MIT" and provenance["commit"]
    # The card says what was measured.
    summary = json.loads((folder / "summary.json").read_text())
    assert f"{summary['test']['mae']:.2e}" in card
    assert f"{summary['parameters']:,} parameters" in card
    assert summary["unseen_points"]["at"] == "off-grid"
    for errors in summary["unseen"].values():
        assert f"{errors['mae_unseen']['mean']:.2e}" in card
    assert summary["test"]["mae"] < summary["baselines"]["linear_extrapolation"]["mae"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_on_data_of_another_seed(name):
    """Better than extrapolation on the grid; from disjoint meshes alike."""
    equation, resolution, num = {
        "burgers-small": ("burgers", 1024, 256),
        "ns-small": ("navier-stokes", 64, 1024),
    }[name]
    options = {"samples": 20, "num_steps": 20, "seed": 7, "workers": 1}
    path = generate(equation, Path("new.nc"), resolution=resolution, **options)
    summary = nfsgeo.evaluate(name, data=path)
    baseline = summary["baselines"]["linear_extrapolation"]["mae"]
    assert summary["test"]["mae"] < 0.5 * baseline
    forecaster = nfsgeo.load(name)
    with nfsgeo.open(path) as file:
        one = random_subset(file, num, 0)
        meshes = one, disjoint(one, file, num, 0)
        common = disjoint(one, file, 2 * num, 1)
        apart, errors = [], []
        for sample in range(3):
            truth = file.read(sample, slice(10, 20), common.index)
            predicted = [
                forecaster.predict(
                    file.read(sample, slice(0, 10), mesh.index),
                    mesh.pos,
                    query_pos=common.pos,
                )
                for mesh in meshes
            ]
            errors += [np.abs(each - truth).mean() for each in predicted]
            apart.append(np.abs(predicted[0] - predicted[1]).mean())
    assert 0 < np.mean(apart) < np.mean(errors)


def test_a_folder_comes_before_a_name(trained):
    assert find_run(Path("burgers-small")).root == FOLDER / "burgers-small"
    Path("burgers-small").symlink_to(trained)
    assert find_run(Path("burgers-small")).root == Path("burgers-small")


def test_a_model_without_data_asks_for_them(refuses):
    refuses("give --data", nfsgeo.evaluate, "burgers-small")


@pytest.mark.parametrize("device", ["gpu", "cuda:0"])
def test_devices_of_other_names_are_refused(device, refuses):
    refuses(f"device='{device}': expected 'auto'", nfsgeo.load, NAMES[0], device)


@pytest.mark.parametrize("name", NAMES)
def test_summaries_are_of_the_weights_that_come_along(name):
    summary = json.loads((FOLDER / name / "summary.json").read_text())
    assert summary.get("weights") in (None, nfsgeo.load(name).digest)
