"""Everything a run needs, built and checked before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress

import numpy as np
import torch

from nfsgeo.config import RunConfig
from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_kinds, types_of, with_boundary
from nfsgeo.data.domains import check_within
from nfsgeo.data.times import clock, same_steps, span_text, step_text, time_text
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast import Forecaster, Statistics
from nfsgeo.forecast.matching import task_of
from nfsgeo.forecast.transforms import (
    BaseForecast,
    TransformOptions,
    fitted,
    imposed_values,
)
from nfsgeo.models import Task
from nfsgeo.progress import Progress, silent
from nfsgeo.training.checkpoints import start_from
from nfsgeo.training.covariance import fitted_covariance
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import TrainingModule, WindowData
from nfsgeo.training.processes import check_device
from nfsgeo.training.resolution import for_base_forecast, resolved
from nfsgeo.training.run_data import RunData, open_source, samples_of
from nfsgeo.training.trainer import check_logger, find_learning_rate

__all__ = ["BASE_FORECASTS", "CHECKS", "Experiment", "check_observed", "prepare"]

logger = logging.getLogger(__name__)

# Each is called before training with the resolved configuration, the task and the
# number of validation windows, and raises a UserError where these do not serve.
CHECKS: list[Callable[[RunConfig, Task, int], None]] = []
# Each fits a forecast for the network to correct, or returns None for other data.
BASE_FORECASTS: list[Callable[[RunData], BaseForecast | None]] = []


@dataclass(frozen=True)
class Experiment:
    """A run before its first step.

    Attributes:
        used: The data, with the complete configuration.
        data: Training and validation windows.
        module: The module that Lightning trains.
        lines: Lines for the user that say what was taken from another run.
    """

    used: RunData
    data: WindowData
    module: TrainingModule
    lines: tuple[str, ...] = ()

    @property
    def config(self) -> RunConfig:
        """The configuration with nothing left open."""
        return self.used.config

    @property
    def file(self) -> Fields:
        """The fields, with boundary inputs where the run has them."""
        return self.used.file

    @property
    def forecaster(self) -> Forecaster:
        """The model between its transforms, fresh weights and fitted scales."""
        return self.module.forecaster

    @property
    def task(self) -> Task:
        """What the model maps."""
        return self.forecaster.task


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
    load_extensions()
    check_device(config.trainer)
    check_logger(config.trainer.logger)
    asked, file = config, open_source(config.data, progress)
    config = resolved(config, file)
    boundary = None
    if config.data.boundary_inputs and file.domain.walls is None:
        boundary = boundary_kinds(file, samples_of(config.data, file, "train"))
        file = with_boundary(file, boundary or ())
    used = RunData(config, file)
    train, valid = used.training_windows(), used.windows("valid")
    statistics, gaps = _read(used, train, valid, progress)
    _check_categories(used, statistics)
    bases = (fit(used) for fit in BASE_FORECASTS)
    base = next((forecast for forecast in bases if forecast is not None), None)
    used = used.completed(for_base_forecast(asked, config, base))
    first = used.mesh(train.samples[0])
    task = task_of(
        file,
        valid[0].times.tolist(),
        statistics,
        len(first),
        first.grid_shape,
        seasonal=base is not None and base.seasonal,
        boundary=boundary,
        cells="edge_index" in train[0],
    )
    for check in CHECKS:
        check(used.config, task, len(valid))
    forecaster = _forecaster(used, task, statistics, gaps, base)
    model = used.config.model
    lines = start_from(forecaster, model.start_from, model.freeze)
    settings = forecaster.model.settings.model_dump(mode="json")
    config = used.config.changed(model=model.changed(settings=settings))
    if (beyond := forecaster.model.steps_beyond) and not task.any_time:
        train = used.training_windows(beyond)
    train.pairs = task.any_time
    for windows in (train, valid):
        forecaster.read_as_trained(windows, config.data.input_noise)
    data = WindowData({"train": train, "valid": valid}, forecaster.connect, config)
    loss, seed = LOSSES[config.loss.name], config.seed
    module = TrainingModule(forecaster, config.optimiser, loss=loss, seed=seed)
    if config.optimiser.find_lr:
        config = find_learning_rate(config, module, data)
    module.hparams.update(config.model_dump(mode="json"))  # in each checkpoint
    return Experiment(used.completed(config), data, module, lines)


def _forecaster(
    used: RunData,
    task: Task,
    statistics: Statistics,
    gaps: bool,
    base: BaseForecast | None,
) -> Forecaster:
    """With the initial weights of the configuration's seed."""
    data, model, covariance = used.config.data, used.config.model, None
    form = model.prediction or "residual"
    if task.has_time and form != "direct" and base is None:
        mean = statistics.inputs.mean[: len(task.components)]
        covariance = fitted_covariance(used, mean, statistics.changes.scale)
    options = TransformOptions(
        prediction=form,
        gaps=gaps,
        boundary=data.boundary_inputs and task.boundary is None,
        training_noise=data.training_noise,
        covariance=covariance,
        base_forecast=base,
        imposed=imposed_values(used.file, data.impose, task.n_in),
    )
    transforms = fitted(statistics, options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(used.config.seed)
        try:
            return Forecaster.build(model.name, model.settings, task, transforms)
        except UserError:  # says it itself, or that memory is too small
            raise
        except ValueError as error:
            raise UserError(
                f"model {model.name} ({error})",
                "settings that fit together and to the data",
                "change model.settings",
            ) from error


def _read(
    used: RunData, train: WindowDataset, valid: WindowDataset, progress: Progress
) -> tuple[Statistics, bool]:
    """Statistics of the training windows, and whether the fields have gaps.

    One pass over all windows, which finds out what would stop training later.
    """
    file, data = used.file, used.config.data
    parts = {"train": train, "valid": valid}
    if len(used.samples("test")):
        parts["test"] = used.windows("test")
    one_each = np.unique(file.sample_mesh, return_index=True)[1]
    places = map(file.coordinates, one_each)
    check_within(file.domain, places, file.path, axes=file.axes)
    n_in, first = data.n_in or 0, file.components if data.n_in else 0
    inputs = enumerate(file.input_names, first)
    known = {column: name for column, name in inputs if name in file.categories}
    statistics = Statistics(n_in, data.n_out or 1, data.lead_times, known)
    gaps, total = torch.zeros(file.components, dtype=torch.long), 0
    for part in ("train", "valid"):
        windows = parts[part]
        if not data.lead_times:
            _check_time_steps(windows)
        for item in range(len(windows)):
            window = windows[item]
            if part == "train":
                statistics.add(window)
            fields = window.y
            if data.n_in:
                fields = torch.cat([window.x[..., : file.components], fields], dim=1)
            gaps += fields.isnan().sum((0, 1))
            total += fields[..., 0].numel()
            progress("reading samples", item + 1, len(windows))
    names = {"train": "training", "valid": "validation"}
    for part, windows in parts.items():
        check_observed(names.get(part, part), windows)
    share, most = gaps.max() / total, int(gaps.argmax())
    if share > data.max_missing:
        raise UserError(
            f"{file.path} with {100 * share:.3g} % of the values of "
            f"{file.component_names[most]} missing in training and validation samples",
            f"at most {100 * data.max_missing:g} %",
            "use data with fewer gaps, or allow more by --set data.max_missing",
        )
    return statistics, bool(gaps.any())


def _check_categories(used: RunData, statistics: Statistics) -> None:
    """Makes sure that training has seen all categories of the other parts."""
    file = used.file
    for column, name in statistics.categories.items():
        known = statistics.values[column]
        for part in ("valid", "test"):
            for sample in map(int, used.samples(part)):
                there = {*np.unique(types_of(file, sample, name)).tolist()}
                if odd := sorted(there - known):
                    raise UserError(
                        f"{name} of {', '.join(map(str, odd))} in sample {sample} of "
                        f"{file.path}, in the {part} part",
                        f"one of {', '.join(map(str, sorted(known)))}, which training "
                        "samples have",
                        "correct the values, or choose other parts by data.split",
                    )


def check_observed(part: str, windows: WindowDataset) -> None:
    """Makes sure that a part has values to compare predictions with.

    Warns of each component that has none there.
    """
    file, names = windows.file, windows.file.component_names
    observed = torch.zeros(file.components, dtype=torch.bool)
    for item in range(len(windows)):
        observed |= (~windows[item].y.isnan()).flatten(0, 1).any(0)
        if observed.all():
            return
    if not observed.any():
        raise UserError(
            f"{file.path} without any value of {' and '.join(names)} to predict in "
            f"the {part} part",
            "observed values in every part",
            "use data that are observed there, or other parts by data.split_by",
        )
    logger.warning(
        "%s has no value of %s to predict in the %s part, whose errors are those "
        "of the other components",
        *(file.path, " and ".join(compress(names, ~observed)), part),
    )


def _check_time_steps(windows: WindowDataset) -> None:
    """Makes sure that the snapshots of a window are equally far apart in time."""
    file = windows.file
    times, unit = clock(windows.times, file.time_unit)
    steps = np.diff(times)
    unequal = np.flatnonzero(~same_steps(steps, steps[:1]))
    if unequal.size:
        at = unequal[0]
        before, here, after = windows.times[at - 1 : at + 2].tolist()
        one, other = (step_text(steps[k], unit) for k in (at - 1, at))
        raise UserError(
            f"{file.path} with unequal time steps, {one} from "
            f"{time_text(before, file.time_unit)} and {other} from "
            f"{span_text(here, after, file.time_unit)}",
            f"equal steps among the {len(times)} snapshots of a window",
            "choose others by data.first_step and data.time_stride, or train on "
            "steps of any length: --set data.lead_times=true",
        )
