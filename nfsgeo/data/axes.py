"""The axes of a grid: that they increase within the domain, and how far they reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nfsgeo.data.fields import SPACE, Doubles
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["check_axes", "is_at", "is_equispaced"]

# Of the spacing: what rounding of coordinates may amount to, whatever their units and
# origin.
TOLERANCE = 1e-2


def check_axes(
    path: Path, axes: Sequence[Doubles], domain: Domain, *, least: int = 1
) -> None:
    """Makes sure that the axes of a grid increase, and lie in the domain.

    Args:
        path: The file, for messages.
        axes: Coordinates of each axis.
        domain: Box that is to hold the grid.
        least: Fewest coordinates of an axis.

    Raises:
        UserError: They do not.
    """
    if len(axes) != domain.dim:
        raise UserError(
            f"a domain of {domain.dim} axes for the grid of {path}",
            f"{len(axes)}, as the grid has",
            "give a lower and an upper end for each axis",
        )
    for i, (name, axis) in enumerate(zip(SPACE, axes, strict=False)):
        if axis.ndim != 1 or len(axis) < least or not np.isfinite(axis).all():
            raise UserError(
                f"{path} with axis {name} of shape {axis.shape}",
                f"{least} finite coordinates or more on each axis",
                "leave the axis out or repair it",
            )
        ends = f"{path} with axis {name} from {axis[0]:g} to {axis[-1]:g}"
        if not np.all(np.diff(axis) > 0):
            raise UserError(
                ends,
                "coordinates that increase along the axis",
                "sort it and the fields with it",
            )
        lower, upper, wraps = domain.lower[i], domain.upper[i], domain.periodic[i]
        if axis[0] < lower or axis[-1] > upper or (wraps and axis[-1] == upper):
            raise UserError(
                f"{ends} in a domain from {lower:g} to {upper:g}",
                "a domain that holds the axis, a periodic one without its upper "
                "end, which is its lower end again",
                "give the period as `upper`, or leave the last point out",
            )


def is_at(axis: Doubles, number: int, end: float) -> bool:
    """Whether the coordinate of this number is an end of the domain.

    Args:
        axis: Increasing coordinates, two or more.
        number: 0 for the first coordinate, -1 for the last.
        end: The coordinate of the end.
    """
    spacing = (axis[-1] - axis[0]) / max(1, len(axis) - 1)
    return bool(abs(axis[number] - end) <= TOLERANCE * spacing)


def is_equispaced(axis: Doubles, period: float) -> bool:
    """Whether an axis has equispaced points over the whole of its period."""
    spacing = period / len(axis)
    rounding = 4 * np.spacing(np.abs(axis).max())
    off = np.abs(np.diff(axis) - spacing)
    return bool(np.all(off <= 1e-6 * spacing + rounding))
