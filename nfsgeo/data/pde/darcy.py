"""Steady flow through a porous square."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from nfsgeo.data.pde.random_fields import neumann_field
from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver
from nfsgeo.errors import UserError

__all__ = ["Darcy", "apply_operator", "faces", "solve_pressure"]

_ITERATIONS = 500

Faces = tuple[Tensor, Tensor]


class Darcy(Solver):
    r"""Pressure in a porous square for a given permeability.

    .. math:: -\nabla\cdot(a\nabla u) = 1 \text{ on } (0,1)^2, \quad u = 0
        \text{ on the boundary}

    The permeability comes from a Gaussian field with Neumann conditions, its standard
    deviation :math:`\tau(\pi^2|k|^2+\tau^2)^{-1}` for mode k, :math:`\tau=3`, without
    the constant mode. It is 12 where the field is not negative and 3 elsewhere, or 12
    and 4, or the field's exponential. Cell-centred finite volumes, harmonic means on
    faces.

    State ``[B, N, N]``: u at the cell centres, which leave out the boundary. Second
    order where ``a`` is smooth, about first where it jumps. Good values: 256 cells an
    axis.

    Source: NFS paper, section "Data Generation", which names neither f nor the field's
    covariance nor the two levels; these are FNO's (Li et al., 2021, appendix A.3.2).

    Args:
        coefficient: ``"12/3"``, ``"12/4"`` or ``"lognormal"``.
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
        return ((np.arange(resolution) + 0.5) / resolution,) * 2

    def permeability(self, rngs: Rngs, resolution: int) -> Tensor:
        """Random coefficients ``[B, N, N]`` on the CPU."""
        field = neumann_field(rngs, resolution=resolution, cutoff=self.cutoff, tau=3.0)
        if self.coefficient == "lognormal":
            return field.exp()
        high, low = map(float, self.coefficient.split("/"))
        return torch.where(field >= 0, high, low).to(field.dtype)

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        a = self.permeability(rngs, resolution).to(device)
        u, _ = solve_pressure(a, torch.ones_like(a))
        residual = (apply_operator(faces(a), u) - 1).square().mean(dim=(1, 2)).sqrt()
        limits = {
            "relative residual": (residual, 1e-8),
            "negative pressure": (-u.amin(dim=(1, 2)), 0.0),
        }
        return Solution(u[:, None, ..., None], a[..., None], limits)


def faces(a: Tensor) -> Faces:
    """Conductances of the faces across each axis, ``[B, N + 1, N]``, ``[B, N, N + 1]``.

    The harmonic mean between two cells; on the boundary, half a cell away from the
    centre, twice the cell's own permeability. Scaled by 1/h^2.
    """
    scale = float(a.shape[-1]) ** 2
    between = [
        2 * left * right / (left + right)
        for left, right in ((a[:, :-1], a[:, 1:]), (a[..., :-1], a[..., 1:]))
    ]
    return (
        torch.cat([2 * a[:, :1], between[0], 2 * a[:, -1:]], dim=1) * scale,
        torch.cat([2 * a[..., :1], between[1], 2 * a[..., -1:]], dim=2) * scale,
    )


def apply_operator(conductances: Faces, u: Tensor) -> Tensor:
    r""":math:`-\nabla\cdot(a\nabla u)` with u = 0 on the boundary, ``[B, N, N]``."""
    padded = torch.nn.functional.pad(u, (1, 1, 1, 1))
    across_x = conductances[0] * padded[:, :, 1:-1].diff(dim=1)
    across_y = conductances[1] * padded[:, 1:-1].diff(dim=2)
    return -across_x.diff(dim=1) - across_y.diff(dim=2)


def solve_pressure(
    a: Tensor, f: Tensor, tolerance: float = 1e-10
) -> tuple[Tensor, int]:
    r"""Solve :math:`-\nabla\cdot(a\nabla u) = f`, u = 0 on the boundary.

    Conjugate gradients for the batch at once, preconditioned by the exact inverse for
    a constant ``a`` (a sine transform, DST-II, by matrix products). Each sample stops
    by itself, so it does not depend on its batch.

    Args:
        a: Permeability at the cell centres ``[B, N, N]``, positive.
        f: Source ``[B, N, N]``.
        tolerance: Bound for the residual's L2 norm relative to that of ``f``.

    Returns:
        u ``[B, N, N]`` and the number of iterations.

    Raises:
        UserError: No convergence in 500 iterations.
    """
    n = a.shape[-1]
    conductances = faces(a)
    k = torch.arange(1, n + 1, dtype=a.dtype, device=a.device)
    centres = (torch.arange(n, dtype=a.dtype, device=a.device) + 0.5) / n
    sines = torch.sin(torch.pi * k[:, None] * centres) * (2 / n) ** 0.5
    sines[-1] *= 0.5**0.5
    eigenvalues = 2 * n**2 * (1 - torch.cos(torch.pi * k / n))
    inverse = 1 / (eigenvalues[:, None] + eigenvalues)

    def precondition(r: Tensor) -> Tensor:
        return sines.T @ (inverse * (sines @ r @ sines.T)) @ sines

    def dot(left: Tensor, right: Tensor) -> Tensor:
        return (left * right).sum(dim=(1, 2), keepdim=True)

    u, r = torch.zeros_like(f), f.clone()
    z = precondition(r)
    p, rz = z, dot(r, z)
    goal = tolerance**2 * dot(f, f)
    for iteration in range(_ITERATIONS):
        active = dot(r, r) > goal
        if not bool(active.any()):
            return u, iteration
        q = apply_operator(conductances, p)
        step = torch.where(active, rz / dot(p, q), 0)
        u, r = u + step * p, r - step * q
        z = precondition(r)
        rz_new = torch.where(active, dot(r, z), rz)
        p = z + torch.where(active, rz_new / rz, 0) * p
        rz = rz_new
    raise UserError(
        f"permeability from {float(a.min()):.3g} to {float(a.max()):.3g}",
        f"convergence in {_ITERATIONS} iterations",
        "lower its contrast",
    )
