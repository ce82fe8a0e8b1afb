"""Neighbours within a radius: one function in front of several libraries."""

from __future__ import annotations

import math
from types import ModuleType

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import search_cell_list, search_scipy, search_torch_cluster
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.query import RadiusQuery

__all__ = ["BACKENDS", "radius_edges", "radius_for"]

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

    Returns:
        Edges ``[2, E]``, int64, row 0 the source and row 1 the target, sorted by
        target and then source, on the device of ``source``.

    Raises:
        UserError: If a point is outside the domain or not a number, the radius is
            not above 0, or the backend is unknown or not installed.
        ValueError: If shapes or types are wrong or a batch vector is not sorted.
    """
    name, device = _choose(backend, source, target)
    batches = source_batch, target_batch
    query = RadiusQuery.create(source, target, domain, radius, batches, device)
    pairs = [query.decided(*found) for found in BACKENDS[name].candidates(query)]
    if not pairs:
        return torch.empty(2, 0, dtype=torch.int64, device=source.device)
    edges = _sorted_once(torch.cat(pairs, dim=1), len(source))
    if domain.walls is not None:
        edges = edges[:, query.visible(*edges)]
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
    if num_points < 2 or not (math.isfinite(c) and c > 0):
        raise UserError(
            f"{num_points} points and c = {c}",
            "2 points or more and a number above 0",
            "use more points, or raise c",
        )
    return domain.ball_radius(c * math.log(num_points) / num_points)


def _choose(backend: str, source: Tensor, target: Tensor) -> tuple[str, torch.device]:
    cpu = torch.device("cpu")
    if backend == "auto":
        if source.device.type != "cuda":
            return "scipy", cpu
        few = len(source) * len(target) <= MAX_PAIRS_ON_CUDA
        fast = few and search_torch_cluster.available(source.device)
        return ("torch_cluster" if fast else "cell_list"), source.device
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


def _sorted_once(pairs: Tensor, num_source: int) -> Tensor:
    """Edges sorted by target, then source, each pair once."""
    # Powers of 2 are taken apart ten times as fast as other products.
    bits = max(num_source - 1, 0).bit_length()
    key = (pairs[1] << bits) | pairs[0]
    if key.device.type == "cpu":
        # NumPy's sort is vectorised: ten times as fast as torch's here.
        key.numpy().sort()
    else:
        key = key.sort().values
    key = torch.unique_consecutive(key)
    return torch.stack([key & ((1 << bits) - 1), key >> bits])
