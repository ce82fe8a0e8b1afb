"""Quantities, their units and times as text for a reader."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.times import EPOCH, MONTHS
from nfsgeo.geometry import Domain

__all__ = [
    "axis_labels",
    "bytes_text",
    "count_text",
    "error_text",
    "mae_text",
    "points_text",
    "seconds_text",
    "time_axis",
    "with_unit",
]

UNKNOWN = "–"
SPANS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def error_text(value: Any) -> str:
    """Format an error with three digits."""
    return f"{value:#.3g}".rstrip(".") if _is_finite(value) else UNKNOWN


def mae_text(error: Doubles) -> str:
    """Format the MAE of differences from the truth, where that is known."""
    size = np.abs(error[~np.isnan(error)])
    return f"MAE {size.mean():#.2g}".rstrip(".") if len(size) else "no truth"


def count_text(value: Any) -> str:
    """Format a whole number with its thousands separated."""
    return f"{value:,.0f}".replace(",", "\u202f") if _is_finite(value) else UNKNOWN


def points_text(num: Any, sizes: Any) -> str:
    """Return the number of points of a sample, called a median where samples differ.

    Args:
        num: The number, or the median, as text.
        sizes: Smallest and largest number of points, or the only one.
    """
    return "median " * isinstance(sizes, list) + str(num)


def bytes_text(value: Any) -> str:
    """Format an amount of memory."""
    if not _is_finite(value):
        return UNKNOWN
    power = min(3, int(math.log(max(value, 1), 1024)))
    return f"{value / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def seconds_text(value: Any) -> str:
    """Format a time span, above 100 seconds as hours, minutes and seconds."""
    if not _is_finite(value):
        return UNKNOWN
    return f"{value:.3g} s" if value < 100 else f"{timedelta(seconds=round(value))}"


def with_unit(name: str, unit: str | None) -> str:
    """The name of a quantity, followed by its unit where there is one."""
    return f"{name} ({unit})" if unit else name


def axis_labels(domain: Domain, units: Sequence[str] = ()) -> list[str]:
    """Names of the axes, each with its unit where there is one, ``""`` for none."""
    names = ("longitude", "latitude") if domain.curved else "xyz"[: domain.dim]
    units = [*units, *[""] * domain.dim]
    return [with_unit(name, unit) for name, unit in zip(names, units, strict=False)]


def time_axis(leads: Doubles, unit: str) -> tuple[Doubles, str]:
    """Times after the last input as they stand on an axis, and its label.

    Differences of dates become days, hours, minutes or seconds, whichever is the
    longest of which there are two or more. The unit is ``""`` where it is not known.
    """
    after = " after the last input"
    if unit == MONTHS:
        return leads, MONTHS + after
    if unit != EPOCH:
        return leads, with_unit(f"time{after}", unit)
    name = next((n for n in SPANS if leads[-1] >= 2 * SPANS[n]), "seconds")
    return leads / SPANS[name], name + after
