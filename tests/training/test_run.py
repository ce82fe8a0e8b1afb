"""Whole runs: what they leave behind, and that they come out the same again."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning.pytorch import Callback

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Residual
from nfsgeo.training import RunPaths, begin_run, load_config, prepare
from nfsgeo.training.checkpoints import read_checkpoint


def covariance_of(forecaster: Forecaster) -> Any:
    residual = forecaster.find(Residual)
    assert residual is not None
    return residual.covariance


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_the_same_seed_gives_the_same_numbers(train, workers):
    one = train("one")
    torch.rand(7)  # the state of the generator must not matter
    assert train("again", {"data.workers": workers}).is_the_same_as(one)


class Poison(Callback):
    """Makes a weight infinite in the second epoch."""

    def on_train_batch_start(
        self, trainer: Any, module: Any, batch: Any, batch_idx: int
    ) -> None:
        if (trainer.current_epoch, batch_idx) == (1, 1):
            with torch.no_grad():
                next(module.forecaster.model.parameters()).fill_(float("inf"))


def test_a_loss_that_is_not_finite_keeps_the_last_good_checkpoint(train):
    with pytest.raises(UserError, match=r"in epoch 1 on samples \[\d+, \d+"):
        train("run", {}, Poison())
    checkpoint = read_checkpoint(RunPaths(Path("run")).last)
    assert checkpoint["epoch"] == 0
    values = checkpoint["state_dict"].values()
    assert all(torch.isfinite(value).all() for value in values)


def test_a_checkpoint_that_is_a_pickle_or_missing_is_refused(run, refuses):
    torch.save({"nfsgeo": Path("/")}, run.best)
    refuses("best.ckpt", nfsgeo.load, run)
    run.best.unlink()
    refuses("best.ckpt", nfsgeo.load, run)


def test_a_checkpoint_from_before_a_setting_was_there(run):
    checkpoint = torch.load(run.best, weights_only=True)
    del checkpoint["nfsgeo"]["settings"]["absolute_position"]
    torch.save(checkpoint, run.best)
    restored = nfsgeo.load(run).state_dict()
    for name, value in checkpoint["state_dict"].items():
        assert torch.equal(restored[name.removeprefix("forecaster.")], value), name


@pytest.mark.slow
def test_a_checkpoint_from_before_layers_were_factorised(train):
    blocks = {"model.settings.factorised": False, "model.settings.skip": False}
    run = train("old", blocks).paths
    x, pos = torch.randn(40, 10, 1), torch.rand(40, 2)
    expected = nfsgeo.load(run)(x, pos)
    checkpoint = torch.load(run.best, weights_only=True)
    for name in ("factorised", "skip"):
        del checkpoint["nfsgeo"]["settings"][name]
    torch.save(checkpoint, run.best)
    config = yaml.safe_load(run.config.read_text())
    for name in ("factorised", "skip"):
        del config["model"]["settings"][name]
    run.config.write_text(yaml.safe_dump(config))
    assert torch.equal(nfsgeo.load(run)(x, pos), expected)


def test_weights_of_another_version_are_refused(run, resume, refuses):
    for path in (run.best, run.last):
        checkpoint = torch.load(path, weights_only=True)
        name, value = next(iter(checkpoint["state_dict"].items()))
        checkpoint["state_dict"][name] = value[..., None].repeat_interleave(2, -1)
        torch.save(checkpoint, path)
    refuses(r"best\.ckpt from another version", nfsgeo.load, run)
    refuses(r"last\.ckpt from another version", resume, run.root)


def test_folders_are_numbered(waves, tiny):
    made = [begin_run(nfsgeo.prepare(waves, tiny)).root for _ in range(2)]
    assert made == [Path("runs/nfs-waves-1"), Path("runs/nfs-waves-2")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "windows"), [(2, (8, 3)), (2, (7, 1)), (3, (7, 4))]
)
def test_devices_take_the_steps_of_one(train, devices, windows):
    """The same samples make a step, in one batch or in parts of several sizes."""
    chosen: dict[str, Any] = {"trainer.epochs": 2, "trainer.device": "cpu"}
    chosen["data.split"] = [*windows, 1]
    one = train("one", chosen | {"data.batch_size": 2 * devices})
    shared = {"data.batch_size": 2, "trainer.devices": devices}
    two = train("two", chosen | shared)
    for alone, together in zip(one.rows(), two.rows(), strict=True):
        assert alone == pytest.approx(together, rel=1e-4)
    scores = [evaluate_run(run.paths)["test"] for run in (one, two)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


class StopAfter(Callback):
    """Stops after the second epoch, as if the rest had not been asked for."""

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        trainer.should_stop = trainer.current_epoch == 1


@pytest.mark.slow
@pytest.mark.parametrize("devices", [(1, 2), (2, 1)])
def test_a_run_goes_on_with_another_number_of_devices(train, resume, devices):
    """The learning rate is that of the part of training that is done."""
    chosen: dict[str, Any] = {"trainer.epochs": 4, "data.split": [8, 2, 2]}
    chosen |= {"data.batch_size": 2, "trainer.device": "cpu"}
    before, after = ({"trainer.devices": num} for num in devices)
    whole = train("whole", chosen | after).rows()
    run = train("run", chosen | before, StopAfter()).paths
    config = run.config.read_text()
    run.config.write_text(
        config.replace(f"devices: {devices[0]}", f"devices: {devices[1]}")
    )
    rows = resume(run.root).rows()
    rates = [[row["learning_rate"] for row in rows[2:]] for rows in (whole, rows)]
    assert rates[0] == pytest.approx(rates[1]) and len(rows) == 4


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["64", "bf16-mixed"])
def test_precision(train, precision):
    single = train("single").rows()
    other = train("other", {"trainer.precision": precision}).rows()
    assert other[-1] == pytest.approx(single[-1], rel=0.05)
    assert other != single


@pytest.mark.slow
def test_few_points_are_interpolated_by_kriging_also_after_restoring(train):
    run = train("sparse", {"data.points": 20, "data.query_points": 40})
    forecaster = run.experiment.forecaster
    assert covariance_of(forecaster) is not None
    restored = nfsgeo.load(run.paths)
    item = run.experiment.data.parts["train"][0]
    forecaster.load_state_dict(restored.state_dict())
    with torch.no_grad():
        results = [
            each.eval()(item.x, item.pos, query_pos=item.query_pos)
            for each in (forecaster, restored)
        ]
    assert torch.equal(*results)


def test_without_unobserved_points_there_is_no_kriging(waves):
    for settings in ({"data.query_points": 0, "data.points": 20}, {"data.mesh": "all"}):
        chosen = {"data.file": str(waves), "data.max_train": 4} | settings
        experiment = prepare(load_config(overrides=chosen))
        assert covariance_of(experiment.forecaster) is None
        assert "query_pos" not in experiment.data.parts["train"][0]
