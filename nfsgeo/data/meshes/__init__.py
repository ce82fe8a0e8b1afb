"""Meshes drawn from a file: subsets of its points, and points between them.

Every sampler takes ``(file, num_points or resolution, seed, sample)``: the file whose
points it draws from, the number of points or that along each axis, the seed of the draw
and the number of the sample. It depends on nothing else. ``sample`` matters for files
whose samples have meshes of their own, and makes another draw for each sample; leave it
out for one mesh that all samples share. Where they share one, numbers past the last
sample are further draws.
:data:`MESH_KINDS` names those that a run can be observed with.
"""

from __future__ import annotations

from nfsgeo.data.meshes.mesh import Mesh, MeshesInTurn
from nfsgeo.data.meshes.on_grids import jittered, off_grid, sub_grid
from nfsgeo.data.meshes.subsets import (
    MESH_KINDS,
    MeshKind,
    MeshOfFile,
    clustered,
    disjoint,
    every_point,
    nested,
    points_there,
    random_subset,
    with_queries,
)

__all__ = [
    "MESH_KINDS",
    "Mesh",
    "MeshKind",
    "MeshOfFile",
    "MeshesInTurn",
    "clustered",
    "disjoint",
    "every_point",
    "jittered",
    "nested",
    "off_grid",
    "points_there",
    "random_subset",
    "sub_grid",
    "with_queries",
]
