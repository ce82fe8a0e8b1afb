"""Pseudo-spectral solvers on the torus with exponential time stepping."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nfsgeo.data.pde.solver import Device, Limits, Rngs, Solution, Solver
from nfsgeo.geometry import Domain

__all__ = [
    "ETDRK4",
    "GUARD",
    "FourierGrid",
    "PeriodicSolver",
    "flush_denormals",
    "spectral_tail",
]

GUARD = 2.0
HALVINGS = 4
CONTOUR_POINTS = 64


class FourierGrid:
    r"""Equispaced points of the unit torus, and the modes of ``rfftn`` at them.

    Attributes:
        num_points: N, on each of the ``dim`` axes.
        wavenumbers: Integer :math:`k_i` of each axis, float64 tensors that broadcast to
            ``[*S[:-1], N // 2 + 1]``.
        k: :math:`2 \pi k_i`, likewise.
        mask: Strict 2/3 mask: whether :math:`|k_i| < N / 3` on every axis.
        k_max: The largest :math:`2 \pi k_i` in the mask.
    """

    def __init__(self, num_points: int, dim: int, device: Device = "cpu") -> None:
        n = self.num_points = num_points
        self._axes = tuple(range(-dim, 0))
        index = torch.arange(n, dtype=torch.float64, device=device)
        signed = torch.where(2 * index < n, index, index - n)
        along = [signed] * (dim - 1) + [index[: n // 2 + 1]]
        self.wavenumbers = torch.meshgrid(along, indexing="ij")
        self.k = tuple(2 * torch.pi * k for k in self.wavenumbers)
        self.mask = 3 * torch.stack(self.wavenumbers).abs().amax(dim=0) < n
        self.k_max = 2 * math.pi * ((n - 1) // 3)

    def forward(self, u: Tensor) -> Tensor:
        """Transform real fields ``[..., *S]`` to modes."""
        return torch.fft.rfftn(u, dim=self._axes)

    def back(self, v: Tensor) -> Tensor:
        """Transform modes to real fields ``[..., *S]``."""
        shape = [self.num_points] * len(self._axes)
        return torch.fft.irfftn(v, s=shape, dim=self._axes)


class ETDRK4:
    r"""Fourth-order exponential Runge-Kutta steps for :math:`v' = Lv + N(v)`.

    Krogstad's scheme (J. Comput. Phys. 203, 2005, "ETDRK4-B"): the weights of Cox and
    Matthews' ETDRK4, with inner stages of a higher order and the same four evaluations.
    The phi functions are averaged over a circle around :math:`L\,dt` (Kassam and
    Trefethen, SIAM J. Sci. Comput. 26, 2005), for a diagonal ``L``. For a complex ``L``
    the averages stay complex: with their real part the scheme would be of first order.

    Args:
        linear: L, real or complex, broadcastable to the state.
        dt: Time step.
        nonlinear: N, a function from a complex state to a complex state.
    """

    def __init__(
        self, linear: Tensor, dt: float, nonlinear: Callable[[Tensor], Tensor]
    ) -> None:
        self.nonlinear = nonlinear
        # All coefficients are complex, since mixed products are slow in torch.
        z = linear.to(torch.complex128) * dt
        phi1_half, phi2_half, _ = _phi_functions(z / 2)
        phi1, phi2, phi3 = _phi_functions(z)
        self.full, self.half = torch.exp(z), torch.exp(z / 2)
        self.a0 = dt / 2 * phi1_half
        self.b0, self.b1 = dt * (phi1_half / 2 - phi2_half), dt * phi2_half
        self.c0, self.c1 = dt * (phi1 - 2 * phi2), 2 * dt * phi2
        self.first = dt * (phi1 - 3 * phi2 + 4 * phi3)
        self.middle = dt * (2 * phi2 - 4 * phi3)
        self.last = dt * (4 * phi3 - phi2)

    def step(self, v: Tensor) -> Tensor:
        """Return the state one ``dt`` later."""
        v_half, v_full = self.half * v, self.full * v
        n0 = self.nonlinear(v)
        a = torch.addcmul(v_half, self.a0, n0)
        na = self.nonlinear(a)
        b = torch.addcmul(v_half, self.b0, n0).addcmul_(self.b1, na)
        nb = self.nonlinear(b)
        c = torch.addcmul(v_full, self.c0, n0).addcmul_(self.c1, nb)
        nc = self.nonlinear(c)
        out = v_full.addcmul_(self.first, n0).addcmul_(self.middle, na.add_(nb))
        return out.addcmul_(self.last, nc)


def _phi_functions(z: Tensor) -> list[Tensor]:
    """Average phi_1, phi_2 and phi_3 over unit circles around ``z``, complex."""
    points = torch.arange(CONTOUR_POINTS, dtype=torch.float64) + 0.5
    angle = points * (2 * torch.pi / CONTOUR_POINTS)
    sums = [torch.zeros_like(z) for _ in range(3)]
    for root in torch.polar(torch.ones_like(angle), angle).tolist():
        s = z + root
        phi = torch.exp(s)
        for order, total in enumerate(sums):
            phi = (phi - 1 / math.factorial(order)) / s
            total += phi / CONTOUR_POINTS
    if not z.imag.any():
        for total in sums:
            total.imag.zero_()
    return sums


def spectral_tail(u: Tensor, grid: FourierGrid) -> Tensor:
    """Return the fraction of the variance in the outer tenth of the resolved modes.

    The variance of an unresolved field accumulates there. The fraction is about the
    square of the relative error.

    Args:
        u: Time steps ``[B, T, *S]``.
        grid: Grid of the field, with its 2/3 mask.

    Returns:
        The largest fraction over at least 16 of the time steps ``[B]``.
    """
    # Fronts live for many time steps, so that a subset with the last one suffices.
    modes = grid.forward(u.flip(1)[:, :: max(1, u.shape[1] // 16)])
    power = torch.view_as_real(modes).square().sum(dim=-1)
    largest = torch.stack(grid.wavenumbers).abs().amax(dim=0)
    outer = 0.9 * ((grid.num_points - 1) // 3)
    total, tail = (
        (power * (largest > least)).flatten(2).sum(dim=2) for least in (0, outer)
    )
    return (tail / total.clamp_min(torch.finfo(u.dtype).tiny)).amax(dim=1)


class PeriodicSolver(Solver):
    """Base class of equations on the unit torus, integrated by ETDRK4."""

    domain: ClassVar[Domain] = Domain.unit(2)
    max_tail: ClassVar[float]  # limit of `spectral_tail`
    method: ClassVar[str] = (
        "ETDRK4 (Krogstad), contour-averaged phi functions; Fourier, strict 2/3 mask; "
        "float64"
    )

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        return (np.arange(resolution) / resolution,) * self.domain.dim

    def coarsest(self) -> int:
        """Return the smallest number of points on an axis; coarser grids sample it."""
        return self.resolution

    @abstractmethod
    def longest_step(self, resolution: int) -> float:
        """Return the time step of the integration to try first."""

    @abstractmethod
    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        """Draw initial conditions ``[B, *S]`` on the CPU, float64."""

    @abstractmethod
    def flow(self, grid: FourierGrid) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return L and N of ``v' = L v + N(v)``, where v are the modes of the state."""

    @abstractmethod
    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        """Return a number for each sample ``[B]``, below 2 if ``dt`` is stable."""

    def limits(self, u: Tensor, grid: FourierGrid) -> Limits:
        """Return the limits of the drift of the mean and of unresolved variance."""
        mean = u.flatten(2).mean(dim=2)
        return {
            "drift of the mean": ((mean - mean[:, :1]).abs().amax(dim=1), 1e-12),
            "fraction of unresolved variance": (spectral_tail(u, grid), self.max_tail),
        }

    def evolve(
        self, start: Tensor, num_steps: int, *, substeps: int, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Integrate the equation.

        Args:
            start: States ``[B, *S]``, float64.
            num_steps: Number of time steps.
            substeps: Steps of the integration in each of them.
            spacing: Time between time steps.

        Returns:
            The states ``[B, 1 + num_steps, *S]``, with ``start`` first, and the guard
            ``[B]``.
        """
        grid = FourierGrid(start.shape[-1], self.domain.dim, start.device)
        linear, nonlinear = self.flow(grid)
        # Masked modes stay zero, and would make the averages less accurate.
        scheme = ETDRK4(linear * grid.mask, spacing / substeps, nonlinear)
        state = grid.forward(start) * grid.mask
        u = start.new_empty(len(start), 1 + num_steps, *start.shape[1:])
        u[:, 0] = start
        for number in range(1, 1 + num_steps):
            for _ in range(substeps):
                state = scheme.step(state)
            u[:, number] = grid.back(state)
        return u, self.guard(u, grid, spacing / substeps)

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        stride = -(-self.coarsest() // resolution)
        n = stride * resolution
        start = self.initial(rngs, n).to(device)
        last, spacing = self.first + num_steps - 1, self.spacing
        substeps = math.ceil(spacing / self.longest_step(n) - 1e-9)
        u, guard = self.evolve(start, last, substeps=substeps, spacing=spacing)
        used = torch.full_like(guard, substeps)
        for _ in range(HALVINGS):
            # Each sample has its own step, so that it does not depend on its batch.
            bad = ~(guard < GUARD)
            if not bool(bad.any()):
                break
            used[bad] *= 2
            substeps *= 2
            u[bad], guard[bad] = self.evolve(
                start[bad], last, substeps=substeps, spacing=spacing
            )
        u = u[:, self.first :]
        limits = {"step guard": (guard, GUARD)}
        limits |= self.limits(u, FourierGrid(n, self.domain.dim, device))
        index = (..., *[slice(None, None, stride)] * self.domain.dim, None)
        return Solution(u[index], start[index], limits, spacing / used)


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Flush denormal numbers to zero in this context, and restore the setting.

    Damped modes decay into denormals, which are a hundred times slower than normal
    numbers. The setting belongs to the calling thread; torch has no getter for it.
    """
    tiny = torch.full((1,), torch.finfo(torch.float64).tiny, dtype=torch.float64)
    was_on = bool(tiny / 2 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_on)
