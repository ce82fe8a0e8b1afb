"""Pressure on ellipsoids in a potential flow, in closed form."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation
from scipy.special import elliprd

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver, stacked
from nfsgeo.geometry import Domain

__all__ = ["Ellipsoids", "geodesic_sphere", "graded", "shape_factors"]


class Ellipsoids(Solver):
    r"""Pressure coefficient on ellipsoids in a uniform flow of an ideal fluid.

    .. math:: \Delta\phi = 0, \quad n \cdot \nabla\phi = 0 \text{ on the surface}, \quad
        \nabla\phi \to U \text{ at infinity}, \quad c_p = 1 - |\nabla\phi|^2 / |U|^2

    On the surface the velocity is the tangential part of one vector
    (Lamb, "Hydrodynamics", article 114):

    .. math:: \nabla\phi = (I - n n^T) W U, \quad W = \mathrm{diag}\frac{2}{2-\alpha_i},
        \quad \alpha_i = abc \int_0^\infty \frac{d\lambda}{(a_i^2 + \lambda)
        \sqrt{(a^2+\lambda)(b^2+\lambda)(c^2+\lambda)}}

    in the axes of the body. The coefficient does not depend on the size of the body or
    the speed of the flow; it is 1 at stagnation points, and -5/4 at least on a sphere.

    The longest semi-axis of a body is 1, the logarithms of the other two are uniform
    from that of ``shortest`` to 0. The body and the direction of the flow are rotated
    independently and uniformly. The static inputs are the outward normal, the scalars
    the components of the unit vector in the direction of the flow. Models infer the
    shape of a body from its points.

    Each sample has a mesh of its own, the image of a geodesic sphere whose 20 triangles
    are each divided into N^2: 10 N^2 + 2 points, with the same triangles in the same
    order. Points are denser where the curvature is high, and, as if a user had refined
    the mesh, around a random point. The solution is exact at every point. All of it is
    computed on the CPU. Good values: N = 14, 1962 points.
    """

    shortest: float = Field(
        default=0.3, description="least ratio of a semi-axis to the longest", gt=0, le=1
    )
    grading: float = Field(
        default=3.0,
        description="largest ratio of spacings by refinement",
        ge=1,
        le=100,
    )

    name = "ellipsoids"
    title = "pressure on the surface of a random ellipsoid in a potential flow"
    domain: ClassVar[Domain] = Domain((-1.2,) * 3, (1.2,) * 3, (False,) * 3)
    resolution: ClassVar[int] = 14
    component_names = ("pressure",)
    static_names = ("normal_x", "normal_y", "normal_z")
    scalar_names = ("flow_x", "flow_y", "flow_z")
    method = "closed form by Carlson's elliptic integrals; float64"
    samples = 500

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Return the number of corners of all triangles."""
        return (10 * resolution**2 + 2,)

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        return {"triangle": geodesic_sphere(resolution)[1]}

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        sphere, samples = geodesic_sphere(resolution)[0], []
        for rng in rngs:
            powers = rng.random(3)
            body, lattice, *drawn = rng.standard_normal((4, 4))
            axes = self.shortest ** np.append(0, powers[:2])
            rotation = Rotation.from_quat(body)
            flow, place = (v[:3] / np.linalg.norm(v[:3]) for v in drawn)
            # Rotated, so that the number of a point does not depend on its place.
            even = Rotation.from_quat(lattice).apply(sphere)
            unit = graded(even, place, self.grading ** powers[2])
            normal = unit / axes
            normal /= np.linalg.norm(normal, axis=1, keepdims=True)
            alpha = shape_factors(axes)
            along = 2 / (2 - alpha) * rotation.apply(flow, inverse=True)
            # The length of the tangential part.
            speed = np.linalg.norm(np.cross(normal, along), axis=1)
            turned = (rotation.apply(vectors) for vectors in (normal, axes * unit))
            error = np.abs(alpha.sum() - 2)
            samples.append((1 - speed**2, *turned, flow, error))
        u, a, pos, flows, errors = stacked(samples)
        limits = {"error of the sum of shape factors": (errors, 1e-10)}
        return Solution(u[:, None, :, None], a, limits, pos=pos, scalars=flows)


def shape_factors(axes: Doubles) -> Doubles:
    r"""Return the integrals :math:`\alpha_i` of an ellipsoid of semi-axes ``[3]``.

    They add up to 2, and are :math:`\frac23 abc R_D(a_j^2, a_k^2, a_i^2)`, with
    Carlson's integral.
    """
    x, y, z = axes**2
    integrals = elliprd([y, z, x], [z, x, y], [x, y, z])
    return np.asarray(2 / 3 * axes.prod() * integrals)


def graded(sphere: Doubles, place: Doubles, ratio: float) -> Doubles:
    """Move points of the unit sphere towards a place on it.

    The map is conformal, so that triangles keep their angles: a scaling by the root of
    ``ratio`` in the stereographic projection from the place.

    Args:
        sphere: Points ``[n, 3]``.
        place: The place ``[3]``.
        ratio: Spacing of points on the opposite side over that at the place.
    """
    scale, height = np.sqrt(ratio), (sphere @ place)[:, None]
    near, far = scale * (1 + height), (1 - height) / scale
    moved = 2 * (sphere - height * place) + (near - far) * place
    return np.asarray(moved / (near + far))


def geodesic_sphere(parts: int) -> tuple[Doubles, Indices]:
    """Return a geodesic sphere: an icosahedron with sides divided into ``parts``.

    Returns:
        Points of the unit sphere ``[10 parts^2 + 2, 3]``, and the corners of triangles
        ``[20 parts^2, 3]``, counterclockwise from outside.
    """
    golden = (1 + np.sqrt(5)) / 2
    plane = np.array([[0.0, i, j * golden] for i in (-1, 1) for j in (-1, 1)])
    corners = np.concatenate([np.roll(plane, k, axis=1) for k in range(3)])
    joined = np.isclose(cdist(corners, corners), 2)
    i, j = (index.ravel() for index in np.indices((parts + 1, parts + 1)))
    inside = np.stack([i, j, parts - i - j], axis=1)[i + j <= parts]
    number = {(a, b): k for k, (a, b, _) in enumerate(inside.tolist())}
    small = [
        [number[a + p, b + q] for p, q in shifts]
        for a, b in number
        for shifts in (((0, 0), (1, 0), (0, 1)), ((1, 1), (0, 1), (1, 0)))
        if all((a + p, b + q) in number for p, q in shifts)
    ]
    weights, triangles = list[Indices](), list[Indices]()
    for face in map(list, combinations(range(12), 3)):
        if not joined[np.ix_(face, face)][np.triu_indices(3, 1)].all():
            continue
        if np.linalg.det(corners[face]) < 0:
            face.reverse()
        triangles.append(np.array(small) + len(weights) * len(inside))
        weights.append(np.zeros((len(inside), 12), np.int64))
        weights[-1][:, face] = inside
    # Integers, so that faces agree exactly on shared points.
    unique, shared = np.unique(np.concatenate(weights), axis=0, return_inverse=True)
    points = unique @ corners
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points, shared.reshape(-1)[np.concatenate(triangles)]
