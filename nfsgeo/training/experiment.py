"""Everything a run needs, built and checked before anything is written."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data import Fields
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS, Model, OwnLoss, Problem, build_model
from nfsgeo.progress import Progress, silent
from nfsgeo.training.config import DataSection, RunConfig
from nfsgeo.training.covariance import fitted_covariance
from nfsgeo.training.datamodule import WindowData, windows
from nfsgeo.training.environment import check_device
from nfsgeo.training.learning_rate import find_learning_rate
from nfsgeo.training.loggers import check_logger
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import Forecaster
from nfsgeo.training.observation import (
    Observation,
    mesh_of,
    observe,
    observe_in_turn,
)
from nfsgeo.training.resolution import resolved
from nfsgeo.training.scales import fitted_scales, fitted_statistics, fitted_trends
from nfsgeo.training.source import open_source
from nfsgeo.training.window_starts import part_samples

__all__ = ["Experiment", "check_observed", "prepare"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """A run before its first step.

    Attributes:
        config: Resolved.
        file: The data.
        mesh: Where validation and test samples are observed.
        problem: What the model was built for.
        data: Training and validation windows.
        forecaster: Fresh weights, fitted normalisers.
    """

    config: RunConfig
    file: Fields
    mesh: Observation
    problem: Problem
    data: WindowData
    forecaster: Forecaster


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
    in_turn = observe_in_turn(config.data, file, config.seed)
    problem = _problem_of(config.data, file, mesh)
    model = _fresh(config, problem)
    config = _completed(config, model)
    n_out = config.data.n_out or 1
    beyond = model.steps_beyond if isinstance(model, OwnLoss) else 0
    train = windows(
        config.data,
        file,
        in_turn,
        "train",
        beyond=n_out if config.loss.pushforward else beyond,
        volumes=config.loss.weighting == "quadrature",
    )
    if config.loss.pushforward and train.n_out < 2 * n_out:
        raise UserError(
            f"loss.pushforward={config.loss.pushforward:g} with {train.n_in} input and "
            f"{n_out} output time steps of {file.path}",
            f"{train.n_in + 2 * n_out} time steps, of two windows in a row",
            "ask for fewer time steps by --n-in and --n-out",
        )
    valid = windows(config.data, file, mesh, "valid")
    if config.trainer.devices > len(valid):
        raise UserError(
            f"--devices {config.trainer.devices}",
            f"at most one for each of the {len(valid)} validation samples",
            "ask for fewer",
        )
    counted = np.zeros((2, file.components), np.int64)
    for windows_of_part in (train, valid):
        if not config.data.lead_times:
            _check_time_steps(windows_of_part)
        tick = partial(progress, "reading samples")
        counted += _read_through(windows_of_part, tick)
    parts = {"training": train, "validation": valid}
    if len(part_samples(config.data, file, "test")):
        parts["test"] = windows(config.data, file, mesh, "test")
    for part, windows_of_part in parts.items():
        check_observed(part, windows_of_part)
    missing = _check_missing(counted, config.data, file)
    if missing:
        any_mesh = MODELS[config.model.name].any_mesh
        train.drop_absent = valid.drop_absent = any_mesh
    if missing and problem.has_time:
        # An indicator of each component tells where it is observed.
        indicators = problem.in_components + problem.out_components
        problem = replace(problem, in_components=indicators)
        model = _fresh(config, problem)
    if config.data.boundary_inputs:
        more = problem.in_components + 1 + problem.domain.dim
        problem = replace(problem, in_components=more)
        model = _fresh(config, problem)
    residual = config.model.is_residual(problem)
    inputs, outputs, forcings = fitted_scales(train, problem, config)
    if config.data.input_noise:
        train.noise = valid.noise = config.data.input_noise * inputs.std
    description = {
        "model": config.model.name,
        "settings": config.model.settings,
        "prediction": config.model.prediction,
        "problem": problem.to_dict(),
        "times": valid[0].times.tolist(),
    } | fitted_statistics(train, problem)
    description |= {"inputs": _names_of_inputs(file), "units": file.units}
    description["data"] = file.fingerprint()
    if missing:
        description |= {"missing": True, "trend": fitted_trends(train, problem)}
    if config.data.boundary_inputs:
        description |= {"boundary": True}
    if config.data.lead_times:
        description |= {"longest_lead": _longest_lead(train)}
    covariance = None
    if residual:
        scales = inputs.mean[: problem.out_components], outputs.std
        covariance = fitted_covariance(config.data, file, config.seed, *scales)
    forecaster = Forecaster(
        model,
        inputs,
        outputs,
        config.optimiser,
        description,
        loss=LOSSES[config.loss.name],
        residual=residual,
        covariance=covariance,
        missing=missing,
        forcings=forcings,
        boundary=config.data.boundary_inputs,
        pushforward=config.loss.pushforward,
    )
    if config.data.training_noise:
        noise = math.hypot(config.data.input_noise, config.data.training_noise)
        train.noise = noise * inputs.std
    train.pairs = config.data.lead_times
    data = WindowData(
        {"train": train, "valid": valid},
        forecaster.connect,
        batch_size=config.data.batch_size,
        workers=config.data.workers,
        seed=config.seed,
    )
    if config.optimiser.find_lr:
        rate = find_learning_rate(config, forecaster, data)
        found = {"lr": rate, "find_lr": False}
        optimiser = config.optimiser.model_copy(update=found)
        config = config.model_copy(update={"optimiser": optimiser})
        forecaster.optimiser_section = optimiser
    return Experiment(config, file, mesh, problem, data, forecaster)


def _fresh(config: RunConfig, problem: Problem) -> Model:
    """A model with the initial weights of the configuration's seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            return build_model(config.model.name, problem, config.model.settings)
        except UserError:  # says it itself, or that memory is too small
            raise
        except ValueError as error:
            raise UserError(
                f"model {config.model.name} ({error})",
                "settings that fit together and to the data",
                "change model.settings",
            ) from error


