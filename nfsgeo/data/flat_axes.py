"""Axes along which points have no extent, such as z of a plane mesh in space.

Rounding leaves an extent of about 1e-16 where a mesh was rotated or cut from another
one. A domain with such an axis would have one dimension too many, in which noise is
stretched to the size of the others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.conventions import SPACE, STATIC, STATION, Doubles
from nfsgeo.errors import option, said
from nfsgeo.geometry import Domain

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["has_extent", "heights_as_input", "with_axes_left_out", "with_flat_axes"]
__all__ += ["without_flat_axes"]

logger = logging.getLogger(__name__)

LEAST_EXTENT, MOST_ROUNDING = 1e-9, 1e-4  # of that of the longest axis
HEIGHTS = "height", "station_height"  # names of static inputs, the first that is free
LEFT_OUT = "axes_without_extent"  # attribute of the data set: value by the axis


def has_extent(points: Doubles) -> NDArray[np.bool_]:
    """Return whether points extend along each axis by more than rounding, ``[d]``.

    True for all axes where the points are one.

    Args:
        points: Points, ``[n, d]``, or the lowest and the highest coordinates.
    """
    extent, largest = np.ptp(points, axis=0), np.abs(points).max(axis=0)
    single = (points == points.astype(np.float32)).all()
    rounding = 2 * np.finfo(np.float32 if single else np.float64).eps
    # Whole metres of UTM look like numbers in float32, and may be 1 apart at 5e6.
    far = np.minimum(rounding * largest, MOST_ROUNDING * extent.max())
    least = np.maximum(max(LEAST_EXTENT, rounding) * extent.max(), far)
    enough: NDArray[np.bool_] = extent > least
    return enough | ~enough.any()


def without_flat_axes(fields: Fields) -> Fields:
    """Leave out the axes of points along which none of the samples has an extent.

    Fields whose domain is known keep all axes, and grids those with several nodes. A
    warning names what is left out; :func:`with_flat_axes` puts it back at points.
    """
    if fields.domain_is_known or len(fields.space) < 2:
        return fields
    if fields.shape is not None:
        return _without_single_nodes(fields, fields.shape)
    if (wide := has_extent(fields.extent)).all():
        return fields
    dataset, middle = fields.dataset, fields.extent.mean(axis=0)
    flat = {
        a: float(m) for a, m, k in zip(fields.space, middle, wide, strict=True) if not k
    }
    left = [axis for axis in fields.space if axis not in flat]
    names = dict(zip(left, SPACE, strict=False))
    dataset = dataset.drop_vars([*flat]).rename(names)
    text = f"{', '.join(flat)}, along which the points lie in one place"
    logger.warning("%s: left out %s", fields.path, text)
    return replace(fields, dataset=dataset.assign_attrs({LEFT_OUT: json.dumps(flat)}))


def heights_as_input(
    fields: Fields, columns: Mapping[str, Any] | None, domain: Domain | None
) -> Fields:
    """Make heights of stations a static input ``height``, instead of the axis z.

    These are named points with longitudes, of which no two of a sample differ in their
    height alone. A warning tells of it.

    Args:
        fields: As a reader returns them.
        columns: What users tell of columns. Where they name that of z it stays.
        domain: The box that users give. One of three dimensions keeps z, too.
    """
    dataset = fields.dataset
    in_space = "z" in (columns or {}) or (domain is not None and domain.dim > 2)
    in_space |= "nfsgeo_layout" in dataset.attrs  # a file in which users kept z
    if in_space or fields.domain_is_known or {*SPACE, STATION} - {*dataset.variables}:
        return fields
    longitudes = dataset["x"].attrs.get("standard_name") == "longitude"
    if not longitudes or fields.axes is not None or not has_extent(fields.extent).all():
        return fields
    taken = {*dataset.variables, *fields.component_names, *fields.static_names}
    if not (free := [name for name in HEIGHTS if name not in taken]):
        return fields
    for pos in fields.meshes():
        places = np.round(pos[:, :2] / np.ptp(fields.extent, axis=0)[:2], 6)
        if len(np.unique(places, axis=0)) < len(places):
            return fields
    text = "%s: heights of stations are the static input %s; for points in space say %s"
    z = said(option("columns", "z=NAME"))
    logger.warning(text, fields.path, free[0], z)
    height = dataset["z"].variable.copy()
    height.attrs["role"] = STATIC
    return replace(fields, dataset=dataset.drop_vars("z").assign({free[0]: height}))


def _without_single_nodes(fields: Fields, shape: Sequence[int]) -> Fields:
    """Leave out the axes of a grid that have one node."""
    single = [a for a, num in zip(fields.space, shape, strict=True) if num == 1]
    left = [axis for axis in fields.space if axis not in single]
    if not (single and left):
        return fields
    names = dict(zip(left, SPACE, strict=False))
    dataset = fields.dataset.isel({axis: 0 for axis in single}, drop=True)
    text = f"{', '.join(single)}, an axis of one node"
    logger.warning("%s: left out %s", fields.path, text)
    return replace(fields, dataset=dataset.rename(names))


def with_axes_left_out(fields: Fields, source: Fields) -> Fields:
    """Return fields at points of a source from which the same axes were left out."""
    about = {n: v for n, v in source.dataset.attrs.items() if n == LEFT_OUT}
    return replace(fields, dataset=fields.dataset.assign_attrs(about))


def with_flat_axes(fields: Fields) -> Fields:
    """Put back the axes that :func:`without_flat_axes` has left out."""
    if LEFT_OUT not in fields.dataset.attrs:
        return fields
    flat = json.loads(fields.dataset.attrs[LEFT_OUT])
    old = [axis for axis in SPACE if axis not in flat]
    names = dict(zip(fields.space, old, strict=False))
    dataset = fields.dataset.rename(names)
    x = dataset[next(iter(names.values()))].variable
    added = {axis: Variable(x.dims, np.full(x.shape, at)) for axis, at in flat.items()}
    about = {name: v for name, v in dataset.attrs.items() if name != LEFT_OUT}
    dataset = dataset.assign_coords(added)
    dataset.attrs = about
    return fields.with_dataset(dataset)
