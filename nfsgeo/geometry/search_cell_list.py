"""Radius search by a cell list in plain torch, on any device with float64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class _Axis:
    """Cells of one axis: how many, and how many to look at on either side."""

    length: float
    periodic: bool
    cells: int
    span: int

    def index(self, coordinate: Tensor) -> Tensor:
        scaled = (coordinate * (self.cells / self.length)).to(torch.int64)
        return scaled.clamp_(0, self.cells - 1)

    def offsets(self) -> range:
        """Offsets that name each cell in reach once."""
        if self.periodic and 2 * self.span + 1 >= self.cells:
            return range(self.cells)
        return range(-self.span, self.span + 1)


def candidates(query: RadiusQuery) -> Iterator[Candidates]:
    """Pairs (source, target) that may lie within the radius, in bounded pieces."""
    num_source, num_target = query.source.size(0), query.target.size(0)
    if num_source == 0 or num_target == 0:
        return
    axes = _axes(query)
    cells = math.prod(axis.cells for axis in axes)
    source = query.local(query.source)
    cell = query.source_batch
    for i, axis in enumerate(axes):
        cell = cell * axis.cells + axis.index(source[:, i])
    cell, order = cell.sort()
    # Where each cell's sources begin among the sorted ones.
    counts = torch.bincount(cell, minlength=cells * query.num_samples)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    for begin in range(0, num_target, MAX_TARGETS):
        piece = slice(begin, begin + MAX_TARGETS)
        starts, ends = _ranges(
            axes, query.local(query.target[piece]), query.target_batch[piece]
        )
        first, size = ptr[starts], ptr[ends] - ptr[starts]
        total = size.sum(1).cumsum(0)
        for low, high in _pieces(total, query.piece):
            repeats = size[low:high].flatten()
            skipped = repeats.cumsum(0) - repeats
            num = int(repeats.sum())
            shift = torch.repeat_interleave(
                first[low:high].flatten() - skipped, repeats, output_size=num
            )
            place = shift + torch.arange(num, device=shift.device)
            target = torch.repeat_interleave(
                torch.arange(begin + low, begin + high, device=shift.device),
                size[low:high].sum(1),
                output_size=num,
            )
            yield Candidates(order[place], target)


def _axes(query: RadiusQuery) -> list[_Axis]:
    """Cells as wide as the reach, or wider: no more of them than ``CELLS_A_POINT``."""
    lengths, reach = query.domain.lengths, query.reach
    finer = [1] * (len(lengths) - 1) + [FINER]
    cells = [
        max(1, math.floor(f * length / reach))
        for f, length in zip(finer, lengths, strict=True)
    ]
    limit = max(1.0, CELLS_A_POINT * query.source.size(0) / query.num_samples)
    while math.prod(cells) > limit:
        most = cells.index(max(cells))
        cells[most] = (cells[most] + 1) // 2
    # The reach exceeds the radius by more than a cell's index is rounded by.
    return [
        _Axis(length, periodic, num, min(math.ceil(reach * num / length), num - 1))
        for length, periodic, num in zip(
            lengths, query.domain.periodic, cells, strict=True
        )
    ]


def _ranges(axes: list[_Axis], target: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """Runs of cells around each target, begin and end ``[m, runs]``.

    Each run lies along the last axis, where cells are contiguous; where it passes
    over the end of a periodic axis it is cut in two. Empty runs have equal ends.
    """
    index = [axis.index(target[:, i]) for i, axis in enumerate(axes)]
    last, centre = axes[-1], index[-1]
    lows = [(centre - last.span).clamp(min=0)]
    highs = [(centre + last.span + 1).clamp(max=last.cells)]
    if last.periodic and 2 * last.span + 1 >= last.cells:
        lows, highs = [torch.zeros_like(centre)], [torch.full_like(centre, last.cells)]
    elif last.periodic:
        over, under = centre + last.span + 1 - last.cells, centre - last.span
        lows += [torch.zeros_like(centre), under.clamp(max=0) + last.cells]
        highs += [over.clamp(min=0), torch.full_like(centre, last.cells)]
    starts, ends = [], []
    for offsets in itertools.product(*(axis.offsets() for axis in axes[:-1])):
        row, inside = batch, torch.ones_like(batch, dtype=torch.bool)
        for axis, centre, offset in zip(axes, index, offsets, strict=False):
            moved = centre + offset
            if axis.periodic:
                moved = moved % axis.cells
            else:
                inside = inside & (moved >= 0) & (moved < axis.cells)
            row = row * axis.cells + moved.clamp(0, axis.cells - 1)
        for low, high in zip(lows, highs, strict=True):
            starts.append(row * last.cells + low)
            ends.append(row * last.cells + torch.where(inside, high, low))
    return torch.stack(starts, dim=1), torch.stack(ends, dim=1)


def _pieces(total: Tensor, most: int) -> Iterator[tuple[int, int]]:
    """Runs of targets with at most ``most`` candidates together, or of one target."""
    low, done, size = 0, 0, total.numel()
    while low < size:
        limit = torch.tensor(done + most, device=total.device)
        high = max(int(torch.searchsorted(total, limit, right=True)), low + 1)
        done = int(total[high - 1])
        yield low, high
        low = high
