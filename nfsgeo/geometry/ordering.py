"""Points in an order in which neighbours are near in memory too."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.geometry.domain import Domain

__all__ = ["spatial_order"]

# A place on the curve is a number of so many bits.
BITS = 62


def spatial_order(pos: Tensor, domain: Domain, batch: Tensor | None = None) -> Tensor:
    """The points along a Z-order curve, sample by sample.

    Sums over the neighbours of a million points that are sorted so take a third less
    time, since sources of targets that are near are still in the cache; for some ten
    thousand points it is hardly any less.
    See "A computer oriented geodetic data base and a new technique in file sequencing"
    (Morton, 1966).

    Args:
        pos: Points ``[n, d]``; those outside the domain count as on its boundary.
        domain: The box.
        batch: Sample of each point ``[n]``, which comes first; none for one sample.

    Returns:
        Indices ``[n]``, int64: ``pos[order]`` are the points in order. Those of one
        place stay as they were.

    Raises:
        ValueError: If a coordinate is not finite, or ``pos`` does not fit the domain.
    """
    if pos.dim() != 2 or pos.size(1) != domain.dim or not pos.isfinite().all():
        raise ValueError(
            f"points of shape {list(pos.shape)}: expected finite coordinates "
            f"[n, {domain.dim}]; check the points or the domain"
        )
    bits = BITS // domain.dim
    lower, lengths = (
        torch.tensor(ends, dtype=torch.float64, device=pos.device)
        for ends in (domain.lower, domain.lengths)
    )
    fraction = ((pos.double() - lower) / lengths).clamp_(0, 1)
    cell = (fraction * 2**bits).long().clamp_(max=2**bits - 1)
    place = torch.zeros_like(cell[:, 0])
    for bit in range(bits):
        for axis, number in enumerate(cell.unbind(1)):
            place |= (number >> bit & 1) << (domain.dim * (bit + 1) - axis - 1)
    order = place.argsort(stable=True)
    return order if batch is None else order[batch[order].argsort(stable=True)]
