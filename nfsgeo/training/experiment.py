"""Everything a run needs, built and checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster, Statistics, task_of
from nfsgeo.forecast.bands import needed
from nfsgeo.forecast.transforms import SeriesFit, Wanted, fitted
from nfsgeo.models import MODELS, Problem, Task
from nfsgeo.progress import Progress, silent
from nfsgeo.training.config import RunConfig
from nfsgeo.training.covariance import fitted_covariance
from nfsgeo.training.datamodule import WindowData
from nfsgeo.training.environment import check_device
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import TrainingModule
from nfsgeo.training.reading import read_windows
from nfsgeo.training.resolution import for_noise, resolved
from nfsgeo.training.run_data import Observation, RunData, open_source
from nfsgeo.training.series import fitted_series
from nfsgeo.training.start import start_from
from nfsgeo.training.trainer import check_logger, find_learning_rate

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
    check_logger(config.trainer.logger)
    file, asked = open_source(config.data, progress), config
    config = resolved(config, file)
    used, weighted = RunData(config, file), config.loss.weighting == "quadrature"
    training = partial(used.windows, "train", used.training_mesh, volumes=weighted)
    parts = {"train": training(), "valid": used.windows("valid")}
    if len(used.samples("test")):
        parts["test"] = used.windows("test")
    statistics, gaps = read_windows(parts, config, progress)
    train, valid = parts["train"], parts["valid"]
    observed, times = used.mesh(train.samples[0]), valid[0].times.tolist()
    series = fitted_series(used)
    if series is not None and series.noisy:
        config = for_noise(asked, config)
    if series is None and config.model.prediction == "linear":  # too short a series
        config = config.changed(model=config.model.changed(prediction="residual"))
    seasonal = series is not None and bool(series.periods)
    shape = observed.grid_shape
    task = task_of(file, times, statistics, len(observed), shape, seasonal=seasonal)
    forecaster = _forecaster(used, task, statistics, gaps, series)
    settings = forecaster.model.settings.model_dump(mode="json")
    config = config.changed(model=config.model.changed(settings=settings))
    if config.model.bands and (task.any_time or len(valid) < needed(0.9)):
        given = f"--bands with {len(valid)} validation windows"
        given += ", of lead times" * task.any_time
        wanted = f"at least {needed(0.9)}, with the same times ahead"
        raise UserError(given, wanted, "use more samples, or leave it out")
    lines = start_from(forecaster, config.model.start_from, config.model.freeze)
    loss = LOSSES[config.loss.name]
    module = TrainingModule(forecaster, config.optimiser, loss=loss)
    if module.own_loss and (beyond := module.own_loss.steps_beyond):
        train = training(beyond=beyond)
    train.drop_absent = valid.drop_absent = gaps and MODELS[config.model.name].any_mesh
    train.pairs = task.any_time
    if config.data.input_noise:
        train.noise = valid.noise = config.data.input_noise * statistics.inputs.scale
    data = WindowData(
        {"train": train, "valid": valid},
        forecaster.connect,
        batch_size=config.data.batch_size,
        workers=config.data.workers,
        seed=config.seed,
    )
    if config.optimiser.find_lr:
        config = find_learning_rate(config, module, data)
    return Experiment(config, file, used.mesh, data, module, lines)


def _forecaster(
    used: RunData,
    task: Task,
    statistics: Statistics,
    gaps: bool,
    series: SeriesFit | None,
) -> Forecaster:
    """With the initial weights of the configuration's seed."""
    config, covariance = used.config, None
    form = config.model.prediction or "residual"
    if task.has_time and form != "direct" and series is None:
        mean = statistics.inputs.mean[: len(task.components)]
        covariance = fitted_covariance(used, mean, statistics.changes.scale)
    wanted = Wanted(
        prediction=form,
        gaps=gaps,
        boundary=config.data.boundary_inputs,
        training_noise=config.data.training_noise,
        covariance=covariance,
        series=series,
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
