"""Radius search by torch-cluster: a k-d tree on the CPU, all pairs on CUDA."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from nfsgeo.geometry.images import FIRST_CUDA_CAP, candidates_by_images
from nfsgeo.geometry.query import RadiusQuery

__all__ = ["available", "candidates"]


def available(device: torch.device) -> bool:
    """Whether this backend is installed and searches on ``device``."""
    return device.type in ("cpu", "cuda") and _installed()


@cache
def _installed() -> bool:
    if importlib.util.find_spec("torch_cluster") is None:
        return False
    try:
        import torch_cluster  # noqa: F401
    except (ImportError, OSError):  # built for another version of torch
        return False
    return True


def candidates(query: RadiusQuery) -> Iterator[tuple[Tensor, Tensor]]:
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
