"""Times as text: in their unit, or as dates where they were dates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nfsgeo.data.numbers import EPOCH

__all__ = ["span_text", "time_text", "time_texts"]

DATES = (16, 19, 23, 26)  # letters of a date to minutes, seconds, ms, µs
DIGITS = range(4, 18)


def time_text(time: float, unit: str = "") -> str:
    """A time with its unit, ``t = 2.75 h``, or a date in UTC.

    Args:
        time: The time; seconds since 1970 for a date.
        unit: Its unit, ``""`` where it is not known.
    """
    return time_texts([time], unit)[0]


def span_text(first: float, last: float, unit: str = "") -> str:
    """Two times as :func:`time_text`: ``t = 2 h to 5 h``."""
    texts = time_texts([first, last], unit)
    return " to ".join([texts[0], texts[1].removeprefix("t = ")])


def time_texts(times: Iterable[float], unit: str = "") -> list[str]:
    """Times as :func:`time_text`, with as many digits as tell them apart.

    Args:
        times: The times.
        unit: Their unit.
    """
    times, texts = list(times), list[str]()
    behind = f" {unit}" * bool(unit)
    if unit == EPOCH:
        dates = [str(np.datetime64(round(1e6 * time), "us")) for time in times]
    for digits in DATES if unit == EPOCH else DIGITS:
        if unit == EPOCH:
            texts = [date[:digits].replace("T", " ") for date in dates]
        else:
            texts = [f"t = {time:.{digits}g}{behind}" for time in times]
        if len(set(texts)) == len(set(times)):
            break
    return texts
