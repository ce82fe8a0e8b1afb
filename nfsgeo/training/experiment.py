"""The preparation of a run, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from nfsgeo.config import RunConfig
from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_kinds, boundary_names, with_boundary
from nfsgeo.data.copies import warn_of_copies, warn_of_shared_places
from nfsgeo.data.sample_order import warn_of_order
from nfsgeo.data.splits import SPLITS
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
from nfsgeo.models import MODELS, Task, num_parameters
from nfsgeo.progress import Progress, silent
from nfsgeo.training.checkpoints import start_from
from nfsgeo.training.cluster import check_started, on_first
from nfsgeo.training.complete_config import complete_config, for_base_forecast
from nfsgeo.training.covariance import fitted_covariance
from nfsgeo.training.lightning_setup import check_device
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import TrainingModule, WindowData
from nfsgeo.training.reading import moments_of_errors, read_as_trained, read_windows
from nfsgeo.training.run_data import RunData
from nfsgeo.training.source import files_as_they_are, in_file_order, open_source
from nfsgeo.training.trainer import (
    check_logger,
    find_learning_rate,
    with_epochs_in_budget,
)

__all__ = ["BASE_FORECASTS", "CHECKS", "Experiment", "prepare"]

# Each is called before training with the data, the task and the number of validation
# windows, and raises a UserError if they cannot be used.
CHECKS: list[Callable[[RunData, Task, int], None]] = []
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
        files: Sizes and times of the files of the data, before they were read.
    """

    used: RunData
    data: WindowData
    module: TrainingModule
    lines: tuple[str, ...] = ()
    files: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        windows, model = len(self.data.parts["train"]), self.config.model.name
        num = num_parameters(self.forecaster.model)
        return (
            f"{type(self).__name__}(model={model!r}, parameters={num}, "
            f"data={str(self.file.path)!r}, training_windows={windows}, "
            f"epochs={self.config.trainer.epochs})"
        )

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
        """The task of the model."""
        return self.forecaster.task


@on_first
def prepare(config: RunConfig, progress: Progress = silent) -> Experiment:
    """Open the data, read all training and validation samples, and build the model.

    Nothing is written, except for the cached data of the demonstration. The same
    configuration gives the same weights.

    Args:
        config: Configuration of the user, or the complete one of a run.
        progress: Called with the name of a stage, the number of steps done and in all.

    Raises:
        UserError: The device, the data or the settings cannot be used.
    """
    load_extensions()
    check_device(config.trainer)
    check_started(config.trainer.devices, config.trainer.num_nodes)
    check_logger(config.trainer.logger)
    files, asked = files_as_they_are(config.data), config
    file = open_source(config.data, progress)
    config = complete_config(config, file)
    used, boundary = _with_boundary(RunData(config, file))
    if in_file_order(config.data, file):
        warn_of_order(file, used.samples("train"))
    if config.data.split_by != "time":
        warn_of_copies(used.file, {part: used.samples(part) for part in SPLITS})
    warn_of_shared_places(used.file, int(used.samples("train")[0]))
    train, valid = used.training_windows(), used.windows("valid")
    statistics, gaps = read_windows(used, train, valid, progress)
    bases = (fit(used) for fit in BASE_FORECASTS)
    base = next((forecast for forecast in bases if forecast is not None), None)
    used = used.completed(for_base_forecast(asked, config, base))
    first = used.mesh(train.samples[0])
    edges, asks = "edge_index" in train[0], config.model.settings.get("graph")
    task = task_of(
        used.file,
        valid[0].times.tolist(),
        statistics,
        moments_of_errors(used, train, statistics),
        used.typical_size(train.samples),
        first.grid_shape,
        seasonal=base is not None and base.seasonal,
        boundary=boundary,
        cells=edges and MODELS[config.model.name].uses_cells,
        graph=edges and asks == "given",
    )
    for check in CHECKS:
        check(used, task, len(valid))
    forecaster = _forecaster(used, task, statistics, gaps, base, progress)
    model = used.config.model
    lines = start_from(forecaster, model.start_from, model.freeze)
    settings = forecaster.model.settings.model_dump(mode="json")
    config = used.config.changed(model=model.changed(settings=settings))
    if (beyond := forecaster.model.steps_beyond) and not task.any_time:
        train = used.training_windows(beyond)
    train.pairs = task.any_time
    for windows in (train, valid):
        read_as_trained(windows, forecaster, config.data.input_noise)
    data = WindowData({"train": train, "valid": valid}, forecaster.connect, config)
    loss, seed = LOSSES[config.loss.name], config.seed
    module = TrainingModule(forecaster, config.optimiser, loss=loss, seed=seed)
    if config.optimiser.find_lr:
        config = find_learning_rate(config, module, data)
    if config.trainer.budget is not None:
        config = with_epochs_in_budget(config, module, data)
    module.hparams.update(config.model_dump(mode="json"))  # in each checkpoint
    return Experiment(used.completed(config), data, module, lines, files)


def _with_boundary(used: RunData) -> tuple[RunData, tuple[int, ...] | None]:
    """Add boundary inputs of the meshes, if they are asked for.

    Returns:
        The data, and the node types that the inputs lead to. These are empty where the
        inputs lead to the boundary of the cells, and None where there are no such
        inputs: those to the walls of the domain are a transform.
    """
    file = used.file
    if not used.config.data.boundary_inputs or file.domain.walls is not None:
        return used, None
    samples = used.samples("train")
    kinds = boundary_kinds(file, samples)
    if kinds is None:
        lacking = [int(sample) for sample in samples if not file.cells(int(sample))]
        why = f"which has no cells in sample {lacking[0]} of training"
        if file.node_types is not None:
            why += f" and no {file.node_types} there but that of interior points"
        raise UserError(
            f"data.boundary_inputs=true with {file.path}, {why}",
            "a domain with obstacles, or meshes with node_type or cells",
            "leave it out, or in a flat domain give them: nfsgeo convert FILE --out "
            "NEW.nc --obstacles walls.geojson",
        )
    return replace(used, file=with_boundary(file, kinds)), kinds


def _forecaster(
    used: RunData,
    task: Task,
    statistics: Statistics,
    gaps: bool,
    base: BaseForecast | None,
    progress: Progress,
) -> Forecaster:
    """Build the forecaster, whose initial weights depend on the seed of the run."""
    data, model, covariance = used.config.data, used.config.model, None
    form = model.prediction or "residual"
    if task.has_time and form != "direct" and base is None:
        mean = statistics.inputs.mean[: len(task.components)]
        covariance = fitted_covariance(used, mean, statistics.changes.scale, progress)
    made = [] if task.boundary is None else boundary_names(task.domain, task.boundary)
    options = TransformOptions(
        prediction=form,
        gaps=gaps,
        boundary=data.boundary_inputs and task.boundary is None,
        node_type=used.file.node_types if task.boundary else None,
        ranked={
            number: name.startswith("distance")
            for number, name in enumerate(task.static)
            if name in made
        },
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
