"""The domain of a data set, a check that its points lie in it, and region files.

The coordinates x, y and z have the attributes ``lower``, ``upper`` and ``periodic``.
The data set has the attribute ``sphere`` where they are longitude and latitude on one,
and, where fields live in a part of the box alone, the variable ``region(facet, corner,
axis)`` with the attribute ``inside``, see :class:`~nfsgeo.geometry.Region`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely.geometry
import torch
import xarray

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.other_files import check_source
from nfsgeo.errors import UserError, option
from nfsgeo.geometry import Domain, Region
from nfsgeo.geometry.box import ROUNDING

__all__ = ["check_within", "domain_of", "is_at", "is_equispaced"]
__all__ += ["read_region", "with_domain"]

ENDS = ("lower", "upper", "periodic")
# A coordinate this far from an end, as a fraction of the spacing, is taken as rounded.
TOLERANCE = 1e-2
WHAT = (
    "polygons of GeoJSON (.geojson), a signed distance (.npz: x, y, distance) or a "
    "closed surface of triangles (.stl, .ply, .obj, ...)"
)
DISTANCE = {"x", "y", "distance"}


def domain_of(dataset: xarray.Dataset) -> Domain | None:
    """The domain that a data set tells, None where it tells none."""
    axes = [dataset[axis].attrs for axis in "xyz" if axis in dataset.variables]
    if not all(end in about for about in axes for end in ENDS):
        return None
    lower, upper = ([float(a[end]) for a in axes] for end in ENDS[:2])
    periodic = [bool(about["periodic"]) for about in axes]
    settings: dict[str, Any] = {"lower": lower, "upper": upper, "periodic": periodic}
    settings["sphere"] = bool(dataset.attrs.get("sphere"))
    if "region" in dataset:
        region = dataset["region"]
        settings |= {"facets": region.values, "inside": bool(region.attrs["inside"])}
    return Domain.from_dict(settings)


def with_domain(dataset: xarray.Dataset, domain: Domain) -> xarray.Dataset:
    """The data set in another domain."""
    dataset = dataset.drop_vars("region", errors="ignore").copy()
    ends = zip(domain.lower, domain.upper, domain.periodic, strict=True)
    for axis, (lower, upper, periodic) in zip("xyz", ends, strict=False):
        about = {"lower": lower, "upper": upper, "periodic": int(periodic)}
        dataset[axis].attrs.update(about)
    dataset.attrs.pop("sphere", None)
    if domain.curved:
        dataset.attrs["sphere"] = 1
    if domain.region is not None:
        dims, inside = ("facet", "corner", "axis"), int(domain.region.inside)
        attrs = {"role": "facets", "inside": inside}
        dataset["region"] = (dims, np.asarray(domain.region.facets), attrs)
    return dataset


def check_within(
    domain: Domain,
    meshes: Iterable[Doubles],
    path: Path,
    *,
    axes: Sequence[Doubles] | None = None,
) -> None:
    """Check that a domain holds the points of meshes.

    Args:
        domain: The domain.
        meshes: Points ``[n, d]`` of each mesh; of a grid the ends of its axes.
        path: The file, for messages.
        axes: Coordinates along each axis of a grid, None for point clouds.

    Raises:
        UserError: A point lies outside, along a periodic axis by more than a period, or
            the points of a mesh span more than a period; a point of a mesh is in an
            obstacle; a grid has both ends of a periodic axis, which are one point.
    """
    lower, upper = np.array(domain.lower), np.array(domain.upper)
    length, periodic = upper - lower, np.array(domain.periodic)
    room = ROUNDING * length
    beside = np.where(periodic, length, 0.0) if axes is None else np.zeros(len(length))
    for points in meshes:
        if points.shape[1] != domain.dim:
            expected = f"{points.shape[1]}, as the points of {path} have"
            todo = "give two ends for each axis"
            raise UserError(f"a domain of {domain.dim} axes", expected, todo)
        low, high = points.min(axis=0), points.max(axis=0)
        outside = (low < lower - beside - room) | (high > upper + beside + room)
        outside |= periodic & (high - low > length + room)
        if outside.any():
            i = int(np.argmax(outside))
            raise UserError(
                _along(path, domain, i, low[i], high[i]),
                "points in the domain, in the units of its coordinates",
                "correct the units or the domain, as in "
                + option("axis", f"{low[i]:g}:{high[i]:g}"),
            )
        if axes is None:  # of a grid, points in obstacles are left out
            domain.check_region(torch.from_numpy(points), f"{path} with ")
    for i, nodes in enumerate(axes or ()):
        if periodic[i] and len(nodes) > 1 and is_at(nodes, -1, domain.upper[i]):
            raise UserError(
                _along(path, domain, i, nodes[0], nodes[-1]),
                "a periodic axis without its upper end, which is its lower end again",
                "give the period as the upper end, or leave the last point out",
            )


def _along(path: Path, domain: Domain, i: int, low: float, high: float) -> str:
    wraps = "periodic " * domain.periodic[i]
    given = f"{path} with {'xyz'[i]} from {low:g} to {high:g} in a {wraps}domain"
    return f"{given} from {domain.lower[i]:g} to {domain.upper[i]:g}"


def is_at(axis: Doubles, number: int, end: float) -> bool:
    """Return whether an end of the domain is the coordinate of this number, 0 or -1."""
    spacing = (axis[-1] - axis[0]) / max(1, len(axis) - 1)
    return bool(abs(axis[number] - end) <= TOLERANCE * spacing)


def is_equispaced(axis: Doubles, period: float) -> bool:
    """Return whether an axis has equispaced points over the whole of its period."""
    spacing = period / len(axis)
    rounding = 4 * np.spacing(np.abs(axis).max())
    off = np.abs(np.diff(axis) - spacing)
    return bool(np.all(off <= 1e-6 * spacing + rounding))


def read_region(path: str | Path, *, inside: bool = False) -> Region:
    """The region that a file tells, in the coordinates of the domain.

    ==============  ==============================================================
    file            content
    ==============  ==============================================================
    GeoJSON         the polygons of all its features, with their holes
    ``.npz``        ``distance [n, m]`` at the nodes of ``x [n]`` and ``y [m]``,
                    negative in obstacles
    of a mesh       a surface that closes, read by trimesh
    ==============  ==============================================================

    Fields live ``inside`` of polygons or surfaces, or these are obstacles; a signed
    distance of the file at ``path`` tells by itself.

    Raises:
        UserError: The file does not exist or holds none of these, or a boundary is not
            closed.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}", "an existing file", "check the name")
    with reading(path, WHAT):
        check_source(path)
        if path.suffix.lower() in (".geojson", ".json"):
            content = json.loads(path.read_text("utf-8"))
            # A collection of features, one, or its geometry.
            features = content.get("features", [content])
            geometries = (feature.get("geometry", feature) for feature in features)
            # It closes rings that rounding left open.
            parts = shapely.get_parts([*map(shapely.geometry.shape, geometries)])
            while (shapely.get_type_id(parts) > shapely.GeometryType.POLYGON).any():
                parts = shapely.get_parts(parts)
            if kinds := {part.geom_type for part in parts} - {"Polygon"}:
                raise ValueError(f"a {min(kinds)}, which encloses nothing")
            rings = [shapely.get_coordinates(r) for r in shapely.get_rings(parts)]
            return Region.polygons(rings, inside=inside)
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                if set(arrays.files) != DISTANCE:
                    raise ValueError(f"arrays {', '.join(arrays.files)}")
                if inside:
                    raise ValueError("a distance, negative in obstacles, as a region")
                return Region.signed_distance(**{k: arrays[k] for k in DISTANCE})
        import trimesh

        with path.open("rb") as stream:  # not by its name, or it may name other files
            kind = path.suffix[1:].lower()
            mesh = trimesh.load_mesh(stream, file_type=kind, process=False)
        return Region.surface(mesh.vertices, mesh.faces, inside=inside)
