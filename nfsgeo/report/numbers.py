"""Numbers as text for a reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.geometry import Domain

__all__ = [
    "axis_labels",
    "bytes_text",
    "count_text",
    "decimals_for",
    "error_text",
    "finite",
    "mae_text",
    "positive",
    "seconds_text",
    "with_unit",
]

MISSING = "–"


def finite(value: Any) -> float | None:
    """A finite number as float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def positive(value: Any) -> float | None:
    """A positive finite number as float; None for anything else."""
    number = finite(value)
    return number if number is not None and number > 0 else None


def decimals_for(values: Iterable[Any]) -> int | None:
    """Decimals that show three digits of the smallest value of a column.

    None for values so small or large that powers of ten read better.
    """
    sizes = [abs(v) for v in map(finite, values) if v]
    if not sizes or min(sizes) < 1e-5 or max(sizes) >= 1e6:
        return None
    return max(0, 2 - math.floor(math.log10(min(sizes))))


def error_text(value: Any, decimals: int | None = None) -> str:
    """An error with the decimals of its column, or with three digits."""
    number = finite(value)
    if number is None:
        return MISSING
    return f"{number:.3g}" if decimals is None else f"{number:.{decimals}f}"


def mae_text(error: NDArray[Any]) -> str:
    """The MAE of differences from the truth, where that is known."""
    known = np.abs(error[~np.isnan(error)])
    return f"MAE {known.mean():#.2g}" if known.size else "no truth"


def count_text(value: Any) -> str:
    """A whole number with its thousands separated."""
    number = finite(value)
    if number is None:
        return MISSING
    return f"{round(number):,}".replace(",", "\u202f")


def bytes_text(value: Any) -> str:
    """An amount of memory."""
    number = finite(value)
    if number is None:
        return MISSING
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"


def seconds_text(value: Any) -> str:
    """A span of time."""
    number = finite(value)
    if number is None:
        return MISSING
    if number < 100:
        return f"{number:.3g} s"
    minutes, seconds = divmod(round(number), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def with_unit(name: str, unit: str | None) -> str:
    """The name of a quantity, followed by its unit where there is one."""
    return f"{name} ({unit})" if unit else name


def axis_labels(domain: Domain, units: Sequence[str] = ()) -> list[str]:
    """Names of the axes, each with its unit where there is one, ``""`` for none."""
    names = (
        ("longitude", "latitude") if domain.curved else ("x", "y", "z")[: domain.dim]
    )
    return [
        with_unit(name, units[axis] if axis < len(units) else "")
        for axis, name in enumerate(names)
    ]
