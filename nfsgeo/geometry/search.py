"""Neighbours of points: all within a radius, or the nearest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn.functional import pad

from nfsgeo.errors import UserError
from nfsgeo.geometry.domain import Domain, Sphere

__all__ = ["Search", "by_sample", "edges_by_sample", "radius_edges", "radius_for"]

BACKENDS = ("auto", "scipy", "torch_cluster")
# torch-cluster compares all pairs on CUDA: fast for few points only.
MAX_PAIRS = 1 << 26
# Room for neighbours that it reserves there.
MAX_SLOTS = 1 << 22
# Of points as far, those beyond the last neighbour that are looked at, and the digits
# to which distances count as equal.
TIES, DIGITS = 8, 9
# Of those wanted: as many are looked at for ones that are not hidden.
MOST = 16
# Targets whose nearest sources are looked for together.
TARGETS = 1 << 16


def radius_edges(
    source: Tensor,
    target: Tensor,
    radius: float,
    domain: Domain,
    *,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """All pairs of a source and a target of one sample with distance <= radius.

    The neighbourhoods of the paper's appendix ("Graph construction"): balls, with
    their boundary, in the minimal-image metric of the domain. Points that a wall of the
    domain hides from each other are no neighbours. A pair comes once, however large the
    radius, and is the same by every backend.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; none for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.
        backend: ``"scipy"``, ``"torch_cluster"`` or ``"auto"``: torch-cluster for few
            points on CUDA where it is installed, else SciPy, which works on the CPU.

    Returns:
        Edges ``[2, E]``, int64, row 0 the source and row 1 the target, sorted by
        target and then source, on the device of ``source``.

    Raises:
        UserError: If a point is outside the domain or not a number, the radius is
            not above 0, or the backend is unknown or not installed.
        ValueError: If shapes or types are wrong or a batch vector is not sorted.
    """
    edges, first = [], torch.zeros(2, 1, dtype=torch.int64)
    for ends in by_sample(source, target, source_batch, target_batch):
        edges.append(Search(*ends, domain).within(radius, backend) + first)
        first = first + torch.tensor([[len(ends[0])], [len(ends[1])]])
    return torch.cat(edges, dim=1).to(source.device)


def radius_for(num_points: int, domain: Domain, c: float) -> float:
    """The radius at which a ball holds ``c log n`` of ``n`` points on average.

    Paper, appendix A ("Graph construction"): ``E|N(x)| <= c log n``. For points
    spread evenly, ``E|N(x)|`` is ``n`` times the fraction of the domain that the
    ball covers; at open boundaries it is less.

    Args:
        num_points: Number of points ``n`` of one sample, 2 or more.
        domain: The box that the points fill.
        c: The constant ``c``; ``c log n`` is about 16 for ``n = 4096``, ``c = 2``.

    Raises:
        UserError: If ``num_points`` is below 2 or ``c`` is not above 0.
    """
    if num_points < 2 or not (math.isfinite(c) and c > 0):
        raise UserError(
            f"{num_points} points and c = {c}",
            "2 points or more and a number above 0",
            "use more points, or raise c",
        )
    return domain.ball_radius(c * math.log(num_points) / num_points)


def by_sample(
    source: Tensor,
    target: Tensor,
    source_batch: Tensor | None,
    target_batch: Tensor | None,
) -> list[tuple[Tensor, Tensor]]:
    """Sources and targets of each sample; arguments as of :func:`radius_edges`."""
    if source_batch is None and target_batch is None:
        return [(source, target)]
    counts = []
    for pos, batch in ((source, source_batch), (target, target_batch)):
        fits = batch is not None and batch.shape == pos.shape[:1]
        if batch is None or not fits or not _is_sorted(batch):
            raise ValueError(
                f"a batch vector of shape {None if batch is None else [*batch.shape]} "
                f"for {len(pos)} points: expected the sample of every source and of "
                "every target, integers from 0, or of none; sort the points by sample"
            )
        counts.append(torch.bincount(batch))
    num = max(1, *map(len, counts))
    sizes = [pad(count, (0, num - len(count))).tolist() for count in counts]
    split = source.split(sizes[0]), target.split(sizes[1])
    return list(zip(*split, strict=True))


def edges_by_sample(
    edge_index: Tensor | None, ends: Sequence[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """The edges of each sample, by numbers of its own points; none without any.

    Args:
        edge_index: Edges ``[2, E]`` between the sources of all samples.
        ends: Sources and targets of each sample, from :func:`by_sample`.
    """
    if edge_index is None:
        return []
    found, first = [], 0
    for place, _ in ends:
        own = (edge_index[1] >= first) & (edge_index[1] < first + len(place))
        found.append(edge_index[:, own] - first)
        first += len(place)
    return found


def _is_sorted(batch: Tensor) -> bool:
    steps = batch.diff(prepend=batch.new_zeros(1))
    return not batch.is_floating_point() and bool((steps >= 0).all())


class Search:
    """Neighbours among the points of one sample.

    Works on the CPU, in float64. What is near is found in coordinates that begin at 0
    and are wrapped, and then decided by the metric of the domain: all backends agree.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        domain: The box, with its periodic axes.

    Raises:
        UserError: A point is outside the domain or not a number.
        ValueError: A shape or type is wrong.
    """

    def __init__(self, source: Tensor, target: Tensor, domain: Domain) -> None:
        for name, pos in (("source", source), ("target", target)):
            if pos.dim() != 2 or pos.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"{name} points of shape {list(pos.shape)} and type {pos.dtype}: "
                    f"expected float32 or float64 [n, {domain.dim}]; check the points"
                )
            # In float32, whose rounding may have put an end beyond that in float64. The
            # far end of a periodic axis is its near end.
            domain.check_inside(pos.float(), f"{name} ")
        self.device = source.device
        self.given = self.domain = domain
        if isinstance(domain, Sphere):  # caps are balls in space
            source, target = (
                domain.normalise(pos, torch.float64) for pos in (source, target)
            )
            self.domain = domain.normalised
        self.source, self.target = (
            pos.detach().cpu().double() for pos in (source, target)
        )

    def among(self, source: Tensor, target: Tensor) -> Search:
        """A search among points of this one, which are not checked again: those in
        float32 may lie outside of the domain by their rounding.
        """
        found = object.__new__(Search)
        found.device, found.given, found.domain = self.device, self.domain, self.domain
        found.source, found.target = source, target
        return found

    def within(self, radius: float, backend: str = "auto") -> Tensor:
        """Edges ``[2, E]`` of one sample, on the CPU; see :func:`radius_edges`."""
        if not (math.isfinite(radius) and radius > 0):
            raise UserError(f"radius {radius}", "a number above 0", "raise the radius")
        if self.given is not self.domain:
            radius = self.given.normalised_length(radius)
        # Enlarged by what wrapping and shifting may round away.
        scale = max(map(abs, self.domain.lower + self.domain.upper))
        reach = radius * (1 + 1e-8) + 16 * torch.finfo(torch.float64).eps * scale
        where = self._cluster_on(backend)
        if where is None:
            pairs = self._by_trees(reach)
        else:
            pairs = self._by_torch_cluster(reach, where)
        pairs = pairs[:, self.distance(*pairs) <= radius]
        # NumPy sorts ten times as fast as torch here, and powers of 2 are taken apart
        # ten times as fast as other products.
        bits = max(len(self.source) - 1, 0).bit_length()
        key = (pairs[1] << bits) | pairs[0]
        key.numpy().sort()
        key = torch.unique_consecutive(key)
        edges = torch.stack([key & ((1 << bits) - 1), key >> bits])
        return edges if self._clearance is None else edges[:, self._visible(*edges)]

    def nearest(self, num: int) -> Tensor:
        """The nearest sources of each target, nearest first.

        Of several as near, those whose displacement comes first: the order of the
        points does not matter. In a domain with walls only those are neighbours that
        none hides. A target that sees fewer than are wanted has these alone; one that
        sees none takes the nearest source of the nearest target that it sees, and so on
        around corners. One in an obstacle, or closed off from all, has none.

        Args:
            num: How many; of fewer sources, all.

        Returns:
            Numbers of sources ``[m, num]``, int64, and -1 after the last.
        """
        total = len(self.source)
        num = min(num, total)
        result = torch.full((len(self.target), num), -1)
        walls = self.domain.walls is not None
        there = self.domain.contains(self.domain.wrap(self.target)) if walls else None
        tree, target = self._tree(self._local(self.source)), self._local(self.target)
        for some in torch.arange(len(target)).split(TARGETS):
            some = some if there is None else some[there[some]]
            size = num + TIES
            while len(some):
                wanted = list(range(1, 1 + min(size, total)))
                found = torch.from_numpy(tree.query(target[some].numpy(), wanted)[1])
                found = found.gather(1, self._nearest_first(some, found))
                found = self._seen_first(some, found) if walls else found
                result[some] = found[:, :num]
                # Few may do after a while, but none will not.
                least = -1 if size < MOST * num else 0
                some = some[(result[some, least] < 0) & (size < total)]
                size *= 4
        return result if there is None else self._around_corners(result, there)

    def _visible(self, source: Tensor, target: Tensor) -> Tensor:
        """Whether no wall is between sources and targets of these numbers ``[e]``."""
        assert self._clearance is not None
        free = self.distance(source, target) < self._clearance[target]
        left = (~free).nonzero().squeeze(1)
        ends = self.target[target[left]], self.source[source[left]]
        free[left] = self.domain.visible(*ends)
        return free

    @cached_property
    def _clearance(self) -> Tensor | None:
        """A distance of each target within which there is no wall ``[m]``."""
        if self.domain.walls is None:
            return None
        points = self.domain.wrap(self.target).numpy()
        return torch.from_numpy(self.domain.walls.clearance(points))

    def distance(self, source: Tensor, target: Tensor) -> Tensor:
        return self.domain.distance(self.source[source], self.target[target])

    def _local(self, pos: Tensor) -> Tensor:
        """Coordinates that begin at 0; in ``[0, length)`` on periodic axes."""
        pos = pos - pos.new_tensor(self.domain.lower)
        lengths = pos.new_tensor(self.domain.lengths)
        wrapped = torch.where(pos >= lengths, pos - lengths, pos).clamp(min=0.0)
        return torch.where(torch.tensor(self.domain.periodic), wrapped, pos)

    def _tree(self, local: Tensor) -> cKDTree:
        # A box size of 0 marks an axis that does not wrap.
        box = np.array(self.domain.lengths) * self.domain.periodic
        return cKDTree(
            local.numpy(), boxsize=box if box.any() else None, balanced_tree=False
        )

    def _by_trees(self, reach: float) -> Tensor:
        """Pairs ``[2, e]`` that may lie within the reach, by SciPy."""
        tree, other = (
            self._tree(self._local(pos)) for pos in (self.source, self.target)
        )
        pairs = tree.sparse_distance_matrix(other, reach, output_type="ndarray")
        return torch.from_numpy(np.stack([pairs["i"], pairs["j"]]).astype(np.int64))

    def _by_torch_cluster(self, reach: float, device: torch.device) -> Tensor:
        """The same by torch-cluster, which searches in open space, with images.

        It keeps a bounded number of neighbours: as many as there are sources.
        """
        from torch_cluster import radius

        source, index = self.images(reach)
        source, target = source.to(device), self._local(self.target).to(device)
        num = len(source)
        step = len(target) if device.type == "cpu" else MAX_SLOTS // max(1, num)
        pairs = [torch.empty(2, 0, dtype=torch.int64)]
        for number, some in enumerate(target.split(max(1, step)) if num else ()):
            found = radius(source, some, reach, max_num_neighbors=num).cpu()
            pairs.append(torch.stack([index[found[1]], found[0] + number * step]))
        return torch.cat(pairs, dim=1)

    def images(self, reach: float) -> tuple[Tensor, Tensor]:
        """Local sources, and those near an end of a periodic axis beyond the other.

        Returns:
            Positions ``[k, d]`` in open space, and the source of each.
        """
        pos, index = self._local(self.source), torch.arange(len(self.source))
        ends = zip(self.domain.lengths, self.domain.periodic, strict=True)
        for axis, (length, periodic) in enumerate(ends):
            if periodic:
                moved = pos[:, axis] + pos.new_tensor([[0.0], [length], [-length]])
                near = (moved >= -reach) & (moved <= length + reach)
                number = near.nonzero()[:, 1]
                pos, index = pos[number], index[number]
                pos[:, axis] = moved[near]
        return pos, index

    def _cluster_on(self, backend: str) -> torch.device | None:
        """Where torch-cluster searches; None where SciPy does.

        Raises:
            UserError: The backend is unknown or not installed.
        """
        pairs = len(self.source) * len(self.target)
        wanted = self.device.type == "cuda" and pairs <= MAX_PAIRS
        if backend == "scipy" or (backend == "auto" and not wanted):
            return None
        cuda = cuda_version() if backend in BACKENDS else None
        if backend == "auto":
            return self.device if cuda is not None and cuda > 0 else None
        if cuda is None:
            raise UserError(
                f"radius search backend {backend!r}",
                f"one of {', '.join(BACKENDS)}, installed",
                "install torch-cluster or choose auto",
            )
        return self.device if cuda > 0 else torch.device("cpu")

    def _nearest_first(self, some: Tensor, found: Tensor) -> Tensor:
        """The order of the sources ``[m, k]`` found for some targets."""
        here = self.target[some, None].expand(*found.shape, -1)
        away = self.domain.displacement(here, self.source[found])
        distance = away.norm(dim=2, keepdim=True)
        keys = torch.cat([distance, away], dim=2) / (10.0**-DIGITS * distance[:, -1:])
        order = np.lexsort(keys.round().permute(2, 0, 1).flip(0).numpy(), axis=-1)
        return torch.from_numpy(order)

    def _seen_first(self, some: Tensor, found: Tensor) -> Tensor:
        """The sources ``[m, k]`` that each target sees, then -1 for others."""
        asking = some[:, None].expand_as(found)
        seen = self._visible(found.flatten(), asking.flatten()).view_as(found)
        order = seen.int().argsort(dim=1, descending=True, stable=True)
        return found.masked_fill(~seen, -1).gather(1, order)

    def _around_corners(self, near: Tensor, there: Tensor) -> Tensor:
        """Neighbours ``[m, num]``, where targets that see none take those of others."""
        known, left = near[:, 0] >= 0, (near[:, 0] < 0) & there
        if not (known.any() and left.any()):
            return near
        between = self.among(self.target[known], self.target[left])
        by = between.nearest(1)[:, 0]
        through = near[known][by, 0].masked_fill(by < 0, -1)
        return near.index_put((left.nonzero().squeeze(1), torch.tensor(0)), through)


def cuda_version() -> int | None:
    """Of CUDA, torch-cluster was built with, -1 without; None if it is not there."""
    try:
        import torch_cluster  # noqa: F401
    except (ImportError, OSError):  # absent, or built for another version of torch
        return None
    return int(torch.ops.torch_cluster.cuda_version())
