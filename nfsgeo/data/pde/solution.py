"""What a solver returns for a batch of samples, and the checks it passes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["Solution", "check_below", "check_finite", "spectral_tail"]


@dataclass(frozen=True)
class Solution:
    """A solved batch, float64, checked.

    Attributes:
        u: Records ``[B, T, *S, C]``.
        a: Initial condition or coefficient ``[B, *S, C_a]``.
        dt: Step that each sample was solved with ``[B]``, 0 where there is no time.
    """

    u: Tensor
    a: Tensor
    dt: Tensor


def check_finite(u: Tensor, indices: Sequence[int], name: str) -> None:
    """Refuse records ``[B, ...]`` that hold a value which is not finite.

    Raises:
        UserError: It names the first such sample.
    """
    bad = ~torch.isfinite(u).flatten(1).all(dim=1)
    if bool(bad.any()):
        raise UserError(
            f"{name} sample {indices[int(bad.nonzero()[0])]} that became infinite",
            "finite values",
            "raise the resolution or use smaller fields",
        )


def check_below(
    values: Tensor, limit: float, indices: Sequence[int], *, name: str, quantity: str
) -> None:
    """Refuse samples whose checked quantity ``values`` ``[B]`` passes ``limit``.

    Raises:
        UserError: It names the worst sample.
    """
    worst = int(values.nan_to_num(torch.inf).argmax())
    value = float(values[worst])
    if not value <= limit:
        raise UserError(
            f"{name} sample {indices[worst]} with {quantity} {value:.2g}",
            f"at most {limit:g}",
            "raise the resolution or use smoother fields",
        )


def spectral_tail(u: Tensor, dim: int) -> Tensor:
    """Share of the variance in the outer tenth of the modes that a 2/3 mask keeps.

    An unresolved field piles up there; the share is about the square of its relative
    error.

    Args:
        u: Records ``[B, T, *S]`` on a periodic grid.
        dim: Number of spatial axes, all of one length.

    Returns:
        The largest share over 16 records or more, ``[B]``.
    """
    n = u.shape[-1]
    axes = tuple(range(-dim, 0))
    # Fronts live for many records: some of them, the last included, show a pile-up.
    u = u.flip(1)[:, :: max(1, u.shape[1] // 16)]
    power = torch.view_as_real(torch.fft.rfftn(u, dim=axes)).square().sum(dim=-1)
    k = torch.fft.fftfreq(n, 1 / n, device=u.device).abs()
    grid = torch.meshgrid([k] * (dim - 1) + [k[: n // 2 + 1]], indexing="ij")
    largest = torch.stack(grid).amax(dim=0)
    total = (power * (largest > 0)).sum(dim=axes)
    outer = (power * (largest > 0.9 * ((n - 1) // 3))).sum(dim=axes)
    return (outer / total.clamp_min(torch.finfo(u.dtype).tiny)).amax(dim=1)
