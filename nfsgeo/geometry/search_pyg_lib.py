"""Radius search by pyg-lib 0.6 or later, which has torch-cluster's kernels."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from nfsgeo.geometry.images import FIRST_CUDA_CAP, candidates_by_images
from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "candidates"]

OLDEST = (0, 6)


def available(device: torch.device) -> bool:
    """Whether this backend is installed and searches on ``device``."""
    if not _installed():
        return False
    built_for_cuda = int(torch.ops.pyg.cuda_version()) > 0
    return device.type == "cpu" or (device.type == "cuda" and built_for_cuda)


@cache
def _installed() -> bool:
    try:
        library = importlib.import_module("pyg_lib")
    except (ImportError, OSError):  # absent, or built for another version of torch
        return False
    version = re.match(r"(\d+)\.(\d+)", getattr(library, "__version__", ""))
    if version is None or tuple(map(int, version.groups())) < OLDEST:
        return False
    return hasattr(torch.ops.pyg, "radius")


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
    return torch.ops.pyg.radius(
        source, target, source_ptr, target_ptr, radius, cap, 1, False
    )
