"""The streams of random numbers of nfsgeo.

A stream is a function of the run's seed and a few numbers. Points of meshes draw from
Philox generators of the words ``[seed, stream, sample, ...]`` with a :class:`Stream`.
Training draws the order of its samples from :func:`epoch_order`, and seeds all global
generators with :func:`derived_seed` of ``(seed, epoch, device)`` in every epoch.
Noise on the inputs is seeded by ``(sample, epoch)``, and the number of the window for
all but the first of a sample, pairs for lead times by ``[sample, epoch, window]``,
whatever the run's seed. Initial weights follow from ``torch.manual_seed(seed)``, and
generated samples from :func:`nfsgeo.data.pde.random_fields.sample_rng`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stream", "derived_seed", "epoch_order", "philox", "shuffled"]


class Stream(IntEnum):
    """Purposes of random numbers; a number never changes its meaning."""

    RANDOM_SUBSET = 0
    NESTED = 1
    OFF_GRID = 2
    CLUSTERED = 3
    JITTERED = 4
    UNSEEN_POINTS = 5
    DISJOINT = 6
    QUERY_POINTS = 7
    SUBSETS = 8


def epoch_order(seed: int, epoch: int) -> np.random.Generator:
    """Generator of the order in which an epoch visits the training samples."""
    return np.random.default_rng([seed, epoch])


def derived_seed(*words: int) -> int:
    """A seed of 32 bits that depends on all of ``words``."""
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def philox(seed: int, *stream: int) -> np.random.Generator:
    """Generator of a seed and the numbers of a stream, independent of all others."""
    words = np.random.SeedSequence([seed, *stream])
    return np.random.Generator(np.random.Philox(words))


def shuffled(
    num: int, rng: np.random.Generator, weight: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """The numbers below ``num`` in a random order, drawn from ``rng``.

    Numbers of larger ``weight [num]`` are likely to come first.
    """
    # Only the method `random` of generators is promised to stay as it is.
    drawn = rng.random(num)
    if weight is not None:
        # The one that an exponential clock of this rate rings for first.
        drawn = -np.log1p(-drawn) / weight
    return np.argsort(drawn, kind="stable")
