"""A validated radius search, in the form that every backend takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.csr import checked_batch, pointers
from nfsgeo.geometry.domain import Domain

__all__ = ["Candidates", "RadiusQuery"]


# Source and target of pairs that may lie within the radius, each ``[e]``.
Candidates = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class RadiusQuery:
    """Two point sets, sample by sample, and a radius.

    Backends look for candidates with :attr:`reach`, a little more than the radius,
    among coordinates that begin at 0 and are wrapped; :meth:`decided` then decides
    each by one formula in float64, so that all backends agree.

    Args:
        domain: The box, with its periodic axes.
        radius: Largest distance of two neighbours.
        source: Source points ``[n, d]`` as given, in float64.
        target: Target points ``[m, d]`` likewise.
        source_batch: Sample of each source ``[n]``, sorted.
        target_batch: Sample of each target ``[m]``, sorted.
        num_samples: Number of samples.
    """

    domain: Domain
    radius: float
    source: Tensor
    target: Tensor
    source_batch: Tensor
    target_batch: Tensor
    num_samples: int

    @classmethod
    def create(
        cls,
        source: Tensor,
        target: Tensor,
        domain: Domain,
        radius: float = 1.0,
        batches: tuple[Tensor | None, Tensor | None] = (None, None),
        device: torch.device | str = "cpu",
    ) -> RadiusQuery:
        """Validate the arguments of a search and put them on ``device``."""
        radius = float(radius)
        if not (math.isfinite(radius) and radius > 0):
            raise UserError(f"radius {radius}", "a number above 0", "raise the radius")
        checked = []
        for name, pos, batch in zip(
            ("source", "target"), (source, target), batches, strict=True
        ):
            if pos.dim() != 2 or pos.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"{name} points of shape {list(pos.shape)} and type {pos.dtype}: "
                    f"expected float32 or float64 [n, {domain.dim}]; check the points"
                )
            # The far end of a periodic axis is its near end.
            domain.check_inside(pos, f"{name} ")
            checked.append(checked_batch(pos, batch, f"{name}_batch").to(device))
        one_alone = (batches[0] is None) != (batches[1] is None)
        if source.device != target.device or one_alone:
            raise ValueError(
                "sources and targets on two devices, or with one batch alone: expected "
                "one device, and the sample of every source and target or of none"
            )
        if domain.dim < domain.normalised.dim:
            # Caps of a sphere are balls in space.
            source, target = (
                domain.normalise(pos, torch.float64) for pos in (source, target)
            )
            radius, domain = domain.normalised_length(radius), domain.normalised
        last = [int(batch[-1]) for batch in checked if len(batch)]
        source, target = (
            pos.detach().to(device, torch.float64) for pos in (source, target)
        )
        num_samples = max(last, default=0) + 1
        return cls(domain, radius, source, target, checked[0], checked[1], num_samples)

    @property
    def reach(self) -> float:
        """The radius, enlarged by what wrapping and shifting may round away."""
        scale = max(map(abs, self.domain.lower + self.domain.upper))
        return self.radius * (1 + 1e-8) + 16 * torch.finfo(torch.float64).eps * scale

    @property
    def piece(self) -> int:
        """How many candidates to hold at a time: what fits caches, or fills a GPU."""
        return 1 << 17 if self.source.device.type == "cpu" else 1 << 22

    def local(self, pos: Tensor) -> Tensor:
        """Coordinates that begin at 0; in ``[0, length)`` on periodic axes."""
        pos = pos - pos.new_tensor(self.domain.lower)
        lengths = pos.new_tensor(self.domain.lengths)
        wrapped = torch.where(pos >= lengths, pos - lengths, pos).clamp(min=0.0)
        periodic = torch.tensor(self.domain.periodic, device=pos.device)
        return torch.where(periodic, wrapped, pos)

    def with_images(self) -> tuple[Tensor, Tensor]:
        """Local sources, those near an end of a periodic axis beyond the other, too.

        Returns:
            Positions ``[k, d]`` in open space, by sample, and the source of each.
        """
        pos = self.local(self.source)
        index = torch.arange(len(pos), device=pos.device)
        ends = zip(self.domain.lengths, self.domain.periodic, strict=True)
        for axis, (length, periodic) in enumerate(ends):
            if not periodic:
                continue
            moved = pos[:, axis] + pos.new_tensor([[0.0], [length], [-length]])
            near = (moved >= -self.reach) & (moved <= length + self.reach)
            number = near.nonzero()[:, 1]
            pos, index = pos[number], index[number]
            pos[:, axis] = moved[near]
        order = index.argsort(stable=True)
        return pos[order], index[order]

    def source_ptr(self) -> Tensor:
        """Where each sample's sources begin ``[num_samples + 1]``."""
        return pointers(self.source_batch, self.num_samples)

    def target_ptr(self) -> Tensor:
        """Where each sample's targets begin ``[num_samples + 1]``."""
        return pointers(self.target_batch, self.num_samples)

    def samples(self) -> Iterator[tuple[slice, slice]]:
        """Which sources and targets belong together: samples that have both."""
        source_ptr, target_ptr = self.source_ptr().tolist(), self.target_ptr().tolist()
        for ends in zip(pairwise(source_ptr), pairwise(target_ptr), strict=True):
            if all(low < high for low, high in ends):
                yield slice(*ends[0]), slice(*ends[1])

    def distance(self, source_index: Tensor, target_index: Tensor) -> Tensor:
        """Distances of the pairs ``[e]``, float64."""
        return self.domain.distance(
            self.source[source_index], self.target[target_index]
        )

    def visible(self, source_index: Tensor, target_index: Tensor) -> Tensor:
        """Whether no wall lies between the source and the target of each pair ``[e]``.

        True of all pairs in a domain without walls.
        """
        if self._clearance is None:
            return torch.ones_like(source_index, dtype=torch.bool)
        away = self.distance(source_index, target_index)
        free = away < self._clearance[target_index]
        left = (~free).nonzero().squeeze(1)
        free[left] = self.domain.visible(
            self.target[target_index[left]], self.source[source_index[left]]
        )
        return free

    @cached_property
    def _clearance(self) -> Tensor | None:
        """A distance of each target within which there is no wall ``[m]``."""
        if self.domain.walls is None:
            return None
        points = self.domain.wrap(self.target).cpu().numpy()
        found = torch.from_numpy(self.domain.walls.clearance(points))
        return found.to(self.target.device)

    def decided(self, source: Tensor, target: Tensor) -> Tensor:
        """The pairs ``[2, e]`` of candidates that lie within the radius."""
        pairs = torch.stack([source, target]).split(self.piece, dim=1)
        near = [each[:, self.distance(*each) <= self.radius] for each in pairs]
        return torch.cat(near, dim=1)
