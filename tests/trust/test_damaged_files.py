"""Damage to every file that is read: the right result or one line, never more.

Formats of fields are damaged in ``tests/data``.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data.domains import read_region
from nfsgeo.errors import UserError
from nfsgeo.evaluation import read_points
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.geometry import Domain
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo.training import RunConfig, RunPaths, load_config, read_config
from nfsgeo_benchmarks.suites.suite import read_scales, read_suite

SUITES = Path(nfsgeo.__file__).parents[1] / "benchmarks"
TABLES = ("config.yaml", "metrics.csv", "summary.json", "unseen.csv", "evaluation.npz")
unhurried = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}


@st.composite
def damaged(draw: st.DrawFn, raw: bytes) -> bytes:
    """The content cut off, some bytes of it overwritten, or a bit of it flipped."""
    place = draw(st.integers(0, len(raw) - 1))
    if draw(st.booleans()):
        return raw[:place]
    flipped = st.integers(0, 7).map(lambda bit: bytes([raw[place] ^ (1 << bit)]))
    noise = draw(flipped | st.binary(min_size=1, max_size=16))
    return raw[:place] + noise + raw[place + len(noise) :]


@settings(max_examples=100, **unhurried)
@given(data=st.data())
def test_a_checkpoint(trained, tmp_path, data):
    run = RunPaths(tmp_path / "run")
    shutil.copytree(trained.root, run.root, dirs_exist_ok=True)
    run.best.write_bytes(data.draw(damaged(trained.best.read_bytes())))
    with suppress(UserError):
        found, expected = (nfsgeo.load(each).state_dict() for each in (run, trained))
        torch.testing.assert_close(dict(found), dict(expected), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["bands", "inputs"])
def test_files_of_another_version(trained, tmp_path, name, refuses):
    run = RunPaths(shutil.copytree(trained.root, tmp_path / "run"))
    torch.save({"model": {"wide": torch.ones(1)}}, getattr(run, name))
    refuses(f"{name}.pt", open_run, run)


@settings(max_examples=30, **unhurried)
@given(data=st.data())
@pytest.mark.parametrize("name", TABLES)
def test_files_of_a_run(command, trained, tmp_path, name, data):
    folder = tmp_path / "run"
    shutil.copytree(trained.root, folder, dirs_exist_ok=True)
    (folder / name).write_bytes(data.draw(damaged((folder / name).read_bytes())))
    with suppress(UserError):
        read_run_folder(folder)  # for the report
    result = command("info", folder)
    assert result.exit_code in (0, 2), result.output
    if result.exit_code == 2:
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
@settings(max_examples=200, **unhurried)
@given(data=st.data())
def test_a_configuration(trained, tmp_path, data):
    file = tmp_path / "c.yaml"
    file.write_bytes(data.draw(damaged(trained.config.read_bytes())))
    for read in (read_config, load_config):
        with suppress(UserError):
            assert isinstance(read(file), RunConfig)


@settings(max_examples=60, **unhurried)
@given(data=st.data())
@pytest.mark.parametrize("ending", ["geojson", "npz", "stl"])
def test_regions(tmp_path, ending, data):
    path = tmp_path / f"a.{ending}"
    if ending == "geojson":
        corners = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]
        path.write_text(json.dumps({"type": "Polygon", "coordinates": [corners]}))
    elif ending == "npz":
        x = np.arange(3.0)
        np.savez(path, x=x, y=x, distance=np.add.outer(x, x) - 1)
    else:
        trimesh.creation.box().export(path)
    read_region(path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    with suppress(UserError):
        read_region(path)


keys = st.sampled_from(
    ["data", "model", "trainer", "optimiser", "seed", "preset", "name", "settings"]
    + ["file", "points", "epochs", "lr", "width", "modes", "betas", "device", "x"]
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
trees = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner)
)


@pytest.mark.slow
@settings(max_examples=200, **unhurried)
@given(content=st.dictionaries(keys, trees, max_size=4))
def test_configurations_that_make_no_sense(tmp_path, content):
    import yaml

    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(content))
    with suppress(UserError):
        assert isinstance(load_config(file), RunConfig)


@settings(max_examples=100, **unhurried)
@given(data=st.data())
@pytest.mark.parametrize("name", ["suites/irregular.yaml", "scales.yaml"])
def test_suites_and_scales(tmp_path, name, data):
    file = tmp_path / Path(name).name
    file.write_bytes(data.draw(damaged((SUITES / name).read_bytes())))
    with suppress(UserError):
        read_scales(file) if file.stem == "scales" else read_suite(file)


@settings(max_examples=100, **unhurried)
@given(data=st.data())
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_query_points(tmp_path, suffix, data):
    file = tmp_path / f"q{suffix}"
    points = np.random.default_rng(0).random((7, 2))
    if suffix == ".csv":
        np.savetxt(file, points, delimiter=",")
    else:
        np.save(file, points) if suffix == ".npy" else np.savez(file, pos=points)
    file.write_bytes(data.draw(damaged(file.read_bytes())))
    with suppress(UserError):
        found = read_points(file, Domain.unit(2))
        assert found.shape[1] == 2 and np.isfinite(found).all()
