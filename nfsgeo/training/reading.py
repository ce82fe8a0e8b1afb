"""Reads the windows of a run, and finds in one pass what would stop training later."""

from __future__ import annotations

import logging
from itertools import compress

import numpy as np
import torch

from nfsgeo.data.boundary import types_of
from nfsgeo.data.domains import check_within
from nfsgeo.data.times import clock, same_steps, span_text, step_text, time_text
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError, option
from nfsgeo.forecast import Forecaster, Moments, Statistics
from nfsgeo.forecast.transforms import MissingValues, Normalise
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress
from nfsgeo.training.run_data import RunData

__all__ = ["check_observed", "moments_of_errors", "read_as_trained", "read_windows"]

logger = logging.getLogger(__name__)


def read_as_trained(
    windows: WindowDataset, forecaster: Forecaster, noise: float
) -> None:
    """Let a data set leave out absent points and add noise as training does.

    Args:
        windows: Data set, which is changed in place.
        forecaster: The model.
        noise: Standard deviation of the noise on the inputs, in that of the training
            data.
    """
    missing = forecaster.find(MissingValues)
    normalise = forecaster.find(Normalise)
    gaps = missing is not None and missing.gaps
    windows.drop_absent = MODELS[forecaster.name].any_mesh and gaps
    if noise and normalise is not None:
        windows.noise = noise * normalise.observed


def read_windows(
    used: RunData, train: WindowDataset, valid: WindowDataset, progress: Progress
) -> tuple[Statistics, bool]:
    """Read all training and validation windows once, and check that a run can use them.

    Args:
        used: Data of the run, with a complete configuration.
        train: Training windows.
        valid: Validation windows.
        progress: Called with the name of the stage, the number of windows read and in
            all.

    Returns:
        Statistics of the training windows, and whether any field has missing values.

    Raises:
        UserError: Points are outside of the domain, time steps differ in length,
            too many values are missing, or a part of the data lacks observed values or
            has categories that training has not.
    """
    file, data = used.file, used.config.data
    parts = {"train": train, "valid": valid}
    if len(used.samples("test")):
        parts["test"] = used.windows("test")
    first_samples = np.unique(file.sample_mesh, return_index=True)[1]
    places = map(file.coordinates, first_samples)
    check_within(file.domain, places, file.path, axes=file.axes)
    n_in, first = data.n_in or 0, file.components if data.n_in else 0
    inputs = enumerate(file.input_names, first)
    categories = {column: name for column, name in inputs if name in file.categories}
    statistics = Statistics(n_in, data.n_out or 1, data.lead_times, categories)
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
    fraction, most = gaps.max() / total, int(gaps.argmax())
    if fraction > data.max_missing:
        raise UserError(
            f"{file.path} with {100 * fraction:.3g} % of the values of "
            f"{file.component_names[most]} missing in training and validation samples",
            f"at most {100 * data.max_missing:g} %",
            "use data with fewer gaps, or allow more by "
            f"{option('data.max_missing', 'FRACTION')}",
        )
    _check_categories(used, statistics)
    return statistics, bool(gaps.any())


def moments_of_errors(
    used: RunData, train: WindowDataset, statistics: Statistics
) -> Moments:
    """Return the moments of the fields that errors of several components refer to.

    They are those of the training windows where samples are observed in evaluation. The
    point sets on which a model trains depend on the model; these points do not, so that
    errors of different models are comparable.

    Args:
        used: Data of the run, with a complete configuration.
        train: Training windows.
        statistics: Their statistics.
    """
    if train.mesh is used.mesh or len(used.file.component_names) == 1:
        return statistics.fields
    fields = Moments()
    windows = used.windows("train")
    for item in range(len(windows)):
        window = windows[item]
        fields.add(window.y)
        if used.config.data.n_in:
            fields.add(window.x[..., : used.file.components])
    return fields


def _check_categories(used: RunData, statistics: Statistics) -> None:
    """Refuse categories in other parts of the data that training has not seen."""
    file = used.file
    for column, name in statistics.categories.items():
        trained = statistics.values[column]
        for part in ("valid", "test"):
            for sample in map(int, used.samples(part)):
                values = {*np.unique(types_of(file, sample, name)).tolist()}
                if odd := sorted(values - trained):
                    raise UserError(
                        f"{name} of {', '.join(map(str, odd))} in sample {sample} of "
                        f"{file.path}, in the {part} part",
                        f"one of {', '.join(map(str, sorted(trained)))}, which "
                        "training samples have",
                        "correct the values, or choose other parts by data.split",
                    )


def check_observed(part: str, windows: WindowDataset) -> None:
    """Make sure that a part of the data has values to compare predictions with.

    Args:
        part: Name of the part, for messages.
        windows: Its windows.

    Raises:
        UserError: No component has any; if only some have none, there is a warning.
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
    """Refuse windows whose time steps differ in length."""
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
            f"steps of any length: {option('data.lead_times', 'true')}",
        )
