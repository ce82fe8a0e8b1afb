"""Radius search by a cell list in plain torch, on any device with float64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "candidates"]

# Cells of the last axis are this many times finer than the radius: neighbouring
# cells of that axis are contiguous in memory, so fine ones cost nothing.
FINER = 4
CELLS_A_POINT = 8
MAX_TARGETS = 1 << 16


def available(device: torch.device) -> bool:
    """Whether this backend searches on ``device``."""
    return device.type in ("cpu", "cuda")


def candidates(query: RadiusQuery) -> Iterator[Candidates]:
    """Pairs (source, target) that may lie within the radius, in bounded pieces."""
    if not (len(query.source) and len(query.target)):
        return
    source, index = query.with_images()
    target, reach = query.local(query.target), query.reach
    corner = torch.minimum(source.amin(0), target.amin(0))
    extent = (torch.maximum(source.amax(0), target.amax(0)) - corner).clamp(min=reach)
    counts = _counts(extent.tolist(), reach, len(source) / query.num_samples)
    cells = torch.tensor(counts, device=source.device)

    def cell(pos: Tensor) -> Tensor:
        place = ((pos - corner) / extent * cells).long()
        return torch.minimum(place, cells - 1)

    def row(batch: Tensor, place: Tensor) -> Tensor:
        for axis, count in enumerate(counts[:-1]):
            batch = batch * count + place[..., axis]
        return batch * counts[-1]

    place = cell(source)
    key, order = (row(query.source_batch[index], place) + place[:, -1]).sort()
    # Where each cell's sources begin among the sorted ones.
    size = torch.bincount(key, minlength=math.prod(counts) * query.num_samples)
    ptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
    index = index[order]
    # The reach exceeds the radius by more than a cell's index is rounded by.
    spans = [
        min(math.ceil(reach * count / length), count - 1)
        for count, length in zip(counts, extent.tolist(), strict=True)
    ]
    around = list(itertools.product(*(range(-n, n + 1) for n in spans[:-1])))
    offset = torch.tensor(around, dtype=torch.int64, device=source.device)
    for begin in range(0, len(target), MAX_TARGETS):
        some = slice(begin, begin + MAX_TARGETS)
        centre = cell(target[some])
        # Runs of cells along the last axis, ``[m, runs]``.
        moved = centre[:, None, :-1] + offset
        inside = ((moved >= 0) & (moved < cells[:-1])).all(2)
        start = row(query.target_batch[some, None], moved.clamp(min=0))
        start = start.clamp(max=len(ptr) - 1 - counts[-1])
        low = (centre[:, -1:] - spans[-1]).clamp(min=0)
        high = (centre[:, -1:] + spans[-1] + 1).clamp(max=counts[-1])
        first = ptr[start + low]
        number = (ptr[start + high] - first).masked_fill(~inside, 0)
        yield from _pairs(query, index, first, number, begin)


def _counts(extent: list[float], reach: float, num_points: float) -> list[int]:
    """Cells of each axis, as wide as the reach or, of many, wider."""
    finer = [1] * (len(extent) - 1) + [FINER]
    counts = [
        max(1, int(f * length / reach)) for f, length in zip(finer, extent, strict=True)
    ]
    while math.prod(counts) > max(1.0, CELLS_A_POINT * num_points):
        most = counts.index(max(counts))
        counts[most] = (counts[most] + 1) // 2
    return counts


def _pairs(
    query: RadiusQuery, index: Tensor, first: Tensor, number: Tensor, begin: int
) -> Iterator[Candidates]:
    """The sources of each target's runs, from the ``first`` on, some at a time."""
    total = number.sum(1).cumsum(0)
    marks = torch.arange(
        query.piece, int(total[-1]) + query.piece, query.piece, device=total.device
    )
    ends = torch.searchsorted(total, marks, right=True).tolist()
    for low, high in itertools.pairwise(sorted({0, *ends})):
        repeats = number[low:high].flatten()
        skipped = repeats.cumsum(0) - repeats
        shift = (first[low:high].flatten() - skipped).repeat_interleave(repeats)
        targets = torch.arange(begin + low, begin + high, device=index.device)
        yield (
            index[shift + torch.arange(len(shift), device=index.device)],
            targets.repeat_interleave(number[low:high].sum(1)),
        )
