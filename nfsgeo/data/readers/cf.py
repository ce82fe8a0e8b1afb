"""Which variables of a NetCDF data set are coordinates, by the CF conventions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nfsgeo.data.readers.columns import (
    LONGITUDE,
    ROLES,
    ask_role,
    bare_name,
    check_roles,
    check_space,
)

if TYPE_CHECKING:
    import xarray

__all__ = ["ABOUT", "is_longitude", "roles_of_variables", "times_of"]

ABOUT = "nfsgeo"  # attribute of a data set for what CF has no name for
AXES = {"t": "time", "x": "x", "y": "y", "z": "z"}
STANDARD = {
    "time": "time",
    "realization": "sample",
    "longitude": "x",
    "grid_longitude": "x",
    "projection_x_coordinate": "x",
    "latitude": "y",
    "grid_latitude": "y",
    "projection_y_coordinate": "y",
}
EAST = ("degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee")
NORTH = tuple(unit.replace("east", "north") for unit in EAST[:2]) + tuple(
    unit[:-1] + "n" for unit in EAST[2:]
)


def roles_of_variables(
    path: Path, dataset: xarray.Dataset, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The coordinate, or the dimension without one, of each role that there is.

    Told by the attributes ``axis``, ``standard_name`` and ``units``, then by the name.
    (CF conventions 1.11, section 4.)

    Args:
        path: The file, for messages.
        dataset: What is in it.
        given: Variables by role, in place of what they tell; an empty name where none
            has the role.

    Raises:
        UserError: A variable is not there, or they can be read in two ways.
    """
    given = given or {}
    dims = [str(dim) for dim in dataset.dims]
    names = list(dict.fromkeys([*map(str, dataset.variables), *dims]))
    check_roles(path, names, given)
    found = {role: name for role, name in given.items() if name}
    coords = [*map(str, dataset.coords), *dims, *_places(dataset)]
    told = {
        name: _role(name, dataset[name].attrs if name in dataset.variables else {})
        for name in dict.fromkeys(coords)
        if name not in found.values()
    }
    for role in ROLES:
        if role in given:
            continue
        fitting = [name for name, what in told.items() if what == role]
        if role == "time":  # the axis, before what else tells when the data are from
            fitting = [name for name in fitting if name in dims] or fitting
        elif role != "sample":
            varying = dataset.variables.keys() & set(fitting)
            fitting = [name for name in fitting if name in varying]
            fitting = [name for name in fitting if dataset[name].ndim]
        if len(fitting) > 1:
            raise ask_role(path, role, fitting)
        found |= dict.fromkeys([role], fitting[0]) if fitting else {}
    check_space(path, names, found, "variable")
    return found


def is_longitude(name: str, attrs: Mapping[str, Any]) -> bool:
    """Whether a coordinate runs around the globe, in degrees."""
    return (
        str(attrs.get("units", "")).lower() in EAST
        or attrs.get("standard_name") == "longitude"
        or bare_name(name) in LONGITUDE
    )


def times_of(variable: xarray.DataArray) -> Any:
    """Dates, or numbers where the file tells no date; None where it is not clear which.

    A unit such as months, a date that is none, or a calendar of years that differ from
    the usual ones leaves the times unknown.
    """
    import xarray

    if "since" not in str(variable.attrs.get("units", "")).split():
        return variable.values
    alone = xarray.Dataset({"when": (variable.dims, variable.values, variable.attrs)})
    try:
        dates = xarray.decode_cf(alone, decode_timedelta=False)["when"].values
    except (ValueError, OverflowError):
        return None
    if dates.dtype == np.dtype(
        "M8[ns]"
    ):  # rounded, as fractions of a unit are not exact
        dates = (dates + np.timedelta64(500, "ns")).astype("M8[us]")
    return dates if dates.dtype.kind == "M" else None


def _places(dataset: xarray.Dataset) -> list[str]:
    """Longitudes and latitudes that the file does not declare to be coordinates."""
    if ABOUT in dataset.attrs:  # whose coordinates nfsgeo declared
        return []
    degrees = (*EAST, *NORTH)
    return [
        str(name)
        for name, variable in dataset.data_vars.items()
        if str(variable.attrs.get("units", "")).lower() in degrees
    ]


def _role(name: str, attrs: Mapping[str, Any]) -> str | None:
    standard = str(attrs.get("standard_name", ""))
    units = str(attrs.get("units", "")).lower()
    if standard == "forecast_reference_time":
        return None
    if (axis := str(attrs.get("axis", "")).lower()) in AXES:
        return AXES[axis]
    if standard in STANDARD:
        return STANDARD[standard]
    if units in (*EAST, *NORTH):
        return "x" if units in EAST else "y"
    if "since" in units.split():
        return "time"
    return next(
        (role for role, known in ROLES.items() if bare_name(name) in known), None
    )
