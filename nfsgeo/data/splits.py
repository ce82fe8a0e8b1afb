"""Training, validation and test samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xarray import Variable

from nfsgeo.errors import UserError

__all__ = ["SPLITS", "part_of", "part_variable", "published_split"]
__all__ += ["split_in_order", "split_of"]

SPLITS = ("train", "valid", "test")
WORDS = (*SPLITS, "unused")  # meanings of 0, 1, 2 and 3


def split_in_order(
    num_samples: int, fractions: tuple[float, float, float] = (0.7, 0.1, 0.2)
) -> dict[str, NDArray[np.int64]]:
    """Split the samples in order, as the paper does: 1200 give 840, 120 and 240.

    With three samples or more no part is empty. Fewer samples all go to training, since
    a file of one or two samples is there to predict on.

    Args:
        num_samples: Number of samples.
        fractions: Positive fractions of training, validation and test, of sum 1.
    """
    valid, test = (max(1, round(part * num_samples)) for part in fractions[1:])
    while 3 <= num_samples <= valid + test:
        valid, test = (valid - 1, test) if valid > test else (valid, test - 1)
    if num_samples < 3:
        valid = test = 0
    ends = np.cumsum([num_samples - valid - test, valid])
    return dict(zip(SPLITS, np.split(np.arange(num_samples), ends), strict=True))


def published_split(
    num_samples: int, train: int, valid: int, test: int, *, test_last: bool = True
) -> dict[str, NDArray[np.int64]]:
    """The first samples for training, the next for validation and the last for the
    test; or with ``test_last`` false those of the test before those of validation.

    Where there are fewer samples than published, as :func:`split_in_order`.
    """
    if num_samples < train + valid + test:
        return split_in_order(num_samples)
    order = np.arange(num_samples)
    first_valid = train if test_last else train + test
    first_test = num_samples - test if test_last else train
    return {
        "train": order[:train],
        "valid": order[first_valid : first_valid + valid],
        "test": order[first_test : first_test + test],
    }


def part_variable(split: Mapping[str, ArrayLike], num_samples: int) -> Variable:
    """The variable ``part``: 0, 1, 2 for training, validation, test, 3 for none.

    Raises:
        UserError: A part is not given, names a sample that does not exist, or shares
            one with another.
    """
    where = np.full(num_samples, len(SPLITS), np.int8)
    try:
        for i, name in enumerate(SPLITS):
            numbers = np.asarray(split[name])
            if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0):
                raise ValueError(name)
            where[numbers.astype(np.int64)] = i
        num = sum(map(np.size, split.values()))
        once = np.count_nonzero(where < len(SPLITS)) == num
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        once = False
    if not once:
        expected = "sample numbers of train, valid and test, each number at most once"
        todo = 'give split={"train": [...], "valid": [...], "test": [...]}'
        raise UserError(f"a split of {num_samples} samples", expected, todo)
    return _part(where)


def part_of(stored: Variable, path: Path) -> Variable:
    """The variable ``part`` of a file, as :func:`part_variable` makes it.

    Args:
        stored: The words train, valid, test and unused, or numbers whose
            ``flag_values`` and ``flag_meanings`` give these words, by default 0 to 3.
        path: The file, for messages.

    Raises:
        UserError: It holds anything else.
    """
    words, about = stored.values.astype(str), stored.attrs
    if stored.dtype.kind in "biuf":
        values = np.ravel(about.get("flag_values", range(len(WORDS)))).tolist()
        texts = str(about.get("flag_meanings", " ".join(WORDS))).split()
        meanings = dict(zip(values, texts, strict=False))
        words = np.array([meanings.get(v, f"{v:g}") for v in stored.values.tolist()])
    words = np.char.strip(words)
    if stored.dims != ("sample",) or not np.isin(words, WORDS).all():
        shown = ", ".join(np.unique(words)[:3]) or "nothing"
        given = f"{path} with part along {', '.join(map(str, stored.dims))} of {shown}"
        expected = f"one of {', '.join(WORDS)} for each sample, or 0, 1, 2, 3"
        raise UserError(given, expected, "correct it, rename it, or leave it out")
    return _part(np.array([WORDS.index(word) for word in words], np.int8))


def _part(numbers: NDArray[np.int8]) -> Variable:
    about = {"flag_values": np.arange(len(WORDS), dtype=np.int8), "role": "part"}
    about["flag_meanings"] = " ".join(WORDS)
    return Variable("sample", numbers, about)


def split_of(part: Variable) -> dict[str, NDArray[np.int64]]:
    """Sample numbers of each part by the variable that :func:`part_of` returns."""
    return {name: np.flatnonzero(part.values == i) for i, name in enumerate(SPLITS)}
