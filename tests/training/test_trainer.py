"""The knobs of Lightning's trainer, reached from the settings and from Python."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch_geometric.loader import DataLoader

import nfsgeo
from nfsgeo.data import windows
from nfsgeo.forecast import Forecaster
from nfsgeo.training import load_config, prepare
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.module import TrainingModule
from nfsgeo.training.trainer import LOGGERS, progress_callback


@pytest.mark.parametrize("logger", ["csv", "none"])
def test_a_run_logs_where_it_is_told(train, logger):
    chosen = {"trainer.logger": logger, "trainer.epochs": 1, "trainer.log_every": 1}
    root = train("run", chosen).paths.root
    assert not (root / "tensorboard").exists()
    logged = list(root.glob("csv/version_0/metrics.csv"))
    assert bool(logged) == (logger == "csv")
    if logged:
        names = logged[0].read_text().splitlines()[0].split(",")
        assert {"train_loss_step", "train_loss", "valid_rmse"} <= set(names)
        told = (logged[0].parent / "hparams.yaml").read_text()
        assert "points: 64" in told


def test_a_service_that_refuses_a_run_is_a_user_error(train, monkeypatch, refuses):
    def refuse(run: Path) -> bool:
        raise RuntimeError("no key")

    monkeypatch.setitem(LOGGERS, "csv", refuse)
    refuses(r"trainer\.logger=csv \(no key\)", train, "run", {"trainer.logger": "csv"})


@pytest.mark.slow
def test_accumulated_gradients_are_those_of_larger_batches(train):
    chosen = {"data.max_train": 12, "trainer.epochs": 2, "optimiser.eps": 1e-3}
    one = train("one", chosen | {"data.batch_size": 4})
    halves = {"data.batch_size": 2, "trainer.accumulate": 2}
    other = train("other", chosen | halves)
    found = other.weights("last")
    for name, value in one.weights("last").items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("per_node", [{}, {"NTASKS_PER_NODE": "4"}])
def test_a_job_of_slurm_trains_as_any_other_process(train, monkeypatch, per_node):
    """Of four tasks, where Lightning refuses one device, and no checkpoint is taken."""
    about = {"NTASKS": "4", "JOB_ID": "1", "JOB_NAME": "x"} | per_node
    about |= {"PROCID": "0", "LOCALID": "0", "NODEID": "0", "NNODES": "1"}
    for name, value in about.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    Path("hpc_ckpt_1.ckpt").touch()
    trained = train("run", {"trainer.epochs": 1})
    assert trained.paths.last.exists()


class Worse(Callback):
    """Makes the model worse from its second epoch on."""

    def on_validation_epoch_start(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch:
            with torch.no_grad():
                for parameter in module.forecaster.model.parameters():
                    parameter *= 3


@pytest.mark.slow
def test_the_best_epoch_is_kept_and_early_stopping_says_so(train, resume, capsys):
    chosen = {"trainer.patience": 2, "trainer.epochs": 9}
    run = train("run", chosen, Worse(), progress_callback())
    lines = capsys.readouterr().err.splitlines()
    assert "epoch 3 of 9: no lower valid_rmse in 2 epochs" in lines[-1]
    rmse = run.rmse()
    for name, epoch in (("best", 0), ("last", 2)):
        assert read_checkpoint(getattr(run.paths, name))["epoch"] == epoch
    assert rmse[0] == min(rmse) and resume(run.paths.root).rmse() == rmse
    summary = nfsgeo.evaluate(run.paths)
    assert (summary["epochs"], summary["stopped_early"]) == (3, True)
    again = train("again", {"trainer.epochs": 1, "trainer.patience": 2})
    assert nfsgeo.evaluate(again.paths)["stopped_early"] is False


@pytest.mark.slow
def test_a_range_test_finds_a_learning_rate(waves, tiny):
    chosen = tiny | {"data.file": str(waves)}
    plain = prepare(load_config(overrides=chosen))
    found = prepare(load_config(overrides=chosen | {"optimiser.find_lr": True}))
    optimiser = found.config.optimiser
    assert optimiser.lr is not None and 1e-5 < optimiser.lr < 1e-1
    assert optimiser.find_lr is False
    assert found.module.optimiser_section == optimiser
    other = plain.forecaster.state_dict()
    for name, value in found.forecaster.state_dict().items():
        assert torch.equal(value, other[name]), name


@pytest.mark.slow
def test_a_budget_of_time_gives_the_epochs(waves, tiny, one_line):
    del (chosen := tiny | {"data.file": str(waves)})["trainer.epochs"]
    plain = prepare(load_config(overrides=chosen))
    numbers = []
    for minutes in (0.001, 0.02, 0.2):
        config = load_config(overrides=chosen | {"trainer.budget": minutes})
        experiment = prepare(config)
        section = experiment.config.trainer
        assert section.budget is None
        numbers.append(section.epochs)
        other = plain.forecaster.state_dict()
        for name, value in experiment.forecaster.state_dict().items():
            assert torch.equal(value, other[name]), name
    assert numbers[0] < numbers[1] < numbers[2]
    assert 4 < numbers[2] / numbers[1] < 25  # times ten, as far as clocks repeat
    paths = nfsgeo.fit(prepare(load_config(overrides=chosen | {"trainer.budget": 0.1})))
    summary = nfsgeo.evaluate(paths)
    assert 2 < summary["cpu_seconds"] < 18
    both = chosen | {"trainer.budget": 1.0, "trainer.epochs": 2}
    one_line(load_config, overrides=both)


@pytest.mark.parametrize(
    "meshes",
    [{"data.point_sets": 1}, {"data.point_sets": 16}, {"data.mesh_per_sample": True}],
)
@pytest.mark.parametrize("seconds", [40.0, 400.0])
def test_a_budget_counts_what_the_first_epochs_take(
    waves, tiny, monkeypatch, meshes, seconds
):
    """A clock that goes on with each reading, graph and step alone."""
    clock = [0.0]

    def slow_down(owner: Any, name: str, cost: float) -> None:
        plain = getattr(owner, name)

        def slow(*arguments: Any, **options: Any) -> Any:
            clock[0] += cost
            return plain(*arguments, **options)

        monkeypatch.setattr(owner, name, slow)

    monkeypatch.setattr("time.process_time", lambda: clock[0])
    slow_down(windows, "read_sample", 0.25)
    slow_down(Forecaster, "connect", 1.0)
    slow_down(TrainingModule, "training_step", 0.5)
    slow_down(TrainingModule, "validation_step", 0.1)
    del (chosen := tiny | {"data.file": str(waves), **meshes})["trainer.epochs"]
    found = prepare(load_config(overrides=chosen | {"trainer.budget": seconds / 60}))
    data, used = found.data, list[float]()
    for epoch in range(found.config.trainer.epochs):
        began = clock[0]
        for part, cost in (("train", 0.5), ("valid", 0.1)):
            data.parts[part].epoch = epoch * (part == "train")
            items = [data.parts[part][i] for i in range(len(data.parts[part]))]
            for first in range(0, len(items), data.batch_size):
                data.collate[part](items[first : first + data.batch_size])
                clock[0] += cost
        used.append(clock[0] - began)
    assert abs(sum(used) - seconds) <= max(used[0], 0.1 * seconds)


@pytest.mark.slow
def test_a_trainer_of_ones_own(train, tiny):
    run = train("run", {"trainer.epochs": 2})
    shown = ("checkpointing", "progress_bar", "model_summary")
    options: dict[str, Any] = {f"enable_{each}": False for each in shown}
    options |= {"max_epochs": 2, "accelerator": "cpu", "logger": False}
    options |= {"inference_mode": False, "num_sanity_val_steps": 0}
    experiment = prepare(run.experiment.config)
    ours = {"reload_dataloaders_every_n_epochs": 1, "use_distributed_sampler": False}
    clipped = Trainer(**options, **ours, gradient_clip_val=5.0)
    clipped.fit(experiment.module, datamodule=experiment.data)
    trained = run.weights("last")
    for name, value in experiment.module.state_dict().items():
        assert torch.equal(value, trained[name]), name
    # With loaders of PyTorch Geometric, whose batches carry no graphs.
    experiment = prepare(run.experiment.config)
    parts = experiment.data.parts
    loaders = [DataLoader(parts[part], batch_size=4) for part in ("train", "valid")]
    trainer = Trainer(**options)
    trainer.fit(experiment.module, *loaders)
    found = float(trainer.callback_metrics["valid_rmse"])
    assert found == pytest.approx(run.rmse()[-1], rel=0.01)


@pytest.mark.slow
def test_lightnings_own_checkpoints_make_their_folder(waves, tiny):
    kept = ModelCheckpoint(dirpath=Path("kept"), monitor="valid_rmse")
    experiment = nfsgeo.prepare(nfsgeo.open(waves), tiny)
    nfsgeo.fit(experiment, Path("run"), callbacks=[kept])
    assert Path(kept.best_model_path).is_file()
