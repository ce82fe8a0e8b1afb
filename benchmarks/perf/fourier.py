"""The Fourier Neural Operator, ours and that of the library neuraloperator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import Problem, build_model
from nfsgeo_benchmarks.perf.steps import step

__all__ = ["our_fno", "their_fno"]


def our_fno(
    folder: Path,
    *,
    size: int,
    records: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
) -> Callable[[], float]:
    """A training step of `fno` over space and time, as many records in as out.

    Args:
        folder: Unused.
        size: Nodes on each of the two axes.
        records: Of the input and of the result.
        samples: Of a batch.
        width: Channels.
        depth: Blocks.
        modes: Frequencies of either sign on each space axis; in time all.
    """
    domain = Domain.unit(2)
    problem = Problem(domain, 1, 1, records, records, size**2, (size, size), True)
    time_modes = records // 2 + 1
    network = build_model(
        "fno",
        problem,
        {"width": width, "depth": depth, "modes": modes, "time_modes": time_modes},
    )
    pos = equispaced_grid(domain, (size, size)).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(size**2)
    x = torch.randn(len(pos), records, 1)
    target = torch.randn(len(pos), records, 1)
    return step(network, lambda: network(x, pos, batch), target)


def their_fno(
    folder: Path,
    *,
    size: int,
    records: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
) -> Callable[[], float]:
    """The same of neuraloperator: as many weights, GELU, one map to lift.

    Its input already has a copy for each record of the result, and it has no
    activation after the last block; both save it a little.

    Args:
        folder: Unused.
        size, records, samples, width, depth, modes: As for :func:`our_fno`.
    """
    with warnings.catch_warnings():
        # It changes the filters of the whole process.
        from neuralop.models import FNO
    network = FNO(
        n_modes=(2 * modes, 2 * modes, records),  # of which it keeps n / 2 + 1
        in_channels=records,
        out_channels=1,
        hidden_channels=width,
        n_layers=depth,
        lifting_channel_ratio=0,
        projection_channel_ratio=128 / width,
        use_channel_mlp=False,
        channel_mlp_skip=None,
    )
    x = torch.randn(samples, records, size, size, records)
    target = torch.randn(samples, 1, size, size, records)
    return step(network, lambda: network(x), target)
