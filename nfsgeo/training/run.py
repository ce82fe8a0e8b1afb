"""Training a run, from its first epoch or from where it stopped."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping

from nfsgeo.progress import Progress, silent
from nfsgeo.training.artifacts import write_json, write_yaml
from nfsgeo.training.callbacks import ReleaseMemory, SeedEpochs
from nfsgeo.training.checkpoints import (
    KeepBestAndLast,
    PlainCheckpoints,
    read_checkpoint,
)
from nfsgeo.training.config import RunConfig
from nfsgeo.training.environment import describe_environment, device_of
from nfsgeo.training.experiment import Experiment, prepare
from nfsgeo.training.history import History
from nfsgeo.training.loading import read_config
from nfsgeo.training.loggers import make_logger
from nfsgeo.training.processes import (
    SpawnedDDP,
    errors_of_workers,
    only_here,
    quiet_lightning,
)
from nfsgeo.training.restore import check_model, check_weights
from nfsgeo.training.run_paths import RunPaths

__all__ = ["begin_run", "fit", "is_finished", "resume_run"]


def begin_run(experiment: Experiment, out: Path | None = None) -> RunPaths:
    """Makes the run's folder, with its configuration and environment.

    Args:
        experiment: What will be trained.
        out: A new or empty folder; None for the next free one in ``runs``.

    Raises:
        UserError: The folder holds something.
    """
    config = experiment.config
    data = experiment.file.equation or experiment.file.path.stem
    paths = RunPaths.new(out, f"{config.model.name}-{data}")
    paths.last.parent.mkdir()
    write_json(paths.environment, describe_environment(config))
    write_yaml(paths.config, config.model_dump(mode="json"))
    return paths


def resume_run(
    folder: Path, progress: Progress = silent
) -> tuple[Experiment, RunPaths]:
    """Prepares the experiment of an existing run again.

    Args:
        folder: Of the run.
        progress: As for :func:`prepare`.

    Raises:
        UserError: The folder holds no run, its data are gone, or its checkpoint is
            damaged or of another model.
    """
    paths = RunPaths.existing(folder)
    experiment = prepare(read_config(paths.config), progress)
    _last_checkpoint(experiment, paths)
    return experiment, paths


def fit(
    experiment: Experiment, paths: RunPaths, callbacks: Sequence[Callback] = ()
) -> None:
    """Trains until the last epoch, from the last checkpoint where there is one.

    On the CPU a run that was killed gives the very numbers of an undisturbed one.

    Args:
        experiment: From :func:`prepare`; its forecaster ends with the last weights.
        paths: The run's folder.
        callbacks: Further callbacks, such as a progress bar.

    Raises:
        UserError: The loss is not finite, the checkpoint is of another model, or
            another process trains the run.
        KeyboardInterrupt: Interrupted; the run can go on from its last whole epoch.
    """
    config = experiment.config
    checkpoint = _last_checkpoint(experiment, paths)
    if checkpoint is not None and is_finished(checkpoint, config):
        return
    with only_here(paths.root, "a run"), quiet_lightning(), errors_of_workers():
        trainer = _trainer(config, paths, callbacks)
        interrupt = signal.getsignal(signal.SIGINT)
        try:
            trainer.fit(
                experiment.forecaster,
                datamodule=experiment.data,
                ckpt_path=None if checkpoint is None else str(paths.last),
            )
        except SystemExit:
            # How Lightning ends on SIGINT and SIGTERM; it disables SIGINT as well.
            signal.signal(signal.SIGINT, interrupt)
            raise KeyboardInterrupt from None


def _last_checkpoint(experiment: Experiment, paths: RunPaths) -> dict[str, Any] | None:
    """The checkpoint to go on from, None before the first epoch has ended."""
    if not paths.last.exists():
        return None
    checkpoint = read_checkpoint(paths.last)
    asked = dict(experiment.forecaster.description)
    # The last digits of sums over the data may differ from machine to machine.
    for name in ("statistics", "trend"):
        asked.pop(name, None)
    for name in ("inputs", "units", "data"):  # which older checkpoints do not tell
        if name not in checkpoint["nfsgeo"]:
            asked.pop(name, None)
    check_model(checkpoint, asked, paths.last)
    check_weights(checkpoint, experiment.forecaster, paths.last)
    return checkpoint


def is_finished(checkpoint: dict[str, Any], config: RunConfig) -> bool:
    """Whether a checkpoint is of the last epoch that its run will have."""
    waited = max(
        (
            state["wait_count"]
            for state in checkpoint["callbacks"].values()
            if "wait_count" in state
        ),
        default=0,
    )
    patience = config.trainer.patience
    out_of_patience = patience is not None and waited >= patience
    return out_of_patience or checkpoint["epoch"] + 1 >= config.trainer.epochs


def _trainer(
    config: RunConfig, paths: RunPaths, callbacks: Sequence[Callback]
) -> Trainer:
    section, patience = config.trainer, config.trainer.patience
    stopping = [EarlyStopping("valid_rmse", patience=patience)] if patience else []
    logger = make_logger(section, paths.root)
    if logger is not None:
        logger.log_hyperparams(config.model_dump(mode="json"))
    return Trainer(
        accelerator=device_of(section).type,
        devices=section.devices,
        strategy=SpawnedDDP() if section.devices > 1 else "auto",
        precision=section.precision,
        max_epochs=section.epochs,
        gradient_clip_val=config.optimiser.gradient_clip,
        accumulate_grad_batches=section.accumulate,
        log_every_n_steps=section.log_every,
        logger=False if logger is None else logger,
        callbacks=[
            SeedEpochs(config.seed),
            ReleaseMemory(),
            History(paths.metrics),
            *stopping,
            *callbacks,
            KeepBestAndLast(paths.best, paths.last),
        ],
        plugins=[PlainCheckpoints()],
        num_sanity_val_steps=0,
        # The order of the training samples belongs to the epoch.
        reload_dataloaders_every_n_epochs=1,
        use_distributed_sampler=False,
        # Graphs cached during validation serve the next training step.
        inference_mode=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
