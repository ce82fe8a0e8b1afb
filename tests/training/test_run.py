"""Whole runs: what they leave behind, and that they come out the same again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning.pytorch import Callback

from nfsgeo.errors import UserError
from nfsgeo.training import (
    Experiment,
    RunPaths,
    begin_run,
    fit,
    load_config,
    prepare,
    restore,
    resume_run,
)
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import COLUMNS, read_history

Overrides = dict[str, Any]


def train(
    out: Path, data: Path, overrides: Overrides, *callbacks: Callback
) -> tuple[Experiment, RunPaths]:
    config = load_config(overrides={"data.file": str(data)} | overrides)
    experiment = prepare(config)
    paths = begin_run(experiment, out)
    fit(experiment, paths, callbacks)
    return experiment, paths


def numbers(paths: RunPaths) -> list[dict[str, float]]:
    """All of the history but the times."""
    rows = read_history(paths.metrics)
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def weights(path: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(path)["state_dict"]


def same_weights(one: Path, other: Path) -> bool:
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_what_a_run_leaves(tmp_path: Path, waves: Path, tiny: Overrides) -> None:
    experiment, paths = train(tmp_path / "run", waves, tiny)
    left = {str(p.relative_to(paths.root)) for p in paths.root.rglob("*.*")}
    assert {
        "config.yaml",
        "environment.json",
        "metrics.csv",
        "checkpoints/best.ckpt",
        "checkpoints/last.ckpt",
    } <= left
    assert not [name for name in left if "partial" in name]
    rows = read_history(paths.metrics)
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert tuple(paths.metrics.read_text().splitlines()[0].split(",")) == COLUMNS
    environment = json.loads(paths.environment.read_text())
    assert environment["seed"] == 0 and environment["packages"]["torch"]
    config = yaml.safe_load(paths.config.read_text())
    assert config["data"]["points"] == 64 and config["optimiser"]["lr"] > 0


def test_checkpoints_hold_plain_types(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, paths = train(tmp_path / "run", waves, tiny | {"trainer.patience": 2})
    for path in (paths.best, paths.last):
        checkpoint = torch.load(path, weights_only=True)
        assert checkpoint["nfsgeo"]["model"] == "nfs"
        assert "inputs.mean" in checkpoint["state_dict"]


class Spoil(Callback):
    """Makes all weights ten times as large after two epochs."""

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 2:
            with torch.no_grad():
                for parameter in module.model.parameters():
                    parameter *= 10


def test_best_is_the_epoch_with_the_lowest_rmse(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, paths = train(tmp_path / "run", waves, tiny | {"trainer.epochs": 4}, Spoil())
    rmse = [row["valid_rmse"] for row in read_history(paths.metrics)]
    assert min(rmse) == rmse[1]
    assert read_checkpoint(paths.best)["epoch"] == 1
    assert read_checkpoint(paths.last)["epoch"] == 3


def test_a_restored_model_predicts_the_same(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    experiment, paths = train(tmp_path / "run", waves, tiny | {"trainer.epochs": 1})
    window = experiment.data.parts["valid"][0]
    with torch.no_grad():
        trained = experiment.forecaster.eval()(window.x, window.pos)
        restored = restore(paths, experiment.config)(window.x, window.pos)
    assert torch.equal(trained, restored)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_same_seed_gives_the_same_numbers(
    tmp_path: Path, waves: Path, tiny: Overrides, workers: int
) -> None:
    _, one = train(tmp_path / "one", waves, tiny)
    torch.rand(7)  # the state of the generator must not matter
    _, again = train(tmp_path / "again", waves, tiny | {"data.workers": workers})
    assert numbers(one) == numbers(again)
    assert same_weights(one.last, again.last)


def test_two_seeds_differ(tmp_path: Path, waves: Path, tiny: Overrides) -> None:
    _, one = train(tmp_path / "one", waves, tiny)
    _, other = train(tmp_path / "other", waves, tiny | {"seed": 1})
    assert numbers(one) != numbers(other)


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


def test_killed_in_mid_epoch_and_resumed_gives_the_very_numbers(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, undisturbed = train(
        tmp_path / "undisturbed", waves, tiny | {"trainer.epochs": 6}
    )
    out = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, str(undisturbed.config), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(read_history(RunPaths(out).metrics)) == 3
    experiment, paths = resume_run(out)
    fit(experiment, paths)
    assert numbers(paths) == numbers(undisturbed)
    assert same_weights(paths.last, undisturbed.last)
    assert same_weights(paths.best, undisturbed.best)


class Interrupt(Callback):
    """Ctrl-C in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if (trainer.current_epoch, batch_idx) == (self.epoch, 1):
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "extra",
    [
        {"optimiser.schedule": "step", "optimiser.step_epochs": 2},
        {"trainer.patience": 3},
        {"data.mesh_per_sample": True},
        {"data.workers": 1},
    ],
)
@pytest.mark.parametrize("epoch", [0, 2])
def test_interrupted_and_resumed_gives_the_very_numbers(
    tmp_path: Path, waves: Path, tiny: Overrides, extra: Overrides, epoch: int
) -> None:
    extra = tiny | extra | {"trainer.epochs": 4}
    _, undisturbed = train(tmp_path / "undisturbed", waves, extra)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", waves, extra, Interrupt(epoch))
    assert signal.getsignal(signal.SIGINT) is handler
    experiment, paths = resume_run(tmp_path / "run")
    assert len(read_history(paths.metrics)) == epoch
    fit(experiment, paths)
    assert numbers(paths) == numbers(undisturbed)
    assert same_weights(paths.last, undisturbed.last)
    assert same_weights(paths.best, undisturbed.best)


