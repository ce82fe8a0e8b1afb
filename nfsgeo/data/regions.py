"""Regions from files of polygons, signed distances and surfaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.fields import reading
from nfsgeo.data.formats.format import require
from nfsgeo.errors import UserError
from nfsgeo.geometry import Region

__all__ = ["read_region"]

WHAT = (
    "polygons of GeoJSON (.geojson), a signed distance (.npz: x, y, distance) or a "
    "closed surface of triangles (.stl, .ply, .obj, ...)"
)
DISTANCE = {"x", "y", "distance"}


def read_region(path: str | Path, *, inside: bool = False) -> Region:
    """The region that a file tells, in the coordinates of the domain.

    ==============  ==============================================================
    file            content
    ==============  ==============================================================
    GeoJSON         the polygons of all its features, with their holes
    ``.npz``        ``distance [n, m]`` at the nodes of ``x [n]`` and ``y [m]``,
                    negative in obstacles
    of a mesh       triangles that close, read by meshio (``nfsgeo[formats]``)
    ==============  ==============================================================

    Args:
        path: The file.
        inside: Whether fields live inside of polygons or surfaces; if not, these are
            obstacles. A signed distance tells by itself.

    Raises:
        UserError: The file does not exist or holds none of these, or a boundary is not
            closed.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}", "an existing file", "check the name")
    with reading(path, WHAT):
        if path.suffix.lower() in (".geojson", ".json"):
            found = list(_rings(json.loads(path.read_text(encoding="utf-8"))))
            return Region.polygons(found, inside=inside)
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                if set(arrays.files) != DISTANCE:
                    raise ValueError(f"arrays {', '.join(arrays.files)}")
                if inside:
                    raise UserError(
                        f"{path} of a signed distance as the inside of boundaries",
                        "its sign alone: negative in obstacles",
                        "give it as obstacles",
                    )
                return Region.signed_distance(**{k: arrays[k] for k in DISTANCE})
        require("meshio", f"{path}")
        import meshio

        mesh = meshio.read(path)
        triangles = mesh.cells_dict.get("triangle", np.empty((0, 3), np.int64))
        return Region.surface(mesh.points, triangles, inside=inside)


def _rings(shape: Any) -> Iterator[Any]:
    """Outlines and holes of all polygons in an object of GeoJSON."""
    kind = shape["type"]
    if kind == "Polygon":
        yield from shape["coordinates"]
    elif kind == "MultiPolygon":
        for polygon in shape["coordinates"]:
            yield from polygon
    elif kind in ("FeatureCollection", "GeometryCollection"):
        for part in shape["features" if kind[0] == "F" else "geometries"]:
            yield from _rings(part)
    elif kind == "Feature":
        yield from _rings(shape["geometry"])
    else:
        raise ValueError(f"a {kind}, which encloses nothing")
