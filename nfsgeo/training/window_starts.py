"""Which samples each part of the data has, and where its windows begin."""

from __future__ import annotations

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.splits import SPLITS, split_in_order
from nfsgeo.errors import UserError
from nfsgeo.training.config import DataSection

__all__ = ["part_samples", "steps_of_parts", "window_starts"]


def part_samples(data: DataSection, file: Fields, part: str) -> Indices:
    """Numbers of the samples of a part, which are the same where parts differ in time.

    They are the first ones where ``data.max_train`` and its like ask for fewer.
    """
    most = {"train": data.max_train, "valid": data.max_valid, "test": data.max_test}
    by_time = data.split_by == "time"
    samples = np.arange(file.num_samples) if by_time else file.split[part]
    return samples[: most[part]]


def steps_of_parts(data: DataSection, file: Fields) -> dict[str, range]:
    """The time steps of a file that the windows of each part lie in.

    Where samples are split by time, parts follow each other in the order of
    :data:`~nfsgeo.data.splits.SPLITS`, 0.7/0.1/0.2 of the time steps, none of them
    shorter than a window; else every part has all time steps. Time steps at the end
    that hold forcings alone belong to none.

    Raises:
        UserError: There are fewer time steps than three windows have.
    """
    steps = range(data.first_step, file.num_observed())
    if data.split_by != "time":
        return dict.fromkeys(SPLITS, steps)
    num = (data.n_in or 0) + (data.n_out or 1)
    least = data.time_steps(num).stop - data.first_step
    if len(steps) < 3 * least:
        few = file.num_samples < len(SPLITS)
        raise UserError(
            f"{len(steps)} time steps of {file.path}, split by time"
            + f" for lack of {len(SPLITS)} samples" * few,
            f"at least {3 * least}, for windows of {least} of each part",
            "ask for fewer time steps (--n-in, --n-out, --steps), or use a longer file"
            + " or more samples" * few,
        )
    parts = split_in_order(len(steps))
    valid, test = (max(least, len(parts[part])) for part in ("valid", "test"))
    cuts = [steps.start, steps.stop - test - valid, steps.stop - test, steps.stop]
    return {part: range(*cuts[i : i + 2]) for i, part in enumerate(SPLITS)}


def window_starts(
    data: DataSection, file: Fields, part: str, num_steps: int
) -> Indices:
    """The first time steps of the windows that each sample of a part has.

    Windows whose time steps are not as far apart as most, because the file lacks some
    between them, are left out where there are others, unless lead times are known.
    A window has ``num_steps`` time steps.
    """
    stride = data.window_stride if part == "train" else data.evaluation_stride
    if stride is None:
        return np.array([data.first_step])
    steps = steps_of_parts(data, file)[part]
    length = data.time_steps(num_steps).stop - data.first_step
    starts = np.arange(steps.start, steps.stop - length + 1, stride)
    if data.lead_times:
        return starts
    times = file.times[starts[:, None] + data.time_stride * np.arange(num_steps)]
    usual = np.median(file.times[data.time_stride :] - file.times[: -data.time_stride])
    even = np.isclose(np.diff(times), usual, rtol=1e-3, atol=0).all(axis=1)
    return starts[even] if even.any() else starts
