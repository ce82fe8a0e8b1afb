"""Inputs that follow the order of the samples."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np

from nfsgeo.data.constant_inputs import constant_of
from nfsgeo.data.conventions import Indices
from nfsgeo.data.fields import Fields

__all__ = ["warn_of_order"]

logger = logging.getLogger(__name__)

LEAST = 6  # samples; fewer may be in order by chance


def warn_of_order(fields: Fields, train: Indices) -> None:
    """Warn of inputs that only rise or only fall with the number of the sample.

    If the parts follow the order of the samples, training sees a part of the range of
    such an input alone. Inputs are scalars, or static and constant in each sample.

    Args:
        fields: The fields.
        train: Numbers of the training samples.
    """
    if fields.num_samples < LEAST:
        return
    for name in fields.input_names:
        if not {"sample", "obs"}.intersection(fields.dataset[name].dims):
            continue
        samples = range(fields.num_samples)
        values = _in_order(constant_of(fields, name, sample) for sample in samples)
        if values is None:
            continue
        seen, every = ((v.min(), v.max()) for v in (values[train], values))
        if seen != every:
            text = "%s: %s %s with the sample number, and training sees only %.3g to "
            text += "%.3g of %.3g to %.3g; shuffle the samples, or tell their parts"
            how = "rises" if values[-1] > values[0] else "falls"
            logger.warning(text, fields.path, name, how, *seen, *every)


def _in_order(values: Iterable[float]) -> np.ndarray | None:
    """The values if they never fall or never rise; None otherwise, also of a NaN."""
    listed, signs = list[float](), set[float]()
    for value in values:
        signs |= {float(np.sign(value - last)) for last in listed[-1:]}
        listed.append(value)
        if np.isnan(value) or {1.0, -1.0} <= signs:
            return None
    return np.array(listed)
