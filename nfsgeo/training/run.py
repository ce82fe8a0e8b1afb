"""Training a run, from its first epoch or from where it stopped."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import Logger
from pandas import json_normalize
from torch.multiprocessing.spawn import ProcessException

from nfsgeo.config import RunConfig
from nfsgeo.data.io.from_memory import name_in_memory
from nfsgeo.data.io.opening import matches
from nfsgeo.errors import UserError
from nfsgeo.files import growing, only_here
from nfsgeo.progress import Progress, silent
from nfsgeo.training.artifacts import read_json, write_json, write_yaml
from nfsgeo.training.checkpoints import BestAndLast, own_checkpoint, restore
from nfsgeo.training.cluster import cluster, is_first, joined, on_first
from nfsgeo.training.experiment import Experiment, prepare
from nfsgeo.training.lightning_setup import (
    SpawnedDDP,
    describe_environment,
    lost_process,
    quiet_lightning,
)
from nfsgeo.training.loading import read_config
from nfsgeo.training.run_paths import RunPaths
from nfsgeo.training.source import check_in_place, relocated
from nfsgeo.training.trainer import LOGGERS, History, make_trainer

__all__ = ["begin_run", "fit", "is_finished", "resume_run"]

# Settings that may change while a run is stopped.
FREE = {"file", "test_file", "columns", "workers", "start_from", "device", "devices"}
FREE |= {"num_nodes", "graph", "logger", "log_every", "patience"}


@on_first
def begin_run(experiment: Experiment, out: Path | None = None) -> RunPaths:
    """Make the folder of a run, with its configuration.

    Args:
        experiment: The prepared run.
        out: A new or empty folder; ``None`` for the next free one in ``runs``.

    Raises:
        UserError: The folder holds something.
    """
    config, source = experiment.config, experiment.file.path
    memory = name_in_memory(source)
    data = experiment.file.equation or memory or (matches(source) or [source])[0].stem
    paths = RunPaths.new(out, f"{config.model.name}-{data}")
    if memory:  # The user may empty the cache, and has no other file.
        saved_path = paths.root.resolve() / source.name
        try:
            os.link(source, saved_path)
        except OSError:  # on another file system, or one without links
            with growing(saved_path) as part:
                shutil.copyfile(source, part)
        config = config.changed(data=config.data.changed(file=saved_path))
    write_yaml(paths.config, config.model_dump(mode="json"))
    return paths


def resume_run(
    folder: Path,
    progress: Progress = silent,
    *,
    data: Path | None = None,
    test_file: Path | None = None,
    epochs: int | None = None,
) -> tuple[Experiment, RunPaths]:
    """Prepare the experiment of a run folder again.

    Args:
        folder: The folder.
        progress: Called as in :func:`nfsgeo.training.prepare`.
        data: Where the data of the run are now, if they have moved; kept in the run.
        test_file: Where ``data.test_file`` is now; None for beside ``data``.
        epochs: Another number of epochs, kept in the run, unless the schedule of the
            learning rate ends with the last epoch.

    Raises:
        UserError: The folder holds no run, its data are gone, or its checkpoint is
            damaged or of another model or other data.
    """
    paths = RunPaths.existing(folder)
    before = config = read_config(paths.config)
    if data is not None or test_file is not None:
        for path in (path for path in (data, test_file) if path and not matches(path)):
            raise UserError(f"{path}", "an existing file", "check the name")
        file = data or config.data.file or Path()
        config = config.changed(data=relocated(config.data, file, test_file))
    check_in_place(config.data, folder)
    if epochs not in (None, config.trainer.epochs):
        if config.optimiser.schedule == "one-cycle":
            run = shlex.quote(str(folder))
            raise UserError(
                f"--resume {folder} with --epochs {epochs}",
                f"the {config.trainer.epochs} epochs with which its schedule ends",
                f"train on in a new run: nfsgeo train --config {run}/config.yaml "
                f"--start-from {run} --epochs {epochs} --out {run}-longer",
            )
        config = config.changed(trainer=config.trainer.changed(epochs=epochs))
    saved_config = config
    if paths.last.exists():  # whose weights are later than those of start_from
        config = config.changed(model=config.model.changed(start_from=None))
    experiment = prepare(config, progress)
    # A damaged checkpoint is refused before anything is announced.
    _last_checkpoint(experiment, paths)
    if saved_config != before and is_first():
        write_yaml(paths.config, saved_config.model_dump(mode="json"))
    return experiment, paths


@joined()
def fit(
    experiment: Experiment, paths: RunPaths, callbacks: Sequence[Callback] = ()
) -> None:
    """Train to the last epoch, starting from the last checkpoint if there is one.

    The forecaster of the experiment ends with the last weights. On the CPU a run that
    was killed and resumed ends with the same numbers as an undisturbed one.

    Args:
        experiment: The prepared run.
        paths: Its folder.
        callbacks: Further callbacks of Lightning, such as a progress bar.

    Raises:
        UserError: The loss is not finite, the checkpoint is damaged or of another model
            or other data, or another process trains the run.
        KeyboardInterrupt: Interrupted; the run can go on from its last whole epoch.
    """
    config, section = experiment.config, experiment.config.trainer
    checkpoint = _last_checkpoint(experiment, paths)
    if checkpoint is not None and is_finished(checkpoint, config):
        return
    patience = section.patience
    stopping = [EarlyStopping("valid_rmse", patience=patience)] if patience else []
    callbacks = [History(paths.metrics), *stopping, *callbacks]
    lock = only_here(paths.root, "a run") if is_first() else nullcontext()
    with lock, quiet_lightning():
        for stale in (paths.bands, paths.inputs, paths.unseen, paths.meshes):
            stale.unlink(missing_ok=True)
        for partial in paths.root.rglob("*.partial") if is_first() else ():  # of a kill
            partial.unlink(missing_ok=True)
        if is_first() and not paths.environment.exists():
            write_json(paths.environment, describe_environment(config))
        name = read_json(paths.belongings).get("run") or (checkpoint or {}).get("run")
        experiment.module.run = name = name or secrets.token_hex(8)
        belongings = {
            "run": name,
            "config": paths.config_digest(),
            "files": experiment.files,
        }
        if is_first():
            write_json(paths.belongings, belongings)
        logger = _logger(config, paths)
        trainer = make_trainer(
            config,
            [*callbacks, BestAndLast(paths.best.parent)],
            devices=section.devices,
            num_nodes=section.num_nodes,
            strategy=SpawnedDDP() if cluster() or section.devices > 1 else "auto",
            max_epochs=section.epochs,
            # The fitted forecast alone may be the best epoch.
            num_sanity_val_steps=-1 if config.model.prediction == "linear" else 0,
            accumulate_grad_batches=section.accumulate,
            log_every_n_steps=section.log_every,
            logger=logger,
            default_root_dir=paths.root,  # where Lightning looks for checkpoints
            # Graphs cached during validation serve the next training step.
            inference_mode=False,
        )
        if section.precision == "64":  # Lightning reads a checkpoint before that
            experiment.module.double()
        interrupt = signal.getsignal(signal.SIGINT)
        try:
            trainer.fit(
                experiment.module,
                datamodule=experiment.data,
                ckpt_path=None if checkpoint is None else str(paths.last),
            )
        except (RuntimeError, ProcessException) as error:
            if not (how := lost_process(error, trainer)):
                raise
            raise UserError(
                f"a process of the run that ended before it ({how})",
                "all of them until the last epoch, and memory for them",
                f"To continue: nfsgeo train --resume {shlex.quote(str(paths.root))}",
            ) from None
        except SystemExit:
            # How Lightning ends on SIGINT and SIGTERM; it disables SIGINT as well.
            signal.signal(signal.SIGINT, interrupt)
            raise KeyboardInterrupt from None
        finally:
            for process in getattr(trainer.strategy.launcher, "procs", ()):
                process.terminate()


def _logger(config: RunConfig, paths: RunPaths) -> Logger | bool:
    name = config.trainer.logger
    try:
        logger = LOGGERS[name](paths.root)
        if isinstance(logger, Logger):
            logger.log_hyperparams(config.model_dump(mode="json"))
        return logger
    except OSError:
        raise
    except Exception as error:  # any refusal of a service
        raise UserError(
            f"trainer.logger={name} ({error})",
            "a service that takes entries",
            f"set up {name} and resume {paths.root}, or begin with trainer.logger=csv",
        ) from error


def is_finished(checkpoint: dict[str, Any], config: RunConfig) -> bool:
    """Return whether a checkpoint is that of the last epoch of its run.

    Args:
        checkpoint: Content of ``last.ckpt``.
        config: Configuration of the run.
    """
    states = checkpoint["callbacks"].values()
    waited = max((state.get("wait_count", 0) for state in states), default=0)
    patience = config.trainer.patience
    out_of_patience = patience is not None and waited >= patience
    return out_of_patience or checkpoint["epoch"] + 1 >= config.trainer.epochs


def _last_checkpoint(experiment: Experiment, paths: RunPaths) -> dict[str, Any] | None:
    """Return the checkpoint to continue from, or ``None`` before the first epoch.

    The experiment then has the transforms of the checkpoint, since the last digits of
    sums over the data may differ between machines.
    """
    if not paths.trained():
        return None
    checkpoint = own_checkpoint(paths, paths.last)
    saved, file = restore(paths.last, experiment.config, checkpoint), experiment.file
    before = saved.task.fingerprint
    if before != experiment.task.fingerprint and not file.holds(before):
        raise UserError(
            f"{paths.last} of other data than {file.path}",
            "the data that the run began with",
            "put back the data, say where they are (--data FILE), or train a new run",
        )
    own_checkpoint(paths, paths.best)  # later epochs may be no better
    experiment.forecaster.transforms = saved.transforms
    if not is_finished(checkpoint, experiment.config):
        _check_settings(checkpoint, experiment.config, paths)
    return checkpoint


def _check_settings(
    checkpoint: dict[str, Any], config: RunConfig, paths: RunPaths
) -> None:
    """Refuse settings that differ from those of a checkpoint, except for :data:`FREE`.

    The number of epochs may change, too, unless the schedule is one-cycle, which ends
    with the last epoch.
    """
    free = FREE | {"epochs"} if config.optimiser.schedule != "one-cycle" else FREE
    stored = checkpoint.get("hyper_parameters", {})
    now, before = (
        json_normalize(settings, max_level=1).to_dict("records")[0]
        for settings in (config.model_dump(mode="json"), stored)
    )
    for name in before.keys() & now.keys():
        if now[name] != before[name] and name.split(".")[-1] not in free:
            raise UserError(
                f"{paths.config} with {name} {now[name]}",
                f"{before[name]}, with which the run began",
                "put it back, or go on in a new run with --start-from",
            )
