"""Fields of small arrays, written short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nfsgeo.data import Fields
from nfsgeo.data.conventions import FIELD, SPACE
from nfsgeo.data.io.labelled import to_fields

__all__ = ["Array", "build"]

DIMS = {"n": "sample", "t": "time", "p": "point", "o": "obs"} | dict(
    zip(SPACE, SPACE, strict=True)
)


class Array(NamedTuple):
    """Values along axes of one letter each, and names of their components."""

    values: Any
    axes: str
    names: Sequence[str]
    role: str = FIELD
    attrs: Mapping[str, Any] = {}


def build(
    path: Path,
    arrays: Sequence[Array],
    *,
    axes: Sequence[Any] | None = None,
    points: Any = None,
    stations: Any = None,
    times: Any = None,
    **options: Any,
) -> Fields:
    """Fields of some arrays, see :func:`~nfsgeo.data.io.labelled.to_fields`.

    Args:
        path: What messages call the data.
        arrays: Fields and inputs.
        axes: Coordinates along each axis of a grid.
        points: Points ``[n, d]``, a list of those of each sample, or variables by axis.
        stations: Names of the points.
        times: Time of each time step.
        options: Further arguments.
    """
    variables = {
        f"array {number}": (
            [DIMS.get(letter, letter) for letter in array.axes],
            array.values,
            {"role": array.role, "components": array.names, **array.attrs},
        )
        for number, array in enumerate(arrays)
    }
    coordinates: dict[str, Any] = {
        axis: (axis, values) for axis, values in zip(SPACE, axes or (), strict=False)
    }
    if isinstance(points, Mapping):
        coordinates |= points
    else:
        coordinates["points"] = ("point", "axis"), points
    coordinates |= {"station": ("point", stations), "time": ("time", times)}
    return to_fields(path, variables, coordinates, **options)
