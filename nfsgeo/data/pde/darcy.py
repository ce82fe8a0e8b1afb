"""Steady flow through a porous square or cube."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from scipy.fft import dstn, idstn
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.pde.random_fields import neumann_field
from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver, stacked
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["Darcy", "Darcy3D", "solve_pressure"]


ITERATIONS = 500


class Darcy(Solver):
    r"""Pressure in a porous square for a given permeability.

    .. math:: -\nabla\cdot(a\nabla u) = 1 \text{ on } (0,1)^2, \quad u = 0
        \text{ on the boundary}

    The permeability comes from a Gaussian field with Neumann conditions, its standard
    deviation :math:`\tau(\pi^2|k|^2+\tau^2)^{-1}` for mode k, :math:`\tau=3`, without
    the constant mode. It is 12 where the field is not negative and 3 elsewhere, or 12
    and 4, or the field's exponential. Cell-centred finite volumes, harmonic means on
    faces. All of it is computed on the CPU.

    State ``[B, N, N]``: u at the cell centres, which leave out the boundary. Second
    order where ``a`` is smooth, about first where it jumps. Good values: 256 cells an
    axis.

    Source: NFS paper, section "Data Generation", which names neither f nor the field's
    covariance nor the two levels; these are FNO's (Li et al., 2021, appendix A.3.2).
    """

    coefficient: Literal["12/3", "12/4", "lognormal"] = Field(
        default="12/3", description="levels of a, or lognormal"
    )

    name = "darcy"
    title = "-div(a grad u) = 1 on the unit square, u = 0 on the boundary"
    resolution: ClassVar[int] = 256
    static_names = ("a",)
    method = (
        "cell-centred finite volumes, harmonic face values; conjugate gradients, "
        "DST-II preconditioner, tolerance 1e-10; float64"
    )
    # Higher modes hold 5e-5 of the field's variance.
    cutoff: ClassVar[int] = 128

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of the cell centres."""
        return ((np.arange(resolution) + 0.5) / resolution,) * self.domain.dim

    def permeability(self, rngs: Rngs, resolution: int) -> Tensor:
        """Draw coefficients ``[B, N, N]`` or ``[B, N, N, N]``."""
        sizes = {"dim": self.domain.dim, "resolution": resolution}
        field = neumann_field(rngs, cutoff=self.cutoff, tau=3.0, **sizes)
        if self.coefficient == "lognormal":
            return field.exp()
        high, low = map(float, self.coefficient.split("/"))
        return torch.where(field >= 0, high, low).to(field.dtype)

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        a = self.permeability(rngs, resolution)
        samples = (solve_pressure(one, np.ones_like(one)) for one in a.numpy())
        u, residuals = stacked(samples)
        limits = {
            "relative residual": (residuals, 1e-8),
            "negative pressure": (-u.flatten(1).amin(dim=1), 0.0),
        }
        return Solution(u[:, None, ..., None], a[..., None], limits)


class Darcy3D(Darcy):
    """Pressure in a porous cube, as in the square; the paper has no such set.

    State ``[B, N, N, N]``. Good values: 64 cells an axis.
    """

    name = "darcy-3d"
    title = "-div(a grad u) = 1 on the unit cube, u = 0 on the boundary"
    domain: ClassVar[Domain] = Domain.unit(3, periodic=False)
    resolution: ClassVar[int] = 64
    # Higher modes hold 2 % of the field's variance.
    cutoff: ClassVar[int] = 32
    samples = 240


def solve_pressure(a: Doubles, f: Doubles) -> tuple[Doubles, float]:
    r"""Solve :math:`-\nabla\cdot(a\nabla u) = f`, u = 0 on the boundary.

    Conjugate gradients, preconditioned by the exact inverse for a constant ``a``, a
    sine transform. All are ``[N, N]`` or ``[N, N, N]`` at the cell centres of the unit
    square or cube, ``a`` positive; with u comes the residual's L2 norm relative to that
    of ``f``.

    Raises:
        UserError: No convergence in 500 iterations.
    """
    n, matrix = len(a), _operator(a)
    along = 2 * n**2 * (1 - np.cos(np.pi * np.arange(1, n + 1) / n))
    eigenvalues = sum(np.meshgrid(*[along] * a.ndim, indexing="ij"))

    def inverse(r: Doubles) -> Doubles:
        modes = dstn(r.reshape(a.shape), norm="ortho") / eigenvalues
        return np.asarray(idstn(modes, norm="ortho")).ravel()

    nearly = LinearOperator(matrix.shape, inverse, dtype=np.float64)
    right = f.ravel()
    u, failed = cg(matrix, right, rtol=1e-10, maxiter=ITERATIONS, M=nearly)
    if failed:
        raise UserError(
            f"permeability from {a.min():.3g} to {a.max():.3g}",
            f"convergence in {ITERATIONS} iterations",
            "lower its contrast",
        )
    residual = np.linalg.norm(matrix @ u - right) / np.linalg.norm(right)
    return u.reshape(a.shape), float(residual)


def _operator(a: Doubles) -> csr_array:
    """Return the matrix of the left side, on cells in row-major order.

    The coefficient of a face is the harmonic mean of both cells, and at the boundary
    twice that of the cell.
    """
    n, diagonal = len(a), np.zeros_like(a)
    parts: dict[int, Doubles] = {}
    for axis in range(a.ndim):
        half = np.moveaxis(0.5 / a, axis, 0) / n**2
        half = np.concatenate([0 * half[:1], half, 0 * half[:1]])
        face = 1 / (half[:-1] + half[1:])
        diagonal += np.moveaxis(face[:-1] + face[1:], 0, axis)
        face[-1] = 0  # the last cell has none after it
        offset = n ** (a.ndim - 1 - axis)
        after = -np.moveaxis(face[1:], 0, axis).ravel()[:-offset]
        parts |= {offset: after, -offset: after}
    parts[0] = diagonal.ravel()
    return diags_array([*parts.values()], offsets=[*parts], format="csr")
