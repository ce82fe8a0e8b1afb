"""Neighbours of points within a radius, and nearest neighbours."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn.functional import pad

from nfsgeo.errors import UserError, check_sizes
from nfsgeo.geometry.domain import Domain, Sphere
from nfsgeo.geometry.graphs import by_sample

__all__ = ["Search", "radius_edges", "radius_for"]

BACKENDS = ("auto", "scipy", "torch_cluster")
# Most pairs for torch-cluster on CUDA, which compares all pairs.
MAX_PAIRS = 1 << 26
# Most neighbours for which it reserves memory at once.
MAX_SLOTS = 1 << 22
# Extra candidates fetched to break ties, and the fraction of the distance of the last
# candidate by which displacements differ.
TIES, SAME_PLACE = 8, 1e-3
# Candidates over neighbours at which a search behind walls accepts fewer neighbours.
MOST = 16
# Targets of one query for nearest sources.
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
    """Return all pairs of a source and a target of one sample within a radius.

    These are the neighbourhoods of the paper's appendix ("Graph construction"): closed
    balls in the minimal-image metric of the domain. Walls separate neighbours. A pair
    occurs once, however large the radius. All backends return the same edges.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; None for one sample.
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
    """Return the radius at which a ball holds ``c log n`` of ``n`` points on average.

    This is ``E|N(x)| <= c log n`` of the paper's appendix A ("Graph construction"). For
    evenly spread points ``E|N(x)|`` is ``n`` times the fraction of the domain that the
    ball covers, and less at boundaries.

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
        """Return a search among points of this one, without checking them again.

        Points in float32 may lie outside the domain by rounding.
        """
        search = object.__new__(Search)
        search.device, search.given = self.device, self.domain
        search.domain = self.domain
        search.source, search.target = source, target
        return search

    def within(self, radius: float, backend: str = "auto") -> Tensor:
        """Return the edges ``[2, E]`` of one sample; see :func:`radius_edges`."""
        if not (math.isfinite(radius) and radius > 0):
            raise UserError(f"radius {radius}", "a number above 0", "raise the radius")
        if self.given is not self.domain:
            radius = self.given.normalised_length(radius)
        # Wrapping and shifting round.
        scale = max(map(abs, self.domain.lower + self.domain.upper))
        reach = radius * (1 + 1e-8) + 16 * torch.finfo(torch.float64).eps * scale
        where = self._cluster_on(backend)
        if where is None:
            pairs = self._by_trees(reach)
        else:
            pairs = self._by_torch_cluster(reach, where)
        pairs = pairs[:, self.distance(*pairs) <= radius]
        # NumPy sorts ten times as fast as torch here, and shifts are ten times as fast
        # as divisions.
        bits = max(len(self.source) - 1, 0).bit_length()
        key = (pairs[1] << bits) | pairs[0]
        key.numpy().sort()
        key = torch.unique_consecutive(key)
        edges = torch.stack([key & ((1 << bits) - 1), key >> bits])
        return edges if self._clearance is None else edges[:, self._visible(*edges)]

    def nearest(
        self, num: int, same: float = 1e-9, *, whole_places: bool = False
    ) -> Tensor:
        """Return the nearest sources of each target, nearest first.

        Ties are broken by the displacement, so that the order of the points does not
        matter. Walls separate neighbours: a target may have fewer neighbours than
        ``num``. A target that sees no source takes the nearest source of the nearest
        target that it sees, and so on around corners. A target in an obstacle, or cut
        off from all sources, has none.

        Args:
            num: Neighbours of a target; all sources if there are fewer.
            same: Fraction of the distance of the last candidate within which distances
                are equal, above the rounding of coordinates.
            whole_places: Whether further sources at the place of the last neighbour
                are neighbours, too, so that none is chosen by the order of the points.

        Returns:
            Numbers of sources ``[m, num]``, int64, padded with -1; more columns if
            places are whole and have several sources.
        """
        if num < 1:
            check_sizes(num=num)
        total = len(self.source)
        num = min(num, total)
        result = torch.full((len(self.target), num), -1)
        walls = self.domain.walls is not None
        pos = self.domain.wrap(self.target)
        inside = self.domain.contains(pos) if walls else None
        source, target = self._local(self.source), self._local(self.target)
        tree = self._tree(source)
        for some in torch.arange(len(target)).split(TARGETS):
            some = some if inside is None else some[inside[some]]
            size = num + TIES
            while len(some):
                ranks = list(range(1, 1 + min(size, total)))
                away, near = map(
                    torch.from_numpy, tree.query(target[some].numpy(), ranks)
                )
                # Further candidates may be as far as the last neighbour.
                tied = away[:, -1] * (1 - same) <= away[:, num - 1]
                tied &= size < MOST * num
                near = near.gather(1, self._nearest_first(some, near, same))
                near = self._seen_first(some, near) if walls else near
                near, rest = near[:, :num], near[:, num:]
                if whole_places:
                    near = _with_places(near, rest, source)
                ends = near.clamp_min(0), some[:, None].expand_as(near)
                away = self.distance(*ends).masked_fill(near < 0, torch.inf)
                near = near.gather(1, away.argsort(dim=1, stable=True))
                width = max(near.size(1), result.size(1))
                near, result = (
                    pad(columns, (0, width - columns.size(1)), value=-1)
                    for columns in (near, result)
                )
                result[some] = near
                # After a while a few neighbours suffice, but not none.
                least = num - 1 if size < MOST * num else 0
                some = some[((result[some, least] < 0) | tied) & (size < total)]
                size *= 4
        return result if inside is None else self._around_corners(result, inside)

    def _visible(self, source: Tensor, target: Tensor) -> Tensor:
        """Return whether no wall separates pairs of sources and targets ``[e]``."""
        assert self._clearance is not None
        free = self.distance(source, target) < self._clearance[target]
        unsure = (~free).nonzero().squeeze(1)
        ends = self.target[target[unsure]], self.source[source[unsure]]
        free[unsure] = self.domain.visible(*ends)
        return free

    @cached_property
    def _clearance(self) -> Tensor | None:
        """Distance around each target within which there is no wall ``[m]``."""
        if self.domain.walls is None:
            return None
        points = self.domain.wrap(self.target).numpy()
        return torch.from_numpy(self.domain.walls.clearance(points))

    def distance(self, source: Tensor, target: Tensor) -> Tensor:
        return self.domain.distance(self.source[source], self.target[target])

    def _local(self, pos: Tensor) -> Tensor:
        """Return coordinates from 0, in ``[0, length)`` on periodic axes."""
        pos = pos - pos.new_tensor(self.domain.lower)
        lengths = pos.new_tensor(self.domain.lengths)
        wrapped = torch.remainder(pos, lengths)  # which may round to the length
        wrapped = torch.where(wrapped < lengths, wrapped, 0.0)
        return torch.where(torch.tensor(self.domain.periodic), wrapped, pos)

    def _tree(self, local: Tensor) -> cKDTree:
        # A box size of 0 marks an axis that does not wrap.
        box = np.array(self.domain.lengths) * self.domain.periodic
        return cKDTree(
            local.numpy(), boxsize=box if box.any() else None, balanced_tree=False
        )

    def _by_trees(self, reach: float) -> Tensor:
        """Return the pairs ``[2, e]`` within a distance, by SciPy."""
        tree, other = (
            self._tree(self._local(pos)) for pos in (self.source, self.target)
        )
        pairs = tree.sparse_distance_matrix(other, reach, output_type="ndarray")
        return torch.from_numpy(np.stack([pairs["i"], pairs["j"]]).astype(np.int64))

    def _by_torch_cluster(self, reach: float, device: torch.device) -> Tensor:
        """Return the pairs ``[2, e]`` within a distance, by torch-cluster.

        It searches in open space, hence among periodic images.
        """
        from torch_cluster import radius

        source, index = self.images(reach)
        source, target = source.to(device), self._local(self.target).to(device)
        num = len(source)
        step = len(target) if device.type == "cpu" else MAX_SLOTS // max(1, num)
        pairs = [torch.empty(2, 0, dtype=torch.int64)]
        for number, some in enumerate(target.split(max(1, step)) if num else ()):
            edges = radius(source, some, reach, max_num_neighbors=num).cpu()
            pairs.append(torch.stack([index[edges[1]], edges[0] + number * step]))
        return torch.cat(pairs, dim=1)

    def images(self, reach: float) -> tuple[Tensor, Tensor]:
        """Return the sources with their periodic images near the box.

        Returns:
            Positions ``[k, d]`` in open space, and the number of each source ``[k]``.
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
        """Return the device on which torch-cluster searches; None for SciPy.

        Raises:
            UserError: The backend is unknown or not installed.
        """
        pairs = len(self.source) * len(self.target)
        use_cluster = self.device.type == "cuda" and pairs <= MAX_PAIRS
        if backend == "scipy" or (backend == "auto" and not use_cluster):
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

    def _nearest_first(self, targets: Tensor, sources: Tensor, same: float) -> Tensor:
        """Return the order by distance of the sources ``[m, k]`` of some targets."""
        here = self.target[targets, None].expand(*sources.shape, -1)
        away = self.domain.displacement(here, self.source[sources])
        distance = away.norm(dim=2)
        far = distance[:, -1:].clamp_min(torch.finfo(away.dtype).tiny)
        first = distance.argsort(1)
        further = distance.gather(1, first).diff(dim=1) > same * far
        rank = torch.zeros_like(first).scatter(1, first[:, 1:], further.cumsum(1))
        place = (away / (SAME_PLACE * far[..., None])).round().permute(2, 0, 1)
        order = np.lexsort([*place.flip(0).numpy(), rank.numpy()], axis=-1)
        return torch.from_numpy(order)

    def _seen_first(self, targets: Tensor, sources: Tensor) -> Tensor:
        """Move visible sources to the front of ``[m, k]``; others become -1."""
        repeated = targets[:, None].expand_as(sources)
        seen = self._visible(sources.flatten(), repeated.flatten()).view_as(sources)
        order = seen.int().argsort(dim=1, descending=True, stable=True)
        return sources.masked_fill(~seen, -1).gather(1, order)

    def _around_corners(self, near: Tensor, inside: Tensor) -> Tensor:
        """Give targets that see no source the nearest source of a visible target."""
        served, hidden = near[:, 0] >= 0, (near[:, 0] < 0) & inside
        if not (served.any() and hidden.any()):
            return near
        between = self.among(self.target[served], self.target[hidden])
        guide = between.nearest(1)[:, 0]
        sources = near[served][guide, 0].masked_fill(guide < 0, -1)
        return near.index_put((hidden.nonzero().squeeze(1), torch.tensor(0)), sources)


def _with_places(near: Tensor, rest: Tensor, source: Tensor) -> Tensor:
    """Return neighbours ``[m, k]`` and those of the ``rest`` where the last one is.

    Missing ones are -1. The coordinates of the ``source [n, d]`` are wrapped.
    """
    last = near[:, -1:]
    there = (source[rest] == source[last]).all(2) & (rest >= 0) & (last >= 0)
    most = int(there.sum(1).max()) if there.any() else 0
    others = rest.masked_fill(~there, -1).sort(dim=1, descending=True).values
    return torch.cat([near, others[:, :most]], dim=1)


def cuda_version() -> int | None:
    """Return the CUDA version of torch-cluster, -1 for none; None if not installed."""
    try:
        import torch_cluster  # noqa: F401
    except (ImportError, OSError):  # absent, or built for another version of torch
        return None
    return int(torch.ops.torch_cluster.cuda_version())
