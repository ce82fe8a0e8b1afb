"""Neighbours within a radius: one function in front of several libraries."""

from __future__ import annotations

import logging
import math
from types import ModuleType

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import search_cell_list, search_scipy, search_torch_cluster
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.query import RadiusQuery

__all__ = ["BACKENDS", "radius_edges", "radius_for"]

logger = logging.getLogger(__name__)

BACKENDS: dict[str, ModuleType] = {
    "scipy": search_scipy,
    "cell_list": search_cell_list,
    "torch_cluster": search_torch_cluster,
}

# torch-cluster compares all pairs on CUDA: fast for few points only.
MAX_PAIRS_ON_CUDA = 1 << 26


def radius_edges(
    source: Tensor,
    target: Tensor,
    radius: float,
    domain: Domain,
    *,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
    backend: str = "auto",
    max_neighbours: int | None = None,
) -> Tensor:
    """All pairs of a source and a target of one sample with distance <= radius.

    The neighbourhoods of the paper's appendix ("Graph construction"): balls, with
    their boundary, in the minimal-image metric of the domain. Every backend
    returns the same edges in the same order, since each only proposes candidates
    and one formula in float64 decides. A pair comes once, however large the radius.
    A point on the upper end of a periodic axis is taken for one on its lower end.
    Points that a wall of the domain hides from each other are no neighbours.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; none for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.
        backend: ``"auto"``, ``"scipy"``, ``"cell_list"`` or ``"torch_cluster"``.
            SciPy, and torch-cluster built without CUDA, work on the CPU and their
            result is moved back.
        max_neighbours: Keep only this many nearest sources of each target (ties:
            the lowest index). What is cut is logged as a warning.

    Returns:
        Edges ``[2, E]``, int64, row 0 the source and row 1 the target, sorted by
        target and then source, on the device of ``source``.

    Raises:
        UserError: If a point is outside the domain or not a number, the radius is
            not above 0, or the backend is unknown or not installed.
        ValueError: If shapes or types are wrong or a batch vector is not sorted.
    """
    if max_neighbours is not None and max_neighbours < 1:
        raise UserError(
            f"max_neighbours {max_neighbours}", "at least 1", "raise it or leave it out"
        )
    name, device = _choose(backend, source, target)
    query = RadiusQuery.create(
        source, target, radius, domain, source_batch, target_batch, device
    )
    sources, targets = [], []
    for found in BACKENDS[name].candidates(query):
        source_index, target_index = query.decided(found)
        sources.append(source_index)
        targets.append(target_index)
    if not sources:
        return torch.empty(2, 0, dtype=torch.int64, device=source.device)
    edges = _sorted_once(torch.cat(sources), torch.cat(targets), source.size(0))
    if domain.region is not None:
        edges = edges[:, query.visible(*edges)]
    if max_neighbours is not None:
        edges = _nearest_only(query, edges, max_neighbours)
    return edges.to(source.device)


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
    if num_points < 2:
        raise UserError(f"{num_points} points", "at least 2", "use more points")
    if not (math.isfinite(c) and c > 0):
        raise UserError(f"c = {c}", "a number above 0", "raise c")
    return domain.ball_radius(c * math.log(num_points) / num_points)


def _choose(backend: str, source: Tensor, target: Tensor) -> tuple[str, torch.device]:
    cpu = torch.device("cpu")
    if backend == "auto":
        if source.device.type != "cuda":
            return "scipy", cpu
        few = source.size(0) * target.size(0) <= MAX_PAIRS_ON_CUDA
        if few and search_torch_cluster.available(source.device):
            return "torch_cluster", source.device
        return "cell_list", source.device
    if backend not in BACKENDS:
        raise UserError(
            f"radius search backend {backend!r}",
            f"auto, {', '.join(BACKENDS)}",
            "choose one of these",
        )
    for device in (source.device, cpu):
        if BACKENDS[backend].available(device):
            return backend, device
    raise UserError(
        f"radius search backend {backend!r}",
        "a library that is installed",
        f"install {backend.replace('_', '-')} or choose auto",
    )


def _sorted_once(source: Tensor, target: Tensor, num_source: int) -> Tensor:
    """Edges sorted by target, then source, each pair once."""
    # Powers of 2 are taken apart ten times as fast as other products.
    bits = max(num_source - 1, 0).bit_length()
    key = (target << bits) | source
    if key.device.type == "cpu":
        # NumPy's sort is vectorised: ten times as fast as torch's here.
        key.numpy().sort()
    else:
        key = key.sort().values
    key = torch.unique_consecutive(key)
    return torch.stack([key & ((1 << bits) - 1), key >> bits])


def _nearest_only(query: RadiusQuery, edges: Tensor, most: int) -> Tensor:
    """Keep the ``most`` nearest sources of each target."""
    counts = torch.bincount(edges[1], minlength=query.target.size(0))
    cut = counts > most
    if not cut.any():
        return edges
    logger.warning(
        "max_neighbours=%d leaves out %d of %d edges, at %d of %d targets",
        most,
        int((counts[cut] - most).sum()),
        edges.size(1),
        int(cut.sum()),
        counts.numel(),
    )
    distance = query.distance(edges[0], edges[1])
    # Stable sorts: by distance, then by target; equal distances keep their order.
    order = distance.argsort(stable=True)
    order = order[edges[1, order].argsort(stable=True)]
    rank = torch.arange(edges.size(1), device=edges.device)
    rank = rank - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    keep = order[rank < most].sort().values
    return edges[:, keep]
