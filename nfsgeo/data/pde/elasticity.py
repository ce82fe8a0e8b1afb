"""Stress in a plate with a random hole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import shapely
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from nfsgeo.data.pde.random_fields import sample_rng
from nfsgeo.data.pde.solver import Device, Solution, SteadySolver, check_samples
from nfsgeo.geometry import Domain

if TYPE_CHECKING:
    from skfem import MeshTri2

__all__ = ["Elasticity", "hole_radius", "rings"]

Doubles = NDArray[np.float64]
Radius = Callable[[Doubles], Doubles]
# Corners of the polygon that distances are measured from.
CORNERS = 1024


class Elasticity(SteadySolver):
    r"""Von Mises stress in a unit square with a hole, clamped below, pulled above.

    .. math:: \nabla\cdot\sigma = 0, \quad
        \sigma = \lambda\,\mathrm{tr}(\varepsilon) I + 2\mu\varepsilon, \quad
        \varepsilon = (\nabla u + \nabla u^T) / 2

    with :math:`u = 0` at y = 0, :math:`\sigma n = (0, 1)` at y = 1 and
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

    Args:
        plane: ``"stress"`` for a thin plate, ``"strain"`` for a thick one.
        nu: Poisson's ratio, below 0.5.
    """

    plane: Literal["stress", "strain"] = Field(
        default="stress", description="plane stress or strain"
    )
    nu: float = Field(default=0.3, description="Poisson's ratio", gt=0, lt=0.5)

    name: ClassVar[str] = "elasticity"
    title: ClassVar[str] = (
        "div sigma = 0 on a square with a random hole, clamped and pulled"
    )
    dim: ClassVar[int] = 2
    domain: ClassVar[Domain] = Domain.unit(2, periodic=False)
    resolution: ClassVar[int] = 24
    component_names: ClassVar[tuple[str, ...]] = ("von_mises",)
    static_names: ClassVar[tuple[str, ...]] = ("distance",)
    method: ClassVar[Mapping[str, str]] = {
        "space": "quadratic isoparametric triangles, stress projected to linear ones",
        "linear": "sparse LU",
        "precision": "float64",
    }
    units: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("x", "y", "von_mises", "distance"), "1"
    )
    needs: ClassVar[tuple[str, ...]] = ("skfem",)
    cutoff: ClassVar[int] = 8

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Corners and centres of all squares between the sides and the hole."""
        hole = resolution - 2 * rings(resolution)
        corners = (resolution + 1) ** 2 - (hole - 1) ** 2
        return (corners + resolution**2 - hole**2,)

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        return ()

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        from nfsgeo.data.pde.finite_elements import reference_mesh

        mesh = reference_mesh(resolution, rings(resolution))
        return {"triangle": mesh.t.T.astype(np.int64)}

    def meshes(
        self, seed: int, indices: Sequence[int], resolution: int
    ) -> Iterator[tuple[MeshTri2, Radius]]:
        """Mesh that each sample is solved on, its first vertices those of the file.

        Args:
            seed: Of the data set.
            indices: Numbers of the samples.
            resolution: Squares along each side.

        Returns:
            An iterator over the meshes, each with the radius of its hole.
        """
        from nfsgeo.data.pde.finite_elements import hole_mesh, reference_mesh

        # Refining keeps the vertices and their numbers.
        fine = reference_mesh(resolution, rings(resolution)).refined()
        for index in indices:
            radius = hole_radius(sample_rng(seed, self.name, index), self.cutoff)
            yield hole_mesh(fine, radius), radius

    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        """Distance from the hole at the points ``[B, P]``."""
        (num,) = self.shape(resolution)
        angle = 2 * np.pi * np.arange(CORNERS) / CORNERS
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        found = [
            shapely.distance(
                shapely.linearrings(0.5 + radius(angle)[:, None] * circle),
                shapely.points(mesh.p.T[:num]),
            )
            for mesh, radius in self.meshes(seed, indices, resolution)
        ]
        return torch.from_numpy(np.stack(found))

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int = 1,
        device: Device = "cpu",
    ) -> Solution:
        self.times(num_steps)
        from nfsgeo.data.pde import finite_elements as fem

        (num,) = self.shape(resolution)
        lame = fem.material(self.plane, self.nu)
        nu_out = self.nu if self.plane == "strain" else 0.0
        points, stresses, residuals = [], [], []
        for mesh, _ in self.meshes(seed, indices, resolution):
            basis = fem.displacements(mesh)
            displacement, residual = fem.pulled(basis, lame)
            stress = fem.stress_at_vertices(basis, displacement, lame)
            points.append(mesh.p.T[:num])
            stresses.append(fem.von_mises(stress, nu_out)[:num])
            residuals.append(residual)
        u, pos = (torch.from_numpy(np.stack(each)) for each in (stresses, points))
        limits = {"relative residual": (torch.tensor(residuals), 1e-8)}
        check_samples(u, limits, indices, self.name)
        a = self.initial(seed, indices, resolution)
        steps = torch.zeros(len(u))
        return Solution(u=u[:, None, :, None], a=a[..., None], dt=steps, pos=pos)


def rings(resolution: int) -> int:
    """Rings of squares around the hole: as many as make them about square."""
    return (resolution + 2) // 4


def hole_radius(rng: np.random.Generator, cutoff: int) -> Radius:
    """Radius of a random hole as a function of the angle ``[n]``.

    Args:
        rng: Random numbers of the sample.
        cutoff: Highest mode.
    """
    cosines, sines = rng.standard_normal((2, cutoff + 1))
    k = np.arange(cutoff + 1)
    # Of cos and sin, whose squares integrate to pi over the circle, and of 1.
    std = 15 / (k**2 + 9) / np.sqrt(np.where(k, 1, 2) * np.pi)

    def radius(angle: Doubles) -> Doubles:
        phase = np.multiply.outer(angle, k)
        g = np.cos(phase) @ (std * cosines) + np.sin(phase) @ (std * sines)
        return np.asarray(0.2 + 0.2 / (1 + np.exp(g)))

    return radius
