"""Damage to files that are read: the right result or one line, never more.

Formats of fields are damaged in ``tests/data``.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

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
from nfsgeo.training import RunPaths, load_config, resume_run
from nfsgeo.training.artifacts import write_tensors, write_yaml
from nfsgeo.training.checkpoints import read_checkpoint

TABLES = ("config.yaml", "metrics.csv", "summary.json", "unseen.csv", "evaluation.npz")
few = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@st.composite
def damaged(draw: st.DrawFn, raw: bytes) -> bytes:
    """The content cut off, or some bytes of it overwritten."""
    place = draw(st.integers(0, len(raw) - 1))
    noise = draw(st.binary(max_size=16))
    return raw[:place] + noise + raw[place + len(noise) :] * bool(noise)


@few
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


SPOILT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no weights": lambda content: content.update(state_dict=3),
    "no callbacks": lambda content: content.pop("callbacks"),
    "other callbacks": lambda content: content.update(callbacks={}),
    "epoch of text": lambda content: content.update(epoch="a"),
    "many steps": lambda content: content["nfsgeo"]["task"].update(n_in=10**9),
}


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", SPOILT)
def test_checkpoints_of_other_types_or_sizes(spoilt, trained, tmp_path, refuses):
    run = RunPaths(Path(shutil.copytree(trained.root, tmp_path / "run")))
    for path in (run.best, run.last):
        content = read_checkpoint(path)
        SPOILT[spoilt](content)
        write_tensors(path, content)
    refuses("best.ckpt", nfsgeo.load, run)
    refuses("last.ckpt", resume_run, run.root)


def test_names_of_runs_of_other_types(trained, tmp_path, refuses):
    run = RunPaths(Path(shutil.copytree(trained.root, tmp_path / "run")))
    run.belongings.write_text('{"run": ["a"], "files": 7}')
    refuses("best.ckpt, which is of another run", nfsgeo.evaluate, run)


@few
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


def region(path: Path) -> None:
    corners = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]
    path.write_text(json.dumps({"type": "Polygon", "coordinates": [corners]}))


def distances(path: Path) -> None:
    x = np.arange(3.0)
    np.savez(path, x=x, y=x, distance=np.add.outer(x, x) - 1)


def points(path: Path) -> Any:
    return read_points(path, Domain.unit(2))


PLACES = np.random.default_rng(0).random((7, 2))
FILES: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "region.geojson": (region, read_region),
    "region.npz": (distances, read_region),
    "region.stl": (lambda path: trimesh.creation.box().export(path), read_region),
    "points.npy": (lambda path: np.save(path, PLACES), points),
    "points.npz": (lambda path: np.savez(path, pos=PLACES), points),
    "points.csv": (lambda path: np.savetxt(path, PLACES, delimiter=","), points),
    "config.yaml": (
        lambda path: write_yaml(path, load_config().model_dump(mode="json")),
        load_config,
    ),
}


@few
@given(data=st.data())
@pytest.mark.parametrize("name", FILES)
def test_other_files(tmp_path, name, data):
    path = tmp_path / name
    write, read = FILES[name]
    write(path)
    read(path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    with suppress(UserError):
        read(path)
