"""Runs that were cut short come out as if they had not been."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import yaml

import nfsgeo
from nfsgeo.data.generation import generate
from nfsgeo.evaluation import evaluate_run
from nfsgeo.files import cache_folder
from nfsgeo.training import (
    RunPaths,
    begin_run,
    fit,
    load_config,
    prepare,
    read_config,
    resume_run,
)
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.source import DEMONSTRATION
from nfsgeo.training.trainer import read_history

KILLED = """
import os, signal, sys
from pathlib import Path
from lightning.pytorch import Callback
from nfsgeo.training import begin_run, fit, load_config, prepare

class Kill(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if (trainer.current_epoch, batch_idx) == (3, 1):
            os.kill(os.getpid(), signal.SIGKILL)

config, out = map(Path, sys.argv[1:])
experiment = prepare(load_config(config))
fit(experiment, begin_run(experiment, out), [Kill()])
"""


@pytest.mark.slow
def test_killed_in_mid_epoch_and_resumed_gives_the_very_numbers(train, resume):
    undisturbed = train("undisturbed", {"trainer.epochs": 6})
    out = Path("killed")
    command = [sys.executable, "-c", KILLED, str(undisturbed.paths.config), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(read_history(RunPaths(out).metrics)) == 3
    assert resume(out).is_the_same_as(undisturbed)


@pytest.mark.parametrize(
    ("epoch", "extra"),
    [(2, {"trainer.precision": "64"})]
    + [
        pytest.param(epoch, extra, marks=pytest.mark.slow)
        for epoch, extra in (
            (0, {"optimiser.schedule": "step", "optimiser.step_epochs": 2}),
            (2, {"trainer.patience": 3}),
            (0, {"data.mesh_per_sample": True}),
            (2, {"data.points": 20, "data.query_points": 12, "data.workers": 1}),
            (0, {"data.lead_times": True, "data.n_in": 3, "data.n_out": 4}),
        )
    ],
)
def test_interrupted_and_resumed_gives_the_very_numbers(
    interrupt_and_resume, extra, epoch
):
    handler = signal.getsignal(signal.SIGINT)
    interrupt_and_resume(extra | {"trainer.epochs": 4}, epoch)
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.slow
def test_a_finished_run_is_left_alone(run, resume):
    before = run.metrics.read_bytes(), run.last.read_bytes()
    resume(run.root)
    assert (run.metrics.read_bytes(), run.last.read_bytes()) == before


@pytest.mark.slow
def test_a_run_whose_folder_moved_keeps_its_best(train, resume):
    """The best epoch came before the move; those after it are worse."""
    constant = {"optimiser.schedule": "constant"}
    first = train("run", constant | {"trainer.epochs": 2})
    best = first.paths.best.read_bytes()
    moved = first.paths.root.rename(Path("moved"))
    config = yaml.safe_load((moved / "config.yaml").read_text())
    config["trainer"]["epochs"], config["optimiser"]["lr"] = 4, 1.0
    (moved / "config.yaml").write_text(yaml.safe_dump(config))
    checkpoint = torch.load(moved / "checkpoints/last.ckpt", weights_only=True)
    checkpoint["hyper_parameters"]["optimiser"]["lr"] = 1.0
    for group in checkpoint["optimizer_states"][0]["param_groups"]:
        group["lr"] = group["initial_lr"] = 1.0
    for schedule in checkpoint["lr_schedulers"]:
        schedule["base_lrs"] = schedule["_last_lr"] = [1.0]
    torch.save(checkpoint, moved / "checkpoints/last.ckpt")
    (moved / "unseen.csv").write_text("errors of other weights")
    run = resume(moved)
    assert not run.paths.unseen.exists()
    rmse = run.rmse()
    assert len(rmse) == 4 and min(rmse) == min(rmse[:2]) < min(rmse[2:])
    assert run.paths.best.read_bytes() == best
    assert read_checkpoint(run.paths.last)["epoch"] == 3
    assert not first.paths.root.exists()


@pytest.mark.slow
def test_settings_that_have_changed_are_refused(train, resume, refuses):
    run = train("run", {"trainer.epochs": 2}).paths
    checkpoint = torch.load(run.last, weights_only=True)
    checkpoint["epoch"] = 0  # as if it had been stopped after the first
    torch.save(checkpoint, run.last)
    config = run.config.read_text()
    for key, given in [
        ("epochs", 3),
        ("epochs", 4),
        ("lr", 0.5),
        ("schedule", "constant"),
    ] + [("seed", 3), ("batch_size", 3), ("points", 20), ("gradient_clip", 1.0)]:
        edited = re.sub(rf"(?m)^( *){key}: .*", rf"\g<1>{key}: {given}", config)
        run.config.write_text(edited)
        refuses(rf"{key} {given}: expected .*the run began", resume, run.root)
    run.config.write_text(config.replace("patience: null", "patience: 9"))
    assert len(resume(run.root).rows()) == 2


def moved(run: RunPaths, old: Path, new: str) -> str:
    """Data of a run under another name."""
    run.config.write_text(run.config.read_text().replace(str(old), new))
    return new


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    ["/home/other/data/waves.nc", "C:\\Users\\other\\waves.nc", "~other/waves.nc"],
)
def test_data_that_have_moved(run, waves, resume, refuses, place):
    """To another machine, whose name of them need not be a path here."""
    shutil.copy(waves, "here.nc")
    before = evaluate_run(run.root)
    history = run.metrics.read_bytes()
    moved(run, waves, place)
    for call in (resume, evaluate_run):
        refuses("which are not there.*--data FILE", call, run.root)
    found = evaluate_run(run.root, data="here.nc")
    assert found["test"] == before["test"] and found["scored"].pop("data_of_run")
    assert found["scored"] == before["scored"]
    assert json.loads(run.summary.read_text())["data"] == "here.nc"
    whole = evaluate_run(run.root, data="here.nc", part="all")["scored"]
    assert (whole["samples"], whole["trained_on"]) == (20, 16)
    other = Path("other.nc")
    shutil.copy(waves, other)
    with h5py.File(other, "r+") as file:
        file["u"][0] *= 2
    assert evaluate_run(run.root, data=other)["scored"]["trained_on"] == 0
    config = run.config.read_bytes()
    refuses("last.ckpt of other data than", resume_run, run.root, data=other)
    assert run.config.read_bytes() == config
    experiment, paths = resume_run(run.root, data=Path("here.nc"))
    fit(experiment, paths)
    assert read_config(run.config).data.file == Path("here.nc").resolve()
    assert run.metrics.read_bytes() == history
    assert evaluate_run(run.root)["test"] == before["test"]


@pytest.mark.slow
def test_a_folder_and_a_test_file_that_have_moved(tiny, waves, refuses):
    """The parts are those of the run: of its settings, and its test file."""
    Path("old/parts").mkdir(parents=True)
    with nfsgeo.open(waves) as file:
        u = np.stack([file.read(k, slice(None)) for k in range(20)])
        place = {"pos": file.coordinates(), "t": file.times, "domain": file.domain}
        for name, some in (("parts/a", u[:6]), ("parts/b", u[6:12]), ("test", u[12:])):
            nfsgeo.from_arrays(some, **place).write(Path(f"old/{name}.nc"))
    chosen = tiny | {"trainer.epochs": 1, "data.split": [8, 4, 0]}
    chosen |= {"data.test_file": "old/test.nc", "data.points": 64}
    run = nfsgeo.fit(nfsgeo.prepare("old/parts", chosen), "run")
    before = nfsgeo.evaluate(run)
    assert before["scored"]["samples"] == 8
    Path("old").rename("new")
    shutil.move("new/test.nc", "test.nc")
    refuses("the test file of the run", nfsgeo.evaluate, run, data="new/parts")
    shutil.move("test.nc", "new/test.nc")
    found = nfsgeo.evaluate(run, data="new/parts")
    assert found["test"] == before["test"] and found["scored"]["samples"] == 8
    whole = nfsgeo.evaluate(run, data="new/parts", part="all")["scored"]
    assert (whole["samples"], whole["trained_on"]) == (12, 12)
    resume_run(run.root, data=Path("new/parts"))
    assert nfsgeo.evaluate(run)["test"] == before["test"]


def test_data_that_a_run_made_are_made_again(run, waves, monkeypatch):
    """In the cache, which may be that of another user or empty."""
    moved(run, waves, "/home/other/.cache/nfsgeo/navier-stokes-64-20-360-seed0.nc")
    monkeypatch.setattr("nfsgeo.training.source.generate", lambda *_, **__: waves)
    assert evaluate_run(run.root)["scored"]["samples"] == 4


def test_the_name_of_data_that_are_made_again():
    path = cache_folder() / DEMONSTRATION
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    settings: dict[str, Any] = {"samples": 360, "resolution": 64, "num_steps": 20}
    assert generate("navier-stokes", None, **settings) == path
    path.unlink()


@pytest.mark.slow
def test_a_run_is_trained_longer(train, run, refuses):
    """By --resume unless the schedule ends with the run, else as the message says."""
    words = "train --config .*config.yaml --start-from .* --epochs 4 --out"
    refuses(words, resume_run, run.root, epochs=4)
    overrides = {"model.start_from": str(run.root), "trainer.epochs": 3}
    longer = prepare(load_config(run.config, overrides))
    fit(longer, begin_run(longer, Path("longer")))
    assert len(read_history(RunPaths(Path("longer")).metrics)) == 3
    constant = {"optimiser.schedule": "constant", "trainer.epochs": 1}
    paths = train("constant", constant).paths
    experiment, paths = resume_run(paths.root, epochs=2)
    fit(experiment, paths)
    assert len(read_history(paths.metrics)) == 2
    assert read_config(paths.config).trainer.epochs == 2


@pytest.mark.slow
def test_data_that_have_changed_are_noticed(train, resume, waves, refuses):
    own = Path("own.nc")
    shutil.copy(waves, own)
    paths = train("run", {"data.file": str(own), "trainer.epochs": 1}).paths
    evaluate_run(paths.root)
    config = paths.config.read_text()
    paths.config.write_text(config.replace("  epochs: 1\n", "  epochs: 2\n"))
    other = Path("other.nc")
    shutil.copy(waves, other)
    with h5py.File(other, "r+") as file:
        file["u"][-1] *= 2
    other.replace(own)
    refuses("last.ckpt of other data than", resume, paths.root)
    refuses("own.nc, which has changed since training", evaluate_run, paths.root)
    assert evaluate_run(paths.root, data=own)["test"]
