"""Which axis of the arrays of a graph is time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError, option

__all__ = ["ASK", "TimeAxis", "in_time"]

Arrays = dict[str, NDArray[Any]]
ASK = "ask"
TimeAxis = int | str | None
MOVED = ("x", "y", "forcing")


def in_time(
    what: str,
    arrays: Arrays,
    time_axis: TimeAxis = ASK,
    series: str | None = None,
    named: Collection[int] = (),
) -> tuple[Arrays, str]:
    """Return arrays of axes (points, time steps, components) or (points, components).

    Args:
        what: The graph, for messages.
        arrays: ``pos``, ``x`` and perhaps ``y``, ``forcing`` and ``t`` of a graph.
        time_axis: The axis of ``x``, ``y`` and ``forcing`` that is time, None where
            none is; ``"ask"`` where the number of times ``t`` decides.
        series: ``"samples"`` or ``"time-steps"`` where a user says so.
        named: Numbers of components that have names.

    Returns:
        Also a line on the choice between two readings, else empty.

    Raises:
        UserError: Arrays contradict each other, or can be read in two ways.
    """
    x, y, t = arrays["x"], arrays.get("y"), arrays.get("t")
    there = [name for name in MOVED if name in arrays and arrays[name].size]
    listed = [f"{name} of shape {arrays[name].shape}" for name in there]
    given = f"{what} with {', '.join(listed)} and {'no' if t is None else len(t)} t"
    axes: tuple[TimeAxis, ...] = (1, 2, None) if x.size else (None,)  # y alone
    readings = {
        axis: reading
        for axis in (axes if time_axis == ASK else (time_axis,))
        if (reading := _along(arrays, axis)) is not None
    }
    if not readings:
        said = "none" if time_axis is None else time_axis
        given += f", --time-axis {said}" * (time_axis != ASK)
        expected = f"an axis of {len(arrays['pos'])} points, then one of time steps "
        expected += "and one of components, which x and y share, or either; t and "
        expected += "forcing at the steps of x and then of y"
        say = option("time_axis", 1, 2, "none")
        todo = f"correct the arrays, or say which axis is time: {say}"
        raise UserError(given, expected, todo)
    chosen, line = next(iter(readings)), ""
    if {1, 2} <= readings.keys() and x.shape[2] > 1:
        if t is None and y is None and x.shape[1] == 1 and x.shape[2] not in named:
            say = f"say it: {option('time_axis', 2)}, or {option('time_axis', 1)}"
            raise UserError(given, "to be told which axis is time", say)
        line = "read as (points, time steps, components); if time is last, say "
        line = f"{line}{option('time_axis', 2)}" if t is not None else ""
    if {1, None} <= readings.keys():
        widths = [np.size(v[0]) for v in (x, y) if v is not None]
        wide, chosen = {*widths} - {1}, None
        clear = t is not None or series == "time-steps" or bool(wide & {*named})
        clear = clear or (y is None and not wide)
        if not clear and series == "samples" and y is not None:
            clear = not wide or widths[0] != widths[1]
            line = f"{widths[0]} columns of x read as inputs, {widths[1]} of y as "
            line += f"fields; if they are time steps, say {option('time_axis', 1)}"
            line *= bool(wide)
        if not clear:
            expected = "to be told whether their columns are components or time steps"
            say = f"say it: {option('time_axis', 'none')}, or "
            say += f"{option('time_axis', 1)} and times in data.t"
            raise UserError(given, expected, say)
    return readings[chosen], line


def _along(arrays: Arrays, axis: TimeAxis) -> Arrays | None:
    """Arrays with time as their second axis, which was one of ``x``; None where they do
    not fit together.
    """
    moved, t = dict(arrays), arrays.get("t")
    ndim = max(2, arrays["x"].ndim)
    if isinstance(axis, int) and not -ndim <= axis < ndim:
        return None
    for name in (name for name in MOVED if name in arrays):
        values = arrays[name]
        values = values[:, None] if values.ndim == 1 else values
        if isinstance(axis, int):
            if values.ndim == ndim:
                values = np.moveaxis(values, axis % ndim, 1)
            if values.ndim == 2:  # time steps of one component, or one of several
                width = moved["x"].shape[2] if name == "y" else 1
                one = values.shape[1] == width > 1
                values = values[:, None] if one else values[..., None]
        moved[name] = values
        if values.ndim != 2 + (axis is not None) or len(values) != len(arrays["pos"]):
            return None
    if axis is None:
        return None if t is not None and len(t) > 1 else moved
    both = [moved[name] for name in ("x", "y") if name in moved]
    steps = {sum(values.shape[1] for values in both)}
    steps |= {len(t)} if t is not None else set()
    steps |= {moved["forcing"].shape[1]} if "forcing" in moved else set()
    alike = len({values.shape[2] for values in both}) == len(steps) == 1
    return moved if alike else None
