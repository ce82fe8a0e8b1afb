"""`nfsgeo train` from end to end."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from nfsgeo.config import RunConfig
from nfsgeo.data.conventions import STATIC
from nfsgeo.training import RunPaths
from nfsgeo.training.trainer import read_history
from nfsgeo_cli import main
from nfsgeo_cli.next_steps import hints, next_steps, remarks, text_of


def parsed(command: str) -> click.Context:
    """The context of a command that is not run."""
    name, verb, *words = shlex.split(command)
    assert name == "nfsgeo"
    return main.commands[verb].make_context(verb, words)


def test_the_last_lines_are_commands_for_this_run(training):
    lines = training.stdout.replace(" \\\n   ", "").splitlines()
    commands = [line.strip() for line in lines if line.startswith("  nfsgeo ")]
    verbs = {parsed(command).info_name for command in commands}
    assert {"predict", "train", "compare"} <= verbs
    assert all("runs/nfs-waves-1" in c for c in commands if " predict " in c)


@pytest.mark.slow
def test_the_commands_for_the_next_steps_run(nfsgeo, waves):
    data = Path("a file.nc")
    data.write_bytes(waves.read_bytes())
    sizes = ["--n-in", 4, "--n-out", 4, "--points", 16, "--epochs", 1]
    sizes += ["--set", "model.settings.width=4", "--set", "trainer.logger=none"]
    trained = nfsgeo("train", "--data", data, *sizes, "--out", "my run", "--json")
    steps, run = json.loads(trained.stdout)["next"], []
    for command in " && ".join(step["command"] for step in steps).split(" && "):
        context = parsed(command)
        if context.info_name == "tune":
            continue  # it takes minutes
        result = nfsgeo(*shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
        run.append(context.info_name)
    assert {"predict", "evaluate", "train", "compare"} <= {*run}
    assert Path("my run-predicted.nc").is_file()
    assert all(command in trained.stderr for command in shlex.split("predict compare"))


def test_printed_commands_are_folded_at_80_columns():
    words = ["nfsgeo", "train", "--data", "/a b/" + 90 * "c", *4 * ["--set", "a.b=c d"]]
    printed = text_of([{"why": "Train", "command": shlex.join(words)}])[3:]
    assert shlex.split(" ".join(printed).replace("\\ ", "")) == words
    assert sum(len(line) > 80 for line in printed) == 1 < len(printed)


FALLING = [(3.0, 3.1, 9.0), (2.0, 2.1, 6.0), (1.0, 1.1, 4.0), (0.9, 1.0, 3.0)]
FLAT = [(3.0, 3.1, 9.0), (2.0, 2.1, 3.0), (1.0, 1.1, 3.0), (0.9, 1.0, 3.0)]
APART = [(3.0, 3.1, 9.0), (0.4, 2.1, 3.0), (0.2, 2.1, 4.0), (0.1, 2.0, 2.0)]


@pytest.mark.parametrize(
    ("history", "more", "expected"),
    [
        (FALLING, {}, ["longer"]),
        (FALLING, {"stopped_early": True}, []),
        (FALLING[:2], {}, []),
        (FLAT, {}, []),
        (APART, {}, ["smaller"]),
        (FLAT, {"baselines": {"persistence": {"mae": 0.5}}}, ["tuned"]),
        (FLAT, {"baselines": {"mean": {"mae": float("nan")}}}, []),
        (FLAT, {"unobserved": {"mae": 5.0}}, ["denser"]),
        (FLAT, {"unobserved": {"mae": 1.5}}, []),
        ([], {"baselines": {"persistence": {"mae": 0.5}}}, []),
    ],
)
def test_advice_follows_from_what_was_measured(history, more, expected):
    names = ("train_loss", "valid_loss", "valid_rmse")
    rows = [dict(zip(names, row, strict=True)) for row in history]
    summary = {"test": {"mae": 1.0}, "baselines": {"persistence": {"mae": 2.0}}}
    summary |= {"stopped_early": False, "seconds_per_epoch": 9.0}
    summary |= {"scored": {"points": 64, "of_points": 100}} | more
    data = {"mesh": "random-subset", "points": 64}
    config = RunConfig(data=data, model={"settings": {"depth": 6}})
    found = {suffix: change for _, change, suffix in remarks(rows, summary, config)}
    assert [*found] == expected
    changes = [
        ("longer", ["--epochs", str(4 * config.trainer.epochs)]),
        ("smaller", ["--set", "model.settings.depth=3"]),
        ("denser", ["--points", "100"]),
    ]
    for suffix, change in changes:
        assert found.get(suffix, change) == change


@pytest.mark.parametrize(
    ("types", "cells", "inputs", "advised"),
    [
        (True, False, [], True),
        (False, True, [], True),
        (False, False, [], False),
        (True, True, ["Wall_Distance"], False),
    ],
)
def test_meshes_with_a_boundary_and_no_distance_are_told_of_it(
    around_bodies, types, cells, inputs, advised
):
    fields = around_bodies(2, types=types, cells=cells)
    names = {"v": inputs[0]} if inputs else {}
    fields = fields.with_dataset(fields.dataset.rename(names))
    for name in inputs:
        fields.dataset[name].attrs["role"] = STATIC
    found = hints(fields, 0)
    assert any("boundary_inputs" in line for line in found) == advised
    assert all(len(line) < 72 for line in found)


def test_advised_runs_differ_in_one_thing_and_have_short_names(monkeypatch):
    """The advice keeps the bands of the run, and paths as seen from here."""
    root, data = Path.cwd() / "runs" / "x-longer", Path.cwd() / "data.nc"
    for name in (root.name, "x-dse"):
        (root.parent / name).mkdir(parents=True)
    rows = [{"valid_rmse": 9 - k, "valid_loss": 1, "train_loss": 1} for k in range(5)]
    monkeypatch.setattr("nfsgeo.training.trainer.read_history", lambda _: rows)
    config = RunConfig(data={"file": data}, model={"name": "nfs", "bands": True})
    experiment = SimpleNamespace(
        config=config,
        task=SimpleNamespace(has_time=False),
        file=SimpleNamespace(forcing_names=(), domain=SimpleNamespace(curved=False)),
    )
    summary = {"test": {"mae": 1.0}, "baselines": {}, "seconds_per_epoch": 9.0}
    summary |= {"stopped_early": False, "scored": {"points": 9, "of_points": 9}}
    given = {"data.file": data, "model.bands": True, "model.settings.width": 4}
    steps = next_steps(experiment, RunPaths(root), summary, given)
    commands = " && ".join(step["command"] for step in steps)
    assert str(Path.cwd()) not in commands
    assert "--model dse --data data.nc --bands --out runs/x-dse-2" in commands
    assert "compare runs/x-longer runs/x-dse-2" in commands
    assert commands.endswith("--out runs/x-longer-2")


def test_a_run_folder_is_complete(trained):
    names = "config.yaml environment.json metrics.csv summary.json evaluation.npz"
    names += " checkpoints/best.ckpt checkpoints/last.ckpt report.html"
    for name in names.split():
        assert (trained / name).stat().st_size > 0, name
    assert list((trained / "figures").glob("*.png"))
    assert list((trained / "tensorboard").glob("events.*"))
    assert not list(trained.rglob("*.partial"))


def test_samples_are_told_before_and_errors_beside_baselines_after(training):
    assert "10 train + 2 valid + 4 test samples in file order" in training.stderr
    for name in ("nfs", "persistence", "linear extrapolation", "training mean"):
        assert name in training.stdout
    assert "runs/nfs-waves-1/report.html" in training.stdout
    lines = [x for x in training.output.splitlines() if not x.startswith("  nfsgeo")]
    assert max(map(len, lines)) <= 80
    assert "fields  u" in training.stderr
    assert len(training.stderr.splitlines()) == 5 + 2  # about the run, and each epoch


@pytest.mark.slow
def test_a_saved_configuration_makes_the_same_run_again(nfsgeo, trained):
    result = nfsgeo("train", "--config", trained / "config.yaml", "--out", "again")
    assert result.exit_code == 0, result.output
    losses = [
        [row["train_loss"] for row in read_history(run / "metrics.csv")]
        for run in (trained, Path("again"))
    ]
    assert losses[0] == losses[1]