def _completed(config: RunConfig, model: Model) -> RunConfig:
    """With the settings that suit the problem, which other versions may choose anew."""
    settings = model.settings.model_dump(mode="json")
    section = config.model.model_copy(update={"settings": settings})
    return config.model_copy(update={"model": section})


def _problem_of(data: DataSection, file: Fields, mesh: Observation) -> Problem:
    """Sizes and domain of the fields, at the mesh of the first training sample."""
    observed = mesh_of(mesh, int(part_samples(data, file, "train")[0]))
    n_in, n_out = data.n_in or 0, 1 if data.lead_times else data.n_out or 1
    problem = Problem(
        domain=file.domain,
        in_components=len(file.input_names) + (file.components if n_in else 0),
        out_components=file.components,
        n_in=max(1, n_in),
        n_out=n_out,
        num_points=len(observed),
        grid_shape=observed.grid_shape,
        has_time=n_in > 0,
        forcings=len(file.forcing_names) + data.lead_times,
    )
    known = problem.folds * problem.forcings
    return replace(problem, in_components=problem.in_components + known)


def _names_of_inputs(file: Fields) -> dict[str, list[str]]:
    """Names of the fields and of all other inputs, by which `predict` asks for them."""
    static = len(file.input_names) - len(file.scalar_names)
    kinds = {
        "components": file.component_names,
        "static": file.input_names[:static],
        "scalars": file.scalar_names,
        "forcings": file.forcing_names,
    }
    return {kind: list(names) for kind, names in kinds.items() if names}


def _longest_lead(windows: WindowDataset) -> float:
    """The longest time from the last input of a window to its last target."""
    items = (windows[item].times for item in range(len(windows)))
    return max(float(times[-1] - times[windows.n_in - 1]) for times in items)


def _check_time_steps(windows: WindowDataset) -> None:
    """Makes sure that the snapshots of a window are equally far apart in time."""
    steps = np.diff(windows.times)
    unequal = np.flatnonzero(~np.isclose(steps, steps[:1], rtol=1e-3, atol=0))
    if unequal.size:
        at = unequal[0]
        before, here, after = windows.times[[at - 1, at, at + 1]]
        raise UserError(
            f"{windows.file.path} with unequal time steps, {steps[at - 1]:g} from t = "
            f"{before:g} and {steps[at]:g} from t = {here:g} to {after:g}",
            f"equal steps among the {len(windows.times)} snapshots of a window",
            "choose others by data.first_step and data.time_stride, or train on "
            "steps of any length: --set data.lead_times=true",
        )


def _read_through(
    windows: WindowDataset, progress: Callable[[int, int], None]
) -> NDArray[np.int64]:
    """Finds out now what would stop training later; fills the cache as well.

    Returns:
        How many values of the field are missing and there are in all, ``[2, C]``.

    Raises:
        UserError: A sample cannot be read, is not finite or has points outside.
    """
    counted = np.zeros((2, windows.file.components), np.int64)
    for item in range(len(windows)):
        data = windows[item]
        box = replace(windows.file.domain, region=None)
        inside = box.contains(data.pos)
        if not inside.all():
            raise UserError(
                f"sample {data.sample} of {windows.file.path} with a point at "
                f"{data.pos[~inside][0].tolist()}",
                f"points in its domain, {box}",
                "repair the points or the domain",
            )
        what = f"sample {data.sample} of {windows.file.path} with "
        windows.file.domain.check_region(data.pos, what)
        fields = data.y
        if windows.n_in:
            fields = torch.cat([data.x[..., : counted.shape[1]], fields], dim=1)
        counted[0] += fields.isnan().sum((0, 1)).numpy()
        counted[1] += fields[..., 0].numel()
        progress(item + 1, len(windows))
    return counted


def check_observed(part: str, windows: WindowDataset) -> None:
    """Makes sure that a part has values to compare predictions with.

    Warns of each component that has none there.

    Args:
        part: Its name, for the message.
        windows: Of the part.

    Raises:
        UserError: All that is predicted of it is missing.
    """
    names = windows.file.component_names
    observed = torch.zeros(len(names), dtype=torch.bool)
    for item in range(len(windows)):
        observed |= (~windows[item].y.isnan()).any(0).any(0)
        if observed.all():
            return
    if not observed.any():
        raise UserError(
            f"{windows.file.path} without any value of {' and '.join(names)} to "
            f"predict in the {part} part",
            "observed values in every part",
            "use data that are observed there, or other parts by data.split_by",
        )
    logger.warning(
        "%s has no value of %s to predict in the %s part, whose errors are those of "
        "the other components",
        *(windows.file.path, " and ".join(compress(names, ~observed)), part),
    )


def _check_missing(counted: NDArray[np.int64], data: DataSection, file: Fields) -> bool:
    """Whether any values are missing.

    Raises:
        UserError: More of a component are than ``data.max_missing`` allows.
    """
    missing = counted[0] / counted[1]
    most = int(missing.argmax())
    if missing[most] > data.max_missing:
        raise UserError(
            f"{file.path} with {100 * missing[most]:.3g} % of the values of "
            f"{file.component_names[most]} missing in training and validation samples",
            f"at most {100 * data.max_missing:g} %",
            "use data with fewer gaps, or allow more by --set data.max_missing",
        )
    return bool(counted[0].any())
