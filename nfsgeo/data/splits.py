"""Training, validation and test samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPLITS", "check_split", "published_split", "split_in_order"]

SPLITS = ("train", "valid", "test")


def split_in_order(
    num_samples: int, fractions: tuple[float, float, float] = (0.7, 0.1, 0.2)
) -> dict[str, NDArray[np.int64]]:
    """Cuts the samples in order, as the paper does: 1200 give 840, 120 and 240.

    With three samples or more no part is empty. Fewer all go to training, since a
    file of one or two samples is there to predict on.

    Args:
        num_samples: How many samples there are.
        fractions: Those of training, validation and test; they sum to 1.

    Raises:
        ValueError: The fractions are not positive or do not sum to 1.
    """
    if min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
        raise ValueError(
            f"split fractions {fractions}: expected three positive numbers whose "
            "sum is 1; change them"
        )
    if num_samples < 3:
        valid = test = 0
    else:
        valid = max(1, round(fractions[1] * num_samples))
        test = max(1, round(fractions[2] * num_samples))
        while valid + test >= num_samples:
            valid, test = (valid - 1, test) if valid > test else (valid, test - 1)
    order = np.arange(num_samples, dtype=np.int64)
    train = num_samples - valid - test
    return {
        "train": order[:train],
        "valid": order[train : train + valid],
        "test": order[train + valid :],
    }


def published_split(
    num_samples: int, train: int, valid: int, test: int, *, test_last: bool = True
) -> dict[str, NDArray[np.int64]]:
    """The first samples for training, and the test samples that others report on.

    Where there are fewer samples than published, as :func:`split_in_order`.

    Args:
        num_samples: How many samples there are.
        train: Training samples, the first.
        valid: Validation samples, the first of the others.
        test: Test samples.
        test_last: Whether these are the last samples; else they follow those of
            training, and validation samples follow them.
    """
    if num_samples < train + valid + test:
        return split_in_order(num_samples)
    order = np.arange(num_samples, dtype=np.int64)
    first_valid = train if test_last else train + test
    first_test = num_samples - test if test_last else train
    return {
        "train": order[:train],
        "valid": order[first_valid : first_valid + valid],
        "test": order[first_test : first_test + test],
    }


def check_split(split: Mapping[str, NDArray[np.int64]], num_samples: int) -> None:
    """Makes sure that a split names existing samples, each at most once.

    Raises:
        ValueError: A part is missing, out of range or shares a sample with another.
    """
    if set(split) != set(SPLITS):
        raise ValueError(f"split has parts {sorted(split)}, expected {SPLITS}")
    for part in map(np.asarray, split.values()):
        if part.size and part.dtype.kind not in "iu":
            raise ValueError("split has sample numbers that are no integers")
    chosen = np.concatenate([np.asarray(split[name], np.int64) for name in SPLITS])
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < num_samples):
        raise ValueError(f"split names a sample outside 0..{num_samples - 1}")
    if len(np.unique(chosen)) != len(chosen):
        raise ValueError("split names a sample twice")
