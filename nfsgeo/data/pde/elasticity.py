"""Stress in a plate with a random hole."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import shapely
from pydantic import Field

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver, stacked

__all__ = ["Elasticity", "hole_radius"]

Radius = Callable[[Doubles], Doubles]
# Corners of the polygon from which distances are measured.
CORNERS = 1024


class Elasticity(Solver):
    r"""Von Mises stress in a unit square with a hole, clamped below, pulled above.

    .. math:: \nabla\cdot\sigma = 0, \quad
        \sigma = \lambda\,\mathrm{tr}(\varepsilon) I + 2\mu\varepsilon, \quad
        \varepsilon = (\nabla u + \nabla u^T) / 2

    in plane stress, with :math:`u = 0` at y = 0, :math:`\sigma n = (0, 1)` at y = 1 and
    :math:`\sigma n = 0` on the other sides and on the hole. Stresses are in units of
    the traction, and do not depend on Young's modulus.

    The hole has the radius :math:`r(\theta) = 0.2 + 0.2/(1+e^{g(\theta)})` around the
    centre. g is a periodic Gaussian field with the covariance
    :math:`15^2(-\Delta+3^2)^{-2}`, cut to the modes up to 8.

    Each sample has a mesh of its own, N squares along each side around the hole, cut
    crosswise, with the same triangles in the same order. The coefficient is the
    distance of its points from the hole. The displacement is quadratic on triangles
    with curved sides, half as large as those of the file; the stress is projected to
    piecewise linear functions, of second order. At N = 24, the relative L2 error is
    below 1 %. The two lower corners are left out of that: the exact stress is
    infinite there, that of the file grows with N. All of it is computed on the CPU.

    Source: the benchmark of "Fourier Neural Operator with Learned Deformations for
    PDEs on General Geometries", which has another material (incompressible and
    hyperelastic), and the rougher covariance :math:`4^2(-\Delta+3^2)^{-1}`.
    """

    nu: float = Field(default=0.3, description="Poisson's ratio", gt=0, lt=0.5)

    name = "elasticity"
    title = "div sigma = 0 on a square with a random hole, clamped and pulled"
    resolution: ClassVar[int] = 24
    component_names = ("von_mises",)
    static_names = ("distance",)
    method = (
        "quadratic isoparametric triangles, stress projected to linear ones; sparse "
        "LU; float64"
    )
    needs = ("skfem",)
    cutoff: ClassVar[int] = 8

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Return the number of corners and centres of all squares."""
        return (len(np.unique(self.cells(resolution)["triangle"])),)

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        from nfsgeo.data.pde.finite_elements import reference_mesh

        return {"triangle": reference_mesh(resolution).t.T.astype(np.int64)}

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        from nfsgeo.data.pde import finite_elements as fem

        coarse = fem.reference_mesh(resolution)
        # Refinement keeps the vertices and their numbers.
        num, reference = coarse.nvertices, coarse.refined()
        lame = fem.plane_stress(self.nu)
        angle = 2 * np.pi * np.arange(CORNERS) / CORNERS
        rays = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        samples = []
        for rng in rngs:
            radius = hole_radius(rng, self.cutoff)
            basis = fem.displacements(fem.hole_mesh(reference, radius))
            displacement, residual = fem.pulled(basis, lame)
            stress = fem.stress_at_vertices(basis, displacement, lame)
            points = basis.mesh.p.T[:num]
            rim = shapely.linearrings(0.5 + radius(angle)[:, None] * rays)
            away = shapely.distance(rim, shapely.points(points))
            samples.append((fem.von_mises(stress)[:num], away, points, residual))
        u, a, pos, residuals = stacked(samples)
        limits = {"relative residual": (residuals, 1e-8)}
        return Solution(u[:, None, :, None], a[..., None], limits, pos=pos)


def hole_radius(rng: np.random.Generator, cutoff: int) -> Radius:
    """Draw the radius of a hole, a function of the angle ``[n]`` with few modes."""
    cosines, sines = rng.standard_normal((2, cutoff + 1))
    k = np.arange(cutoff + 1)
    # The squares of cos and sin integrate to pi over the circle, that of 1 to 2 pi.
    std = 15 / (k**2 + 9) / np.sqrt(np.where(k, 1, 2) * np.pi)

    def radius(angle: Doubles) -> Doubles:
        phase = np.multiply.outer(angle, k)
        g = np.cos(phase) @ (std * cosines) + np.sin(phase) @ (std * sines)
        return np.asarray(0.2 + 0.2 / (1 + np.exp(g)))

    return radius
