"""Times on axes: in their unit, or from a date on where they were dates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.times import EPOCH, time_text
from nfsgeo.report.numbers import with_unit

__all__ = ["after_input", "along_time"]

SPANS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


def along_time(
    times: NDArray[np.float64], unit: str = ""
) -> tuple[NDArray[np.float64], str]:
    """Times on an axis, and what to call it.

    Dates become days, hours, minutes or seconds after the first of them, whichever is
    the longest of which there are two or more.

    Args:
        times: Increasing.
        unit: Their unit, ``""`` where it is not known.
    """
    if unit != EPOCH:
        return times, with_unit("time", unit)
    passed, name = _in_words(times - times[0])
    return passed, f"{name} after {time_text(times[0], unit)}"


def after_input(
    leads: NDArray[np.float64], unit: str = ""
) -> tuple[NDArray[np.float64], str]:
    """Times after the last input on an axis, and what to call it.

    Args:
        leads: Increasing.
        unit: Of the times, ``""`` where it is not known.
    """
    what = "after the last input"
    if unit != EPOCH:
        return leads, with_unit(f"time {what}", unit)
    passed, name = _in_words(leads)
    return passed, f"{name} {what}"


def _in_words(seconds: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Times in the longest unit of which there are two or more."""
    fitting = (name for name, span in SPANS.items() if seconds[-1] >= 2 * span)
    name = next(fitting, "seconds")
    return seconds / SPANS[name], name
