"""Boxes, grids, neighbour search and the graphs that models are built on.

- :class:`Domain`: a box, periodic or not on each axis, perhaps with a region
- :class:`Region`: the part of a box outside obstacles, or inside a vessel
- :class:`Sphere`: the surface of a sphere, in degrees; :class:`UnitSphere`: in space
- :func:`spherical_harmonics`: real harmonics at points of the unit sphere
- :func:`equispaced_grid`: the nodes of a regular grid on a domain
- :func:`radius_edges`: all pairs within a radius, by one of several libraries
- :func:`radius_for`: the radius at which a ball holds ``c log n`` points
- :class:`BipartiteGraph`: edges from sources to targets in CSR form
- :class:`GraphTensors`: tensors of a graph, as arguments of exported programs
- :class:`SparseRows`: edges as the pattern of a sparse matrix
- :func:`bipartite_graph`: the radius graph without empty neighbourhoods
- :func:`nearest_neighbour_graph`: edges from the nearest sources to each target
- :class:`LatentCoordinates`: coordinates that spread the points of a graded mesh
- :func:`occupancy`: how evenly points fill their domain
- :func:`shared_strengths`: strengths of latent coordinates for all meshes of a data set
- :func:`batch_graphs`: several graphs joined into one
- :func:`moving_least_squares`: weights that reproduce polynomials
- :func:`polyharmonic_spline`: weights of local splines on the nearest neighbours
- :func:`quadrature_weights`: quadrature weights (Voronoi volumes) of points
- :class:`GraphBuilder`: the graphs between points, grid and query points
- :class:`Graphs`: all that a model computes from positions, for one batch
"""

from nfsgeo.geometry.bipartite import (
    BipartiteGraph,
    GraphTensors,
    SparseRows,
    batch_graphs,
)
from nfsgeo.geometry.domain import Domain, Sphere, UnitSphere
from nfsgeo.geometry.graphs import Graphs
from nfsgeo.geometry.grids import equispaced_grid, quadrature_weights
from nfsgeo.geometry.latent import LatentCoordinates, occupancy, shared_strengths
from nfsgeo.geometry.radius_graph import (
    GraphBuilder,
    Interpolation,
    bipartite_graph,
    nearest_neighbour_graph,
)
from nfsgeo.geometry.region import Region
from nfsgeo.geometry.search import radius_edges, radius_for
from nfsgeo.geometry.sphere import spherical_harmonics
from nfsgeo.geometry.splines import moving_least_squares, polyharmonic_spline

__all__ = [
    "BipartiteGraph",
    "Domain",
    "GraphTensors",
    "GraphBuilder",
    "Graphs",
    "Interpolation",
    "LatentCoordinates",
    "Region",
    "SparseRows",
    "Sphere",
    "UnitSphere",
    "batch_graphs",
    "bipartite_graph",
    "quadrature_weights",
    "equispaced_grid",
    "moving_least_squares",
    "nearest_neighbour_graph",
    "occupancy",
    "polyharmonic_spline",
    "radius_edges",
    "radius_for",
    "shared_strengths",
    "spherical_harmonics",
]
