"""Radius search by SciPy's k-d trees, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from scipy.spatial import cKDTree
from torch import Tensor

from nfsgeo.geometry.query import Candidates, RadiusQuery

__all__ = ["available", "build_tree", "candidates"]


def available(device: torch.device) -> bool:
    """Whether this backend searches on ``device``."""
    return device.type == "cpu"


def build_tree(query: RadiusQuery, local: Tensor) -> cKDTree:
    """A tree over ``local`` coordinates ``[n, d]`` that knows the periodic axes."""
    # A box size of 0 marks an axis that does not wrap.
    box = [
        length if periodic else 0.0
        for length, periodic in zip(
            query.domain.lengths, query.domain.periodic, strict=True
        )
    ]
    return cKDTree(
        local.numpy(),
        boxsize=box if any(query.domain.periodic) else None,
        balanced_tree=False,
        compact_nodes=True,
    )


def candidates(query: RadiusQuery) -> Iterator[Candidates]:
    """Pairs (source, target) that may lie within the radius, a sample at a time."""
    source, target = query.local(query.source), query.local(query.target)
    for these, those in query.samples():
        tree, other = build_tree(query, source[these]), build_tree(query, target[those])
        pairs = tree.sparse_distance_matrix(other, query.reach, output_type="ndarray")
        first, last = (torch.from_numpy(pairs[end].astype("int64")) for end in "ij")
        yield first + these.start, last + those.start
