"""One pass over all windows before training: checks and statistics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import compress

import numpy as np
import torch
from torch_geometric.data import Data

from nfsgeo.data import Fields
from nfsgeo.data.times import clock, same_steps, span_text, step_text, time_text
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.forecast import Statistics
from nfsgeo.progress import Progress
from nfsgeo.training.config import RunConfig

__all__ = ["check_observed", "read_windows"]

logger = logging.getLogger(__name__)


def read_windows(
    parts: Mapping[str, WindowDataset], config: RunConfig, progress: Progress
) -> tuple[Statistics, bool]:
    """Finds out now what would stop training later; fills the cache as well.

    Args:
        parts: ``"train"``, ``"valid"`` and, where there are samples, ``"test"``.
        config: Of the run, resolved.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        Statistics of the training windows, and whether the fields have gaps.

    Raises:
        UserError: A sample cannot be read, is not finite or has points outside, time
            steps are unequal, a part has nothing to compare predictions with, or gaps
            are larger than ``data.max_missing`` allows.
    """
    file, data = parts["train"].file, config.data
    n_in = data.n_in or 0
    statistics = Statistics(n_in, data.n_out or 1, data.lead_times)
    gaps, total = torch.zeros(file.components, dtype=torch.long), 0
    for part in ("train", "valid"):
        windows = parts[part]
        if not data.lead_times:
            _check_time_steps(windows)
        for item in range(len(windows)):
            window = windows[item]
            _check_points(window, file)
            if part == "train":
                statistics.add(window)
            fields = window.y
            if n_in:
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


def check_observed(part: str, windows: WindowDataset) -> None:
    """Makes sure that a part has values to compare predictions with.

    Warns of each component that has none there.

    Raises:
        UserError: There is nothing to predict in it.
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


def _check_points(window: Data, file: Fields) -> None:
    box, of = file.domain.box, f"sample {window.sample} of {file.path}"
    inside = box.contains(window.pos)
    if not inside.all():
        raise UserError(
            f"{of} with a point at {window.pos[~inside][0].tolist()}",
            f"points in its domain, {box}",
            "repair the points or the domain",
        )
    file.domain.check_region(window.pos, f"{of} with ")
