"""Radius search by torch-cluster: a k-d tree on the CPU, all pairs on CUDA.

It searches in open space, so sources are repeated beyond the ends of periodic axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "candidates", "candidates_by_images"]

OpenSearch = Callable[[Tensor, Tensor, Tensor, Tensor, float, int], Tensor]
"""``(source, target, source_ptr, target_ptr, radius, cap)`` to pairs ``[2, e]``,
row 0 the target and row 1 the source, at most ``cap`` pairs for each target."""

FIRST_CUDA_CAP = 64
MAX_SLOTS = 1 << 24


def available(device: torch.device) -> bool:
    """Whether this backend is installed and searches on ``device``."""
    if not _installed():
        return False
    built_for_cuda = int(torch.ops.torch_cluster.cuda_version()) > 0
    return device.type == "cpu" or (device.type == "cuda" and built_for_cuda)


@cache
def _installed() -> bool:
    try:
        import torch_cluster  # noqa: F401
    except (ImportError, OSError):  # absent, or built for another version of torch
        return False
    return True


def candidates(query: RadiusQuery) -> Iterator[Candidates]:
    """Pairs (source, target) that may lie within the radius."""
    on_cpu = query.source.device.type == "cpu"
    return candidates_by_images(query, _search, None if on_cpu else FIRST_CUDA_CAP)


def _search(
    source: Tensor,
    target: Tensor,
    source_ptr: Tensor,
    target_ptr: Tensor,
    radius: float,
    cap: int,
) -> Tensor:
    from torch_cluster import radius as search

    num_samples = source_ptr.numel() - 1
    if num_samples == 1:
        return search(source, target, radius, max_num_neighbors=cap)
    samples = torch.arange(num_samples, device=source.device)
    return search(
        source,
        target,
        radius,
        torch.repeat_interleave(samples, source_ptr.diff()),
        torch.repeat_interleave(samples, target_ptr.diff()),
        max_num_neighbors=cap,
        batch_size=num_samples,
    )


def candidates_by_images(
    query: RadiusQuery, search: OpenSearch, first_cap: int | None
) -> Iterator[Candidates]:
    """Pairs (source, target) that may lie within the radius.

    Sources near the end of a periodic axis are repeated beyond its other end. A
    pair found through several images comes several times.

    Args:
        query: What is searched for.
        search: A search in open space that keeps a bounded number of neighbours.
        first_cap: For a search that reserves room for every neighbour it is
            allowed: the first bound. It is raised until no target reaches it, so
            that nothing is lost. None for a search without such a cost.
    """
    if query.source.size(0) == 0 or query.target.size(0) == 0:
        return
    pos, index = _with_images(query)
    samples = torch.arange(query.num_samples + 1, device=pos.device)
    source_ptr = torch.searchsorted(query.source_batch[index], samples)
    target, target_ptr = query.local(query.target), query.target_ptr()
    most = int((source_ptr[1:] - source_ptr[:-1]).max())
    if first_cap is None:
        found = search(pos, target, source_ptr, target_ptr, query.reach, most)
        yield Candidates(index[found[1]], found[0])
        return
    cap, begin = min(first_cap, most), 0
    while begin < target.size(0):
        end = min(begin + max(1, MAX_SLOTS // cap), target.size(0))
        piece_ptr = target_ptr.clamp(begin, end) - begin
        piece = target[begin:end]
        found = search(pos, piece, source_ptr, piece_ptr, query.reach, cap)
        if cap < most and int(torch.bincount(found[0], minlength=1).max()) >= cap:
            cap = min(2 * cap, most)
            continue
        yield Candidates(index[found[1]], found[0] + begin)
        begin = end


def _with_images(query: RadiusQuery) -> tuple[Tensor, Tensor]:
    """Sources and their images, and the source that each one is an image of."""
    pos = query.local(query.source)
    index = torch.arange(pos.size(0), device=pos.device)
    for axis, periodic in enumerate(query.domain.periodic):
        if not periodic:
            continue
        length = query.domain.lengths[axis]
        positions, indices = [pos], [index]
        for shift in (length, -length):
            moved = pos[:, axis] + shift
            near = (moved >= -query.reach) & (moved <= length + query.reach)
            image = pos[near].clone()
            image[:, axis] = moved[near]
            positions.append(image)
            indices.append(index[near])
        pos, index = torch.cat(positions), torch.cat(indices)
    # Samples must stay contiguous; sources are sorted by sample already.
    order = index.argsort(stable=True)
    return pos[order], index[order]
