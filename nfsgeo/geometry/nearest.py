"""The nearest sources of a point, and what a point takes that few of them can see.

In a domain with walls only those sources are neighbours of a target that none
hides from it. One that sees fewer than are wanted has these alone. One that sees none
takes the nearest source of the nearest target that it sees, and so on around corners.
One in an obstacle, or closed off from all sources, has none, which -1 marks.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nfsgeo.geometry.query import RadiusQuery
from nfsgeo.geometry.search_scipy import build_tree

__all__ = ["nearest_neighbours"]

# Of points as far, those beyond the last neighbour that are looked at, and the digits
# to which distances count as equal.
TIES, DIGITS = 8, 9
# Of those wanted: as many are looked at for ones that are not hidden.
MOST = 16
# Targets that are looked at together.
TARGETS = 1 << 16


def nearest_neighbours(query: RadiusQuery, num: int) -> Tensor:
    """The ``num`` nearest sources of the same sample for each target, nearest first.

    Of several as near, those whose displacement comes first: the order of the points
    does not matter.

    Args:
        query: Sources and targets, on the CPU.
        num: How many, at most as many as the smallest sample has.

    Returns:
        Sources of each target ``[m, num]``, int64, those that it sees first and -1 in
        place of others.
    """
    source, target = query.local(query.source), query.local(query.target)
    result = torch.full((target.size(0), num), -1)
    walls = query.domain.walls is not None
    inside = query.domain.contains(query.domain.wrap(query.target)) if walls else None
    for these, here in query.samples():
        points = source[these]
        tree = build_tree(query, points)
        for start in range(here.start, here.stop, TARGETS):
            some = torch.arange(start, min(start + TARGETS, here.stop))
            if inside is not None:
                some = some[inside[some]]
            size = num + TIES
            while len(some):
                wanted = list(range(1, 1 + min(size, len(points))))
                found = tree.query(target[some].numpy(), wanted)[1]
                candidate = torch.from_numpy(found) + these.start
                order = _nearest_first(query, some, candidate)
                if inside is None:
                    result[some] = candidate.gather(1, order[:, :num])
                    break
                chosen = _seen(query, some, candidate.gather(1, order), num)
                result[some] = chosen
                # Few may do after a while, but none will not.
                least = -1 if size < MOST * num else 0
                left = chosen[:, least] < 0
                some, size = some[left & (size < len(points))], 4 * size
    return _around_corners(query, result) if walls else result


def _seen(query: RadiusQuery, targets: Tensor, sources: Tensor, num: int) -> Tensor:
    """The first ``num`` of the ``sources [m, k]`` that each target sees, then -1."""
    asking = targets[:, None].expand_as(sources)
    seen = query.visible(sources.flatten(), asking.flatten()).view_as(sources)
    order = seen.int().argsort(dim=1, descending=True, stable=True)[:, :num]
    return sources.gather(1, order).masked_fill(~seen.gather(1, order), -1)


def _around_corners(query: RadiusQuery, near: Tensor) -> Tensor:
    """Neighbours ``[m, num]``, where targets that see none take those of others."""
    known, left = ((near[:, 0] >= 0) == wanted for wanted in (True, False))
    left &= query.domain.contains(query.domain.wrap(query.target))
    if not (known.any() and left.any()):
        return near
    between = replace(
        query,
        source=query.target[known],
        source_batch=query.target_batch[known],
        target=query.target[left],
        target_batch=query.target_batch[left],
    )
    by = nearest_neighbours(between, 1)[:, 0]
    through = near[known][by, 0].masked_fill(by < 0, -1)
    return near.index_put((left.nonzero().squeeze(1), torch.tensor(0)), through)


def _nearest_first(query: RadiusQuery, targets: Tensor, candidate: Tensor) -> Tensor:
    """The order of the candidates ``[m, k]`` of each target."""
    away = query.domain.displacement(
        query.target[targets, None].expand(*candidate.shape, -1),
        query.source[candidate],
    )
    distance = away.norm(dim=2)
    unit = 10.0**-DIGITS * distance[:, -1:]
    keys = torch.cat([distance[..., None], away], dim=2) / unit[..., None]
    order = torch.arange(candidate.size(1)).expand(len(candidate), -1)
    for key in keys.round().unbind(2)[::-1]:
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    return order
