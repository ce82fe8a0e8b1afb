"""Meshes drawn from a file: subsets of its points, and points between them.

Every sampler is a function of the same arguments, and depends on nothing else:

- ``file``: the fields whose points it draws from
- ``num_points``: how many points, or ``resolution``: how many along each axis
- ``seed``: the seed of the draw
- ``sample``: the number of the sample. Each sample has another draw, from its own mesh
  if samples differ in their meshes. Leave it out for one mesh that all samples share;
  then numbers past the last sample are further draws.

:data:`MESH_KINDS` has the samplers that ``data.mesh`` of a run chooses from.
"""

from __future__ import annotations

from nfsgeo.data.meshes.mesh import (
    Mesh,
    MeshBySample,
    MeshesInTurn,
    Observation,
    SubsetsInTurn,
)
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

__all__ = ["MESH_KINDS", "Mesh", "MeshBySample", "MeshKind", "MeshOfFile"]
__all__ += ["MeshesInTurn", "Observation", "SubsetsInTurn", "clustered", "disjoint"]
__all__ += ["every_point", "jittered", "nested", "off_grid", "points_there"]
__all__ += ["random_subset", "sub_grid", "with_queries"]
