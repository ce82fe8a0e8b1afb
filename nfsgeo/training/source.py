"""The fields of a run: its file, with training, validation and test samples."""

from __future__ import annotations

import os
from pathlib import Path

import nfsgeo.data
from nfsgeo.config import DataSection
from nfsgeo.data import Fields
from nfsgeo.data.conventions import Indices
from nfsgeo.data.generation import generate
from nfsgeo.data.io.joining import joined
from nfsgeo.data.io.opening import takes_columns
from nfsgeo.data.splits import published_split, split_in_order
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent

__all__ = ["open_as", "open_source", "with_parts"]


def open_source(data: DataSection, progress: Progress = silent) -> Fields:
    """Open the fields that a run is trained, validated and tested on.

    The default is Navier-Stokes on a coarse grid with viscosity 1e-3 and a snapshot
    every 0.25 time units, which is generated once and cached.

    Args:
        data: Settings of the data.
        progress: Called while the default data are generated.

    Raises:
        UserError: The file cannot be read, or the parts do not fit to it.
    """
    path = data.file or generate(
        "navier-stokes",
        None,
        samples=360,
        resolution=64,
        num_steps=20,
        workers=os.cpu_count() or 1,
        progress=progress,
    )
    return with_parts(data, nfsgeo.data.open(path, columns=data.columns))


def with_parts(data: DataSection, fields: Fields) -> Fields:
    """Give the fields of a file the parts and the known fields of a run.

    Args:
        data: Settings of the data.
        fields: The content of ``data.file``.

    Raises:
        UserError: The parts do not fit to the file.
    """
    split, path = data.split, fields.path
    if data.test_file is not None:
        num, part = fields.num_samples, split[1] if split else 1 / 8
        fields = joined([fields, open_as(data, data.test_file)], "samples")
        valid = round(part if part >= 1 else part * num)
        if not 0 < valid < num:
            raise UserError(
                f"{num} samples of {path} to train and validate on",
                "some for each",
                "change data.split, or use a longer file",
            )
        sizes = num - valid, valid, fields.num_samples - num
        fields = fields.with_split(published_split(fields.num_samples, *sizes))
    elif split is not None:
        fields = fields.with_split(_parts(split, fields))
    return fields.with_known(data.known) if data.known else fields


def open_as(data: DataSection, path: Path) -> Fields:
    """Open another file than that of training, with the same roles of columns.

    Args:
        data: Settings of the data.
        path: The file.
    """
    columns = data.columns if data.columns and takes_columns(path) else None
    return nfsgeo.data.open(path, columns=columns)


def _parts(split: tuple[float, float, float], fields: Fields) -> dict[str, Indices]:
    """Return the samples of each part, from three fractions or numbers of samples."""
    num = fields.num_samples
    if abs(sum(split) - 1) < 1e-6 and min(split) > 0:
        train, valid, test = (part / sum(split) for part in split)
        return split_in_order(num, (train, valid, test))
    if any(size != int(size) for size in split) or sum(split) > num:
        raise UserError(
            f"data.split={list(split)} with {num} samples of {fields.path}",
            "three fractions with the sum 1, or three numbers of samples that it has",
            "for example --set data.split=[0.8,0.1,0.1]",
        )
    return published_split(num, *map(int, split))
