"""Regions from files of polygons, signed distances and surfaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import shapely

from nfsgeo.data.fields import reading
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
    of a mesh       a surface that closes, read by trimesh
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
            parts = shapely.get_parts(shapely.from_geojson(path.read_text("utf-8")))
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
                    raise UserError(
                        f"{path} of a signed distance as the inside of boundaries",
                        "its sign alone: negative in obstacles",
                        "give it as obstacles",
                    )
                return Region.signed_distance(**{k: arrays[k] for k in DISTANCE})
        import trimesh

        mesh = trimesh.load_mesh(path, process=False)
        return Region.surface(mesh.vertices, mesh.faces, inside=inside)
