"""The data of a run: a file, or two for training and test, or the demonstration's."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.concatenation import concatenated
from nfsgeo.data.generation import generate
from nfsgeo.data.splits import SPLITS, split_in_order
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.training.config import DataSection

__all__ = ["demo_file", "open_source"]


def demo_file(progress: Progress = silent) -> Path:
    """Navier-Stokes on a coarse grid, made once and kept in the user's cache.

    Viscosity 1e-3, a snapshot every 0.25 time units.

    Args:
        progress: As :func:`nfsgeo.data.generation.generate` takes it.
    """
    return generate(
        "navier-stokes",
        None,
        samples=360,
        resolution=64,
        num_steps=20,
        workers=os.cpu_count() or 1,
        progress=progress,
    )


def open_source(data: DataSection, progress: Progress = silent) -> Fields:
    """The fields that a run is trained, validated and tested on.

    Args:
        data: Its files, what is known ahead, and the parts of the data.
        progress: As for :func:`demo_file`.

    Raises:
        UserError: A file cannot be read, the two are not of one kind, or there are not
            enough samples for the parts.
    """
    path = data.file or demo_file(progress)
    if data.test_file is None:
        fields = nfsgeo.data.open(path)
        num = fields.num_samples
        if data.split is None:
            return fields.with_known(data.known) if data.known else fields
        parts = _parts(data.split, num, fields.path)
    else:
        both = [Path(path), data.test_file]
        first, num = (nfsgeo.data.open(each).num_samples for each in both)
        fields = concatenated(both, nfsgeo.data.open, "samples")
        share = data.split[1] if data.split else 1 / 8
        valid = round(share if share >= 1 else share * first)
        if not 0 < valid < first:
            raise UserError(
                f"{first} samples of {path} to train and validate on",
                "some for each",
                "change data.split, or use a longer file",
            )
        order = np.arange(first + num)
        cuts = first - valid, first
        parts = dict(zip(SPLITS, np.split(order, cuts), strict=True))
    fields = fields.with_split(parts)
    return fields.with_known(data.known) if data.known else fields


def _parts(
    split: tuple[float, float, float], num: int, path: Path
) -> dict[str, NDArray[np.int64]]:
    """Sample numbers of each part, of three fractions or three numbers of samples."""
    if abs(sum(split) - 1) < 1e-6 and min(split) > 0:
        train, valid, test = (each / sum(split) for each in split)
        return split_in_order(num, (train, valid, test))
    if any(each != int(each) for each in split) or sum(split) > num:
        raise UserError(
            f"data.split={list(split)} with {num} samples of {path}",
            "three fractions with the sum 1, or three numbers of samples that it has",
            "for example --set data.split=[0.8,0.1,0.1]",
        )
    train, valid, test = map(int, split)
    order = np.arange(num)
    return {
        "train": order[:train],
        "valid": order[train : train + valid],
        "test": order[num - test :],
    }
