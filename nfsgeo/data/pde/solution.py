"""What a solver returns for a batch of samples, and what it must pass first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = [
    "GUARD",
    "Solution",
    "check_samples",
    "solve_guarded",
    "spectral_tail",
]

GUARD = 2.0
_HALVINGS = 4


@dataclass(frozen=True)
class Solution:
    """A solved batch, float64, checked.

    Attributes:
        u: Time steps ``[B, T, *S, C]``.
        a: Initial condition or coefficient ``[B, *S, C_a]``.
        dt: Step that each sample was solved with ``[B]``, 0 where there is no time.
        pos: Points of each sample ``[B, P, d]``, where it has a mesh of its own;
            ``*S`` is ``P`` then.
    """

    u: Tensor
    a: Tensor
    dt: Tensor
    pos: Tensor | None = None


def solve_guarded(
    run: Callable[[Tensor, float], tuple[Tensor, Tensor]],
    initial: Tensor,
    dt: float,
    *,
    name: str,
) -> tuple[Tensor, Tensor]:
    """Solve a batch, halving the step of each sample whose guard asks for it.

    The decision is a sample's own, so the result does not depend on its batch.

    Args:
        run: (initial states ``[B, ...]``, dt) to (time steps ``[B, T, ...]``, guard
            ``[B]``). The guard number must stay below 2; a step is stable there.
        initial: Initial states ``[B, ...]``.
        dt: First step to try.
        name: The equation, for the message.

    Returns:
        Time steps ``[B, T, ...]`` and the step used for each sample ``[B]``.

    Raises:
        UserError: A sample's guard still fails after four halvings.
    """
    u, guard = run(initial, dt)
    steps = torch.full_like(guard, dt)
    for _ in range(_HALVINGS):
        bad = ~(guard < GUARD)
        if not bad.any():
            return u, steps
        dt /= 2
        u[bad], guard[bad] = run(initial[bad], dt)
        steps[bad] = dt
    if bool((guard < GUARD).all()):
        return u, steps
    worst = float(guard.nan_to_num(torch.inf).max())
    raise UserError(
        f"{name} with step guard {worst:.3g} at dt={dt:.3g}",
        f"a guard below {GUARD:g}",
        "use weaker forcing, smaller fields or more viscosity",
    )


def check_samples(
    u: Tensor,
    limits: Mapping[str, tuple[Tensor, float]],
    indices: Sequence[int],
    name: str,
) -> None:
    """Refuse a batch with a value that is not finite or a quantity past its limit.

    Args:
        u: Time steps ``[B, ...]``.
        limits: Quantity to its value in each sample ``[B]`` and its upper limit.
        indices: Sample numbers, for the message.
        name: The equation, for the message.

    Raises:
        UserError: It names the first infinite sample, or the worst one.
    """
    bad = ~torch.isfinite(u).flatten(1).all(dim=1)
    if bool(bad.any()):
        raise UserError(
            f"{name} sample {indices[int(bad.nonzero()[0])]} that became infinite",
            "finite values",
            "raise the resolution or use smoother fields",
        )
    for quantity, (values, limit) in limits.items():
        worst = int(values.nan_to_num(torch.inf).argmax())
        value = float(values[worst])
        if not value <= limit:
            raise UserError(
                f"{name} sample {indices[worst]} with {quantity} {value:.2g}",
                f"at most {limit:g}",
                "raise the resolution or use smoother fields",
            )


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
