"""Radius search by torch-cluster: a k-d tree on the CPU, all pairs on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch

from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "candidates"]

# Room for neighbours that it reserves on CUDA.
MAX_SLOTS = 1 << 22


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
    """Pairs (source, target) that may lie within the radius.

    It searches in open space and keeps a bounded number of neighbours: as many as the
    largest sample has sources, so that nothing is lost.
    """
    from torch_cluster import radius

    if not (len(query.source) and len(query.target)):
        return
    source, index = query.with_images()
    batch, target = query.source_batch[index], query.local(query.target)
    most = int(torch.bincount(batch).max())
    on_cpu = source.device.type == "cpu"
    step = len(target) if on_cpu else max(1, MAX_SLOTS // most)
    for start in range(0, len(target), step):
        some = slice(start, start + step)
        found = radius(
            source,
            target[some],
            query.reach,
            batch,
            query.target_batch[some],
            max_num_neighbors=most,
            batch_size=query.num_samples,
        )
        yield index[found[1]], found[0] + start
