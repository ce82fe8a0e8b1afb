"""Radius search by torch-cluster: a k-d tree on the CPU, all pairs on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from nfsgeo.geometry.images import FIRST_CUDA_CAP, candidates_by_images
from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "candidates"]


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
