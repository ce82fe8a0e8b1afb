"""Plane elasticity by quadratic finite elements, on a square with a hole.

scikit-fem (``nfsgeo[fem]``) makes the meshes, assembles and projects.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import skfem
from skfem.helpers import sym_grad
from skfem.models.elasticity import linear_elasticity, linear_stress

from nfsgeo.data.conventions import Doubles, Indices

__all__ = [
    "displacements",
    "equilibrium",
    "hole_mesh",
    "plane_stress",
    "pulled",
    "reference_mesh",
    "stress_at_vertices",
    "von_mises",
]

Lame = tuple[float, float]
# Tolerance of positions.
NEAR = 1e-9


def reference_mesh(resolution: int) -> skfem.MeshTri1:
    """Return the square [-1, 1] x [-1, 1] with a square hole, cut into triangles.

    There are ``resolution`` squares along each outer side, each cut along its
    diagonals, and enough rings around the hole to make them about square on the mesh of
    a sample. Some diagonals lie on those of the domain, where :func:`hole_mesh` has
    kinks.
    """
    axis, rings = np.linspace(-1, 1, resolution + 1), (resolution + 2) // 4
    hole = 1 - 2 * rings / resolution
    whole = skfem.MeshQuad.init_tensor(axis, axis)
    ring = whole.remove_elements(lambda x: np.abs(x).max(axis=0) < hole)
    return ring.to_meshtri(style="x")


def hole_mesh(
    reference: skfem.MeshTri1, radius: Callable[[Doubles], Doubles]
) -> skfem.MeshTri2:
    """Map the reference mesh to the unit square with a hole around its centre.

    Points move along rays from the centre: those of the square hole onto the hole,
    those of the outer sides onto the sides, and others in proportion. Sides of
    triangles are curved.

    Args:
        reference: Reference mesh, refined or not.
        radius: Radius of the hole as a function of the angle ``[n]``, below 0.5.
    """
    curved = skfem.MeshTri2.from_mesh(reference)
    x = curved.doflocs
    size = np.abs(x).max(axis=0)
    angle = np.arctan2(x[1], x[0])
    part = (size - size.min()) / (1 - size.min())
    near = radius(angle) * np.stack([np.cos(angle), np.sin(angle)])
    return skfem.MeshTri2(0.5 + (1 - part) * near + part * x / size / 2, curved.t)


def plane_stress(nu: float) -> Lame:
    """Return the Lame parameters of a thin plate of Young's modulus 1."""
    # scikit-fem's own are wrong in plane stress before version 12.0.2.
    return nu / (1 + nu) / (1 - nu), 0.5 / (1 + nu)


def displacements(mesh: skfem.MeshTri2) -> skfem.Basis:
    """Return the basis of quadratic displacements on a mesh."""
    element = skfem.ElementVector(skfem.ElementTriP2())
    return skfem.Basis(mesh, element, intorder=2)


def equilibrium(
    basis: skfem.Basis,
    lame: Lame,
    load: Doubles,
    fixed: Indices,
    values: Doubles | None = None,
) -> tuple[Doubles, float]:
    """Solve for the displacement in equilibrium with a load.

    Args:
        basis: Basis of displacements.
        lame: Lame parameters.
        load: Assembled body forces and tractions.
        fixed: Degrees of freedom with prescribed values.
        values: Displacement with these values; None for 0.

    Returns:
        The displacement, and the largest residual over the largest force at a node.
    """
    stiffness = linear_elasticity(*lame).assemble(basis)
    system = skfem.condense(stiffness, load, x=values, D=fixed)
    direct = skfem.solver_direct_scipy(permc_spec="MMD_AT_PLUS_A")
    u = skfem.solve(*system, solver=direct)
    force = stiffness @ u
    residual = np.delete(force - load, fixed)
    return u, float(np.abs(residual).max() / np.abs(force).max())


def pulled(basis: skfem.Basis, lame: Lame) -> tuple[Doubles, float]:
    """Solve for the :func:`equilibrium` of a cell clamped below and pulled above."""
    mesh = basis.mesh
    above = mesh.facets_satisfying(lambda x: x[1] > 1 - NEAR, boundaries_only=True)
    top = skfem.FacetBasis(mesh, basis.elem, facets=above)
    load = skfem.LinearForm(lambda v, w: v[1]).assemble(top)
    return equilibrium(basis, lame, load, basis.get_dofs(lambda x: x[1] < NEAR).all())


def stress_at_vertices(basis: skfem.Basis, u: Doubles, lame: Lame) -> Doubles:
    """Return the stress components xx, yy and xy at the vertices ``[3, V]``.

    They are the L2 projection to continuous, piecewise linear functions.
    """
    stress = linear_stress(*lame)(sym_grad(basis.interpolate(u)))
    linear = basis.with_element(skfem.ElementTriP1())
    return np.stack([linear.project(stress[i, j]) for i, j in ((0, 0), (1, 1), (0, 1))])


def von_mises(stress: Doubles) -> Doubles:
    """Return the von Mises stress ``[V]`` of components xx, yy and xy ``[3, V]``."""
    xx, yy, xy = stress
    return np.asarray(np.sqrt(xx**2 - xx * yy + yy**2 + 3 * xy**2))
