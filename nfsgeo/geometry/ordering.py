"""Points in an order in which neighbours are near in memory too."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.geometry.domain import Domain

__all__ = ["order_if_scattered", "spatial_order"]

# A place on the curve is a number of so many bits.
BITS = 62
# Their order is worth 2 percent up to 65,536 points, and a third at a million; where
# between these it begins to pay was not measured.
MANY = 1 << 17
# Points are scattered if each is so many spacings from the next, on average: those of
# a grid, row by row, are one.
SCATTERED = 8


def spatial_order(pos: Tensor, domain: Domain, batch: Tensor | None = None) -> Tensor:
    """The points along a Z-order curve, sample by sample.

    Sums over the neighbours of very many points take less time in this order than in
    none, since sources of targets that are near are still in the cache: a third less
    for a million points, hardly any less for some ten thousand (docs/performance.md).
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


def order_if_scattered(
    pos: Tensor, domain: Domain, batch: Tensor | None = None
) -> Tensor | None:
    """The spatial order of very many points that are not near each other in memory.

    Args:
        pos: Points ``[n, d]``.
        domain: The box.
        batch: Sample of each point ``[n]``, sorted; none for one sample.

    Returns:
        As :func:`spatial_order`; None for points that are in some such order already,
        and for those of which a cache holds all.
    """
    num_samples = 1 if batch is None or not len(batch) else int(batch[-1]) + 1
    if len(pos) < MANY * num_samples:
        return None
    pos = pos.detach()
    step = domain.displacement(pos[:-1].double(), pos[1:].double()).norm(dim=1).mean()
    spacing = (domain.volume * num_samples / len(pos)) ** (1 / domain.intrinsic_dim)
    if step <= SCATTERED * spacing:
        return None
    return spatial_order(pos, domain, batch)
