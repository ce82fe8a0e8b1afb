"""Exponential time differencing: stiff linear part exact, the rest by Runge-Kutta."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = [
    "ETDRK4",
    "dealias_mask",
    "flush_denormals",
    "quadratic_flow",
    "spectral_tail",
    "whole_steps",
]

_CONTOUR_POINTS = 64


def dealias_mask(num_points: int, *, half: bool) -> Tensor:
    """Strict 2/3 mask of one axis: True where ``|k| < num_points / 3``.

    Args:
        num_points: Points on the axis.
        half: Layout of ``rfft`` (True) or of ``fft`` (False).
    """
    k = torch.arange(num_points)
    k = torch.minimum(k, num_points - k)
    return (3 * k < num_points)[: num_points // 2 + 1 if half else num_points]


class ETDRK4:
    r"""Fourth-order exponential Runge-Kutta steps for :math:`v' = Lv + N(v)`.

    Krogstad's scheme (J. Comput. Phys. 203, 2005, "ETDRK4-B"): the weights of Cox and
    Matthews' ETDRK4, inner stages of a higher order, the same four evaluations. The
    phi functions are averaged over a circle around :math:`L\,dt` (Kassam and Trefethen,
    SIAM J. Sci. Comput. 26, 2005), for ``L`` diagonal. For a complex ``L`` the averages
    stay complex: their real part alone would make the scheme first order.

    Args:
        linear: ``L``, real or complex, broadcastable to the state.
        dt: Step.
        nonlinear: ``N``, a complex state to a complex state.
    """

    def __init__(
        self, linear: Tensor, dt: float, nonlinear: Callable[[Tensor], Tensor]
    ) -> None:
        self.dt, self.nonlinear = dt, nonlinear
        # All coefficients are complex like the state: mixed products are slow in torch.
        z = linear.to(torch.complex128) * dt
        real = not linear.is_complex()
        phi1_half, phi2_half, _ = _phi_functions(z / 2, real=real)
        phi1, phi2, phi3 = _phi_functions(z, real=real)
        self.full, self.half = torch.exp(z), torch.exp(z / 2)
        self.a0 = dt / 2 * phi1_half
        self.b0, self.b1 = dt * (phi1_half / 2 - phi2_half), dt * phi2_half
        self.c0, self.c1 = dt * (phi1 - 2 * phi2), 2 * dt * phi2
        self.first = dt * (phi1 - 3 * phi2 + 4 * phi3)
        self.middle = dt * (2 * phi2 - 4 * phi3)
        self.last = dt * (4 * phi3 - phi2)

    def step(self, v: Tensor) -> Tensor:
        """The state one ``dt`` later."""
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


def _phi_functions(z: Tensor, *, real: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Averages of phi_1, phi_2 and phi_3 over unit circles around ``z``, complex."""
    points = torch.arange(_CONTOUR_POINTS, dtype=torch.float64) + 0.5
    angle = points * (2 * torch.pi / _CONTOUR_POINTS)
    roots = torch.polar(torch.ones_like(angle), angle).tolist()
    sums = [torch.zeros_like(z) for _ in range(3)]
    for root in roots:
        s = z + root
        phi = torch.exp(s)
        for order in range(3):
            phi = (phi - 1 / math.factorial(order)) / s
            sums[order] += phi
    for total in sums:
        total /= _CONTOUR_POINTS
        if real:
            total.imag.zero_()
    return sums[0], sums[1], sums[2]


def whole_steps(spacing: float, dt: float) -> tuple[int, float]:
    """The fewest equal steps over ``spacing`` of at most ``dt`` each, and their length.

    Args:
        spacing: Time from one stored time step to the next.
        dt: Longest step allowed.
    """
    number = math.ceil(spacing / dt - 1e-9)
    return number, spacing / number


def quadratic_flow(
    u: Tensor,
    num_steps: int,
    *,
    linear: Tensor,
    flux: Tensor,
    dt: float,
    spacing: float,
) -> Tensor:
    """Time steps of ``v' = linear * v + flux * F(u^2)``, ``v = F(u)``, F the ``rfft``.

    Args:
        u: Start ``[B, N]``, periodic, which is the first time step too.
        num_steps: Number of time steps to return, ``spacing`` apart.
        linear: L for each mode ``[N // 2 + 1]``.
        flux: Multiplier of the square for each mode; the 2/3 mask is applied here.
        dt: Step of the integration, which divides ``spacing``.
        spacing: Time from one that is returned to the next.

    Returns:
        ``[B, num_steps, N]``.
    """
    n = u.shape[-1]
    mask = dealias_mask(n, half=True).to(u.device)
    flux = flux.to(u.device) * mask

    def nonlinear(state: Tensor) -> Tensor:
        return flux * torch.fft.rfft(torch.fft.irfft(state, n=n).square_())

    # Masked modes stay zero: what they would do costs accuracy in the averages.
    scheme = ETDRK4(linear.to(u.device) * mask, dt, nonlinear)
    state = torch.fft.rfft(u) * mask
    out = [u]
    for _ in range(1, num_steps):
        for _ in range(round(spacing / dt)):
            state = scheme.step(state)
        out.append(torch.fft.irfft(state, n=n))
    return torch.stack(out, dim=1)


def spectral_tail(u: Tensor, dim: int) -> Tensor:
    """Fraction of the variance in the outer tenth of the modes that a 2/3 mask keeps.

    The variance of an unresolved field piles up there; the fraction is about the square
    of its relative error.

    Args:
        u: Time steps ``[B, T, *S]`` on a periodic grid.
        dim: Number of spatial axes, all of one length.

    Returns:
        The largest fraction over 16 time steps or more, ``[B]``.
    """
    n = u.shape[-1]
    axes = tuple(range(-dim, 0))
    # Fronts live for many time steps: some of them, the last included, show a pile-up.
    u = u.flip(1)[:, :: max(1, u.shape[1] // 16)]
    power = torch.view_as_real(torch.fft.rfftn(u, dim=axes)).square().sum(dim=-1)
    k = torch.fft.fftfreq(n, 1 / n, device=u.device).abs()
    grid = torch.meshgrid([k] * (dim - 1) + [k[: n // 2 + 1]], indexing="ij")
    largest = torch.stack(grid).amax(dim=0)
    total = (power * (largest > 0)).sum(dim=axes)
    outer = (power * (largest > 0.9 * ((n - 1) // 3))).sum(dim=axes)
    return (outer / total.clamp_min(torch.finfo(u.dtype).tiny)).amax(dim=1)


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Flush denormal numbers to zero inside, and restore the setting afterwards.

    Damped modes decay into denormals, which cost a hundred times a normal number. The
    setting belongs to the calling thread; torch has no getter, so it is probed.
    """
    tiny = torch.full((1,), torch.finfo(torch.float64).tiny, dtype=torch.float64)
    was_on = bool((tiny / 2 == 0).all())
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_on)
