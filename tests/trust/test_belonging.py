"""Results belong to their weights, data and checkpoints to their run."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import xarray

import nfsgeo
from nfsgeo.data.fingerprints import former_fingerprint_of
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.training import RunPaths, fit, resume_run
from nfsgeo.training.artifacts import read_json
from nfsgeo.training.trainer import read_history

BANDS = ("--bands", "--set=data.split=[8,9,3]", "--set=data.max_train=8")
BANDS += ("--set=data.window_stride=2",)


@pytest.fixture
def run(trained: RunPaths) -> RunPaths:
    """A copy of the small run, which a test may spoil."""
    return RunPaths(Path(shutil.copytree(trained.root, "run")).resolve())


def waited(started: Any, metrics: Path, epochs: int) -> None:
    while len(read_history(metrics)) < epochs and started.process.is_alive():
        time.sleep(0.01)


def derived(run: RunPaths) -> list[dict[str, Any]]:
    return [torch.load(path, weights_only=True) for path in (run.bands, run.inputs)]


@pytest.mark.slow
def test_results_of_a_run_in_training(spawn, training, command, tmp_path):
    """Made by the way, they do not stay."""
    run = RunPaths(tmp_path / "run")
    started = spawn(tmp_path, *training, *BANDS, "--epochs", 25)
    waited(started, run.metrics, 2)
    nfsgeo.evaluate(run, factors=[2], repeats=2)
    assert started.process.is_alive()
    calibrated = command("calibrate", run.root, "--data", training[2])
    assert calibrated.exit_code == 2 and "no other process" in calibrated.stderr
    assert command("plot", run.root).exit_code == 0
    started.interrupt()
    assert started.ended()[0] == 130
    nfsgeo.evaluate(run, factors=[2], repeats=2)
    early = derived(run)
    assert run.unseen.exists()
    assert spawn(tmp_path, "train", "--resume", "run").ended()[0] == 0
    found = derived(run)
    for path in (run.bands, run.inputs):
        path.unlink()
    before = nfsgeo.evaluate(run)
    for one, other, earlier in zip(found, derived(run), early, strict=True):
        assert str(one) == str(other) and one["weights"] != earlier["weights"]
    assert (
        before["weights"] == open_run(run).forecaster.digest and not run.unseen.exists()
    )


def changed_weights(path: Path) -> None:
    checkpoint = torch.load(path, weights_only=True)
    for value in checkpoint["state_dict"].values():
        value.mul_(1.01)
    torch.save(checkpoint, path)


@pytest.mark.slow
def test_results_of_weights_that_are_no_longer_there(run, waves, command, caplog):
    before = nfsgeo.evaluate(run)
    assert before["weights"] == open_run(run).forecaster.digest and run.unseen.exists()
    changed_weights(run.best)
    torch.save({"weights": before["weights"]}, run.inputs)
    assert "out_of_distribution" not in nfsgeo.predict(run, waves, "a.nc").parameters
    info = command("info", run.root)
    assert info.exit_code == 0 and "relative L2" not in info.stdout
    for name in ("inputs.pt", "summary.json"):
        assert f"{name} is of other weights" in caplog.text
    after = nfsgeo.evaluate(run)
    assert after["weights"] == open_run(run).forecaster.digest != before["weights"]
    assert after["test"] != before["test"] and not run.unseen.exists()
    assert "relative L2" in command("info", run.root).stdout


@pytest.fixture
def own(run, waves) -> RunPaths:
    """The run, with data of its own to overwrite."""
    shutil.copy2(waves, "own.nc")
    text = run.config.read_text().replace(str(waves), str(Path("own.nc").resolve()))
    run.config.write_text(text)
    experiment, _ = resume_run(run.root)
    known = {"run": read_json(run.belongings)["run"], "files": experiment.files}
    run.belongings.write_text(json.dumps(known))
    return run


@pytest.mark.slow
def test_data_that_were_overwritten(own, refuses, command):
    path, before = Path("own.nc"), nfsgeo.evaluate(own)
    shutil.copyfile(path, "again.nc")
    for touched in (path.touch, lambda: Path("again.nc").replace(path)):
        touched()
        assert nfsgeo.evaluate(own)["test"] == before["test"]
        resume_run(own.root)
    at = path.stat()
    for name, place in (("u", (9, 11)), ("u", (19, 12)), ("x", 3)):
        report = own.summary.read_bytes()
        shutil.copyfile(path, "kept.nc")
        with h5py.File(path, "r+") as file:
            file[name][place] *= 0.999
        os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))  # as some programs do
        refuses("own.nc, which has changed", nfsgeo.evaluate, own)
        refuses("other data than", resume_run, own.root)
        assert command("evaluate", own.root).exit_code == 2
        assert own.summary.read_bytes() == report
        assert nfsgeo.evaluate(own, data=path)["scored"]["trained_on"] == 0
        resume_run(own.root, data=Path("kept.nc"))  # the remedy
        assert nfsgeo.evaluate(own)["test"] == before["test"]
        shutil.copyfile("kept.nc", path)
        resume_run(own.root, data=path)


FORMATS = {"csv": "a.csv", "npz": "a.npz", "folder": "a", "zarr": "a.zarr"}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_data_of_other_formats(form, tiny, refuses):
    rng, name = np.random.default_rng(0), FORMATS[form]
    pos, times = rng.random((30, 2)), np.arange(8.0)
    u = np.sin(9 * pos[:, :1] + times + np.arange(12)[:, None, None])[..., None]

    def write(u: np.ndarray) -> None:
        shutil.rmtree(name, ignore_errors=True)
        Path(name).unlink(missing_ok=True)
        if form == "folder":
            Path(name).mkdir()
            for k in range(12):
                some = nfsgeo.from_arrays(u[k : k + 1], pos, times)
                some.write(Path(name) / f"{k}.nc")
        elif form == "zarr":
            dims = ("sample", "point", "time")
            x, y = (("point", pos[:, k]) for k in (0, 1))
            made = xarray.Dataset({"u": (dims, u[..., 0])}, {"x": x, "y": y})
            made.assign_coords(time=times).to_zarr(name)
        else:
            nfsgeo.from_arrays(u, pos, times).write(name)

    write(u)
    settings = {"data.n_in": 3, "data.n_out": 3, "trainer.epochs": 1}
    run = nfsgeo.fit(nfsgeo.prepare(name, tiny | settings), "run")
    before = nfsgeo.evaluate(run)["test"]
    write(u)
    assert nfsgeo.evaluate(run)["test"] == before
    u[5, 7, 4] += 0.01
    write(u)
    refuses("which has changed since training", nfsgeo.evaluate, run)
    refuses("other data than", resume_run, run.root)


@pytest.mark.slow
def test_a_run_of_earlier_versions(run, waves, refuses):
    with nfsgeo.open(waves) as file:
        ends = former_fingerprint_of(file)
    for path in (run.best, run.last):
        content = torch.load(path, weights_only=True)
        del content["run"]
        content["nfsgeo"]["task"]["fingerprint"] = ends
        torch.save(content, path)
    run.belongings.unlink()
    assert nfsgeo.evaluate(run)["test"] and nfsgeo.evaluate(run, data=waves)["test"]
    fit(*resume_run(run.root))
    assert len(read_history(run.metrics)) == 2 and nfsgeo.evaluate(run)["test"]


@pytest.fixture(scope="session")
def other(waves, tiny, tmp_path_factory) -> RunPaths:
    """Another run with the same settings."""
    chosen = tiny | {"trainer.epochs": 2, "data.query_points": 16}
    out = tmp_path_factory.mktemp("other") / "run"
    return nfsgeo.fit(nfsgeo.prepare(waves, chosen), out)


@pytest.mark.slow
@pytest.mark.parametrize("of_other", [False, True])
@pytest.mark.parametrize("lost", [("best",), ("last",), ("best", "last")])
def test_checkpoints_that_are_gone_or_of_another_run(
    run, other, lost, of_other, command, refuses
):
    history = run.metrics.read_bytes()
    for name in lost:
        path = getattr(run, name)
        path.unlink()
        if of_other:
            shutil.copy(getattr(other, name), path)
    what = "of another run" if of_other else "gone"
    resumed = command("train", "--resume", run.root)
    assert resumed.exit_code == 2 and what in resumed.stderr
    assert "--resume" not in resumed.stderr and run.metrics.read_bytes() == history
    if "best" in lost:
        for call in (nfsgeo.evaluate, nfsgeo.load):
            refuses(f"best.ckpt, which is {what}", call, run)
    else:
        assert nfsgeo.load(run)
    # What the line says works.
    words = resumed.stderr.split("nfsgeo ")[-1].replace("NEW", "new").split()
    if lost == ("best",):
        _, _, copying = resumed.stderr.rpartition(": ")
        subprocess.run(copying.split(), check=True)
        assert nfsgeo.evaluate(run)["test"]
        return
    again = command(*words, "--epochs", 1, "--device", "cpu")
    assert again.exit_code == 0 and Path("new/summary.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_of_several_devices(spawn, training, tmp_path, rank):
    metrics = tmp_path / "run" / "metrics.csv"
    options = ("--set=trainer.devices=2", "--set=data.batch_size=2", "--epochs", 40)
    started = spawn(tmp_path, *training, *options)
    waited(started, metrics, 2)
    listed = ["pgrep", "-f", "spawn_main", "-P", str(started.process.pid)]
    found = subprocess.run(listed, capture_output=True, text=True, check=True)
    ranks = [*map(int, found.stdout.split())]
    os.kill(ranks[rank], signal.SIGKILL)
    status, errors = started.ended()
    assert status == 2 and "Traceback" not in errors, errors
    assert "To continue: nfsgeo train --resume run" in errors.splitlines()[-1]
    assert not any(Path(f"/proc/{number}").exists() for number in ranks)
    resume_run(tmp_path / "run")