def test_killed_between_the_row_and_the_checkpoint(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, undisturbed = train(tmp_path / "undisturbed", waves, tiny)
    _, paths = train(tmp_path / "run", waves, tiny | {"trainer.epochs": 2})
    # As if the last of three epochs had left its row and no checkpoint.
    _forge_epochs(paths, 3)
    rows = undisturbed.metrics.read_text().replace("\n2,", "\n2,9")
    paths.metrics.write_text(rows)
    fit(*resume_run(paths.root))
    assert [row["epoch"] for row in numbers(paths)] == [0, 1, 2]
    assert numbers(paths)[2]["train_loss"] < 9


def _forge_epochs(paths: RunPaths, epochs: int) -> None:
    config = yaml.safe_load(paths.config.read_text())
    config["trainer"]["epochs"] = epochs
    config["optimiser"]["schedule"] = "constant"
    paths.config.write_text(yaml.safe_dump(config))


def test_a_finished_run_is_left_alone(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, paths = train(tmp_path / "run", waves, tiny)
    before = paths.metrics.read_bytes(), paths.last.read_bytes()
    fit(*resume_run(paths.root))
    assert (paths.metrics.read_bytes(), paths.last.read_bytes()) == before


def test_early_stopping_counts_epochs_without_improvement(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    rough = {"optimiser.lr": 0.5, "optimiser.schedule": "constant"}
    patient = {"trainer.epochs": 50, "trainer.patience": 2}
    _, paths = train(tmp_path / "run", waves, tiny | rough | patient)
    rmse = [row["valid_rmse"] for row in read_history(paths.metrics)]
    assert len(rmse) < 50
    assert rmse.index(min(rmse)) == len(rmse) - 3
    fit(*resume_run(paths.root))
    assert len(read_history(paths.metrics)) == len(rmse)


class Poison(Callback):
    """Makes a weight infinite in the second epoch."""

    def on_train_batch_start(
        self, trainer: Any, module: Any, batch: Any, batch_idx: int
    ) -> None:
        if (trainer.current_epoch, batch_idx) == (1, 1):
            with torch.no_grad():
                next(module.model.parameters()).fill_(float("inf"))


def test_a_loss_that_is_not_finite_keeps_the_last_good_checkpoint(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    with pytest.raises(UserError, match=r"in epoch 1 on samples \[\d+, \d+"):
        train(tmp_path / "run", waves, tiny, Poison())
    paths = RunPaths(tmp_path / "run")
    assert read_checkpoint(paths.last)["epoch"] == 0
    assert all(torch.isfinite(value).all() for value in weights(paths.last).values())


def test_a_checkpoint_of_another_model_is_refused(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    _, wide = train(tmp_path / "wide", waves, tiny | {"model.settings.width": 6})
    _, paths = train(tmp_path / "run", waves, tiny | {"trainer.epochs": 1})
    _forge_epochs(paths, 3)
    paths.last.write_bytes(wide.last.read_bytes())
    with pytest.raises(UserError, match="last.ckpt of nfs.*same settings"):
        fit(*resume_run(paths.root))


@pytest.mark.parametrize("damage", ["cut", "pickle", "missing"])
def test_a_damaged_checkpoint_is_refused(
    tmp_path: Path, waves: Path, tiny: Overrides, damage: str
) -> None:
    experiment, paths = train(tmp_path / "run", waves, tiny | {"trainer.epochs": 1})
    if damage == "cut":
        paths.best.write_bytes(paths.best.read_bytes()[:1000])
    elif damage == "pickle":
        torch.save({"nfsgeo": Path("/")}, paths.best)
    else:
        paths.best.unlink()
    with pytest.raises(UserError, match="best.ckpt"):
        restore(paths, experiment.config)


def test_a_folder_that_holds_something_is_refused(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="new or empty"):
        train(tmp_path, waves, tiny)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_folders_are_numbered(
    tmp_path: Path, waves: Path, tiny: Overrides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(overrides={"data.file": str(waves)} | tiny)
    made = [begin_run(prepare(config)).root for _ in range(2)]
    assert made == [Path("runs/nfs-waves-1"), Path("runs/nfs-waves-2")]


@pytest.mark.slow
def test_two_devices_take_the_steps_of_one(
    tmp_path: Path, waves: Path, tiny: Overrides
) -> None:
    # Fourteen samples: the same four make a step, in one batch or in two halves.
    even = tiny | {"data.max_train": 8, "trainer.epochs": 2}
    _, one = train(tmp_path / "one", waves, even | {"data.batch_size": 4})
    two_devices = {"data.batch_size": 2, "trainer.devices": 2}
    _, two = train(tmp_path / "two", waves, even | two_devices)
    for alone, shared in zip(numbers(one), numbers(two), strict=True):
        assert alone == pytest.approx(shared, rel=1e-4)


@pytest.mark.parametrize("precision", ["64", "bf16-mixed"])
def test_precision(
    tmp_path: Path, waves: Path, tiny: Overrides, precision: str
) -> None:
    _, single = train(tmp_path / "single", waves, tiny)
    _, other = train(tmp_path / "other", waves, tiny | {"trainer.precision": precision})
    assert numbers(other)[-1] == pytest.approx(numbers(single)[-1], rel=0.05)
    assert numbers(other) != numbers(single)
