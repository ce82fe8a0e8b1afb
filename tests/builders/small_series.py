"""Small series of stations, with marks of missing values."""

from typing import Any

import numpy as np
import pandas

P = np.random.default_rng(0).random((4, 2)).round(3)


def series(values: Any) -> pandas.DataFrame:
    """A table of six days at each point, with values in a column of the name u."""
    days = pandas.date_range("2026-01-01", periods=6).strftime("%Y-%m-%d")
    place = np.tile(P, (6, 1))
    return pandas.DataFrame(
        {"time": np.repeat(days, 4), "x": place[:, 0], "y": place[:, 1], "u": values}
    )


def marked(values: Any, *marks: Any) -> list[Any]:
    values = [*values]
    for k in range(0, len(values), 5):
        values[k] = marks[k // 5 % len(marks)]
    return values


U = np.random.default_rng(1).random(24).round(3)
