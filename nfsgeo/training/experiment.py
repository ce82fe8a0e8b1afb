"""Everything a run needs, built and checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from nfsgeo.data import Fields
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster, Statistics, task_of
from nfsgeo.forecast.transforms import Wanted, fitted
from nfsgeo.models import MODELS, OwnLoss, Problem, Task
from nfsgeo.progress import Progress, silent
from nfsgeo.training.config import RunConfig
from nfsgeo.training.covariance import fitted_covariance
from nfsgeo.training.datamodule import WindowData, windows
from nfsgeo.training.environment import check_device
from nfsgeo.training.loggers import check_logger
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import TrainingModule
from nfsgeo.training.observation import (
    Observation,
    mesh_of,
    observe,
    observe_in_turn,
)
from nfsgeo.training.reading import read_windows
from nfsgeo.training.resolution import resolved
from nfsgeo.training.source import open_source
from nfsgeo.training.start import start_from
from nfsgeo.training.trainer import find_learning_rate
from nfsgeo.training.window_starts import part_samples

__all__ = ["Experiment", "prepare"]


@dataclass(frozen=True)
class Experiment:
    """A run before its first step.

    Attributes:
        config: Resolved.
        file: The data.
        mesh: Where validation and test samples are observed.
        data: Training and validation windows.
        module: What Lightning trains.
        lines: What was taken from another run, in lines for the user.
    """

    config: RunConfig
    file: Fields
    mesh: Observation
    data: WindowData
    module: TrainingModule
    lines: tuple[str, ...] = ()

    @property
    def forecaster(self) -> Forecaster:
        """The model between its transforms, fresh weights and fitted scales."""
        return self.module.forecaster

    @property
    def problem(self) -> Problem:
        """Sizes and domain of what the network maps."""
        return self.module.forecaster.model.problem

    @property
    def task(self) -> Task:
        """What the model maps."""
        return self.module.forecaster.task


def prepare(config: RunConfig, progress: Progress = silent) -> Experiment:
    """Opens the data, reads every training and validation sample, builds the model.

    Writes nothing, but for the cached data of the demonstration. The same
    configuration gives the same weights.

    Args:
        config: What was asked for, or the resolved configuration of a run.
        progress: Called with what is being done, how much is done and in all.

    Raises:
        UserError: The device, the data or the settings cannot be used.
    """
    check_device(config.trainer)
    check_logger(config.trainer)
    file = open_source(config.data, progress)
    config = resolved(config, file)
    mesh = observe(config.data, file, config.seed)
    make_train = _training_windows(config, file)
    parts = {"train": make_train(), "valid": windows(config.data, file, mesh, "valid")}
    if len(part_samples(config.data, file, "test")):
        parts["test"] = windows(config.data, file, mesh, "test")
    statistics, gaps = read_windows(parts, config, progress)
    train, valid = parts["train"], parts["valid"]
    observed, times = mesh_of(mesh, train.samples[0]), valid[0].times.tolist()
    task = task_of(file, times, statistics, len(observed), observed.grid_shape)
    forecaster = _forecaster(config, file, task, statistics, gaps)
    config = config.with_model_settings(forecaster.model.settings)
    lines = start_from(forecaster, config.model.start_from, config.model.freeze)
    if beyond := _steps_beyond(forecaster):
        train = make_train(beyond=beyond)
    train.drop_absent = valid.drop_absent = gaps and MODELS[config.model.name].any_mesh
    train.pairs = task.any_time
    if config.data.input_noise:
        train.noise = config.data.input_noise * statistics.inputs.scale
        valid.noise = train.noise
    loss = LOSSES[config.loss.name]
    module = TrainingModule(forecaster, config.optimiser, loss=loss)
    data = WindowData(
        {"train": train, "valid": valid},
        forecaster.connect,
        batch_size=config.data.batch_size,
        workers=config.data.workers,
        seed=config.seed,
    )
    config = find_learning_rate(config, module, data)
    return Experiment(config, file, mesh, data, module, lines)


def _training_windows(config: RunConfig, file: Fields) -> Callable[..., WindowDataset]:
    """Makes the training windows, with time steps ``beyond=`` their targets."""
    in_turn = observe_in_turn(config.data, file, config.seed)
    weighted = config.loss.weighting == "quadrature"
    return partial(windows, config.data, file, in_turn, "train", volumes=weighted)


def _forecaster(
    config: RunConfig, file: Fields, task: Task, statistics: Statistics, gaps: bool
) -> Forecaster:
    """With the initial weights of the configuration's seed."""
    covariance, residual = None, task.has_time and config.model.prediction != "direct"
    if residual:
        mean = statistics.inputs.mean[: len(task.components)]
        scale = statistics.changes.scale
        covariance = fitted_covariance(config.data, file, config.seed, mean, scale)
    wanted = Wanted(
        prediction=config.model.prediction or "residual",
        gaps=gaps,
        boundary=config.data.boundary_inputs,
        training_noise=config.data.training_noise,
        covariance=covariance,
    )
    transforms = fitted(statistics, wanted)
    name, settings = config.model.name, config.model.settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            return Forecaster.build(name, settings, task, transforms)
        except UserError:  # says it itself, or that memory is too small
            raise
        except ValueError as error:
            raise UserError(
                f"model {name} ({error})",
                "settings that fit together and to the data",
                "change model.settings",
            ) from error


def _steps_beyond(forecaster: Forecaster) -> int:
    """Time steps after the predicted ones that training can use."""
    model = forecaster.model
    own = isinstance(model, OwnLoss) and not forecaster.task.any_time
    return model.steps_beyond if own else 0  # type: ignore[return-value]
