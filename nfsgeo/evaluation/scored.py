"""Which samples of a file are scored, and at which of its points."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

import nfsgeo.data
from nfsgeo.data import FieldFile
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.training import RunConfig
from nfsgeo.training.observation import mesh_of, observe

__all__ = ["Part", "choose_part", "describe_scored", "for_named_file"]

Part = Literal["all", "test"]


def choose_part(
    part: Part | None, config: RunConfig, file: FieldFile, named: Path | None
) -> Part:
    """The samples to score: of a named file all, of the run's own its test part.

    ``"all"`` becomes the split of the file, so that whatever takes its test part takes
    every sample.

    Args:
        part: What was asked for; None for what suits.
        config: Of the run.
        file: Opened, to be given that split.
        named: The file where one was named, None for the run's own.

    Raises:
        UserError: ``"all"`` without a named file, or there is no test part.
    """
    part = part or ("test" if named is None else "all")
    if part == "all" and named is None:
        raise UserError(
            "--part all of the data of the run",
            "the test part, since the model was trained on the others",
            "leave it out, or name the file to score with --data FILE",
        )
    if part == "all":
        file.split = dict.fromkeys(SPLITS, np.arange(file.num_samples))
    elif not len(file.split["test"]):
        raise UserError(
            f"{file.path} without test samples, {file.num_samples} in all",
            "at least one to score",
            "give --part all with --data FILE",
        )
    return part


def for_named_file(
    config: RunConfig, file: FieldFile, num_points: int, *, around: bool
) -> RunConfig:
    """The configuration to score a named file with: at all points, without limits.

    A model that is tied to the points of training keeps them.

    Args:
        config: Of the run.
        file: The named file.
        num_points: Points of training.
        around: Whether to keep them for larger meshes around them.

    Raises:
        UserError: The file lacks the points that the model is tied to, or the grid
            that it needs.
    """
    info = MODELS[config.model.name]
    changes: dict[str, Any] = {"max_test": None, "max_train": None}
    if not info.points and file.shape is None:
        raise UserError(
            f"the point cloud {file.path} with model {info.name}",
            "fields on a grid",
            "use a model that takes any points, such as nfs",
        )
    if not info.unseen_meshes:
        _check_tied(config, file, num_points)
    elif not around:
        changes |= {"mesh": "all", "points": None, "grid": None}
        changes |= {"mesh_per_sample": False}
        # No more points at once than in training.
        most = max(map(file.num_points, range(file.num_samples)))
        share = num_points / max(num_points, most)
        changes |= {"batch_size": max(1, int(config.data.batch_size * share))}
    data = config.data.model_copy(update=changes)
    return config.model_copy(update={"data": data})


def describe_scored(
    config: RunConfig, test: WindowDataset, part: Part, points: tuple[int, int]
) -> dict[str, Any]:
    """What was scored, as ``"scored"`` of a summary.

    ``"points"`` is one number, or the smallest and the largest where samples differ;
    ``"of_points"`` counts those of the file, None where points lie between them.
    ``"trained_on"`` counts samples that the run has seen.

    Args:
        config: Of the run.
        test: The samples.
        part: Which part of the file they are.
        points: Smallest and largest number of points of a sample.
    """
    file = test.file
    there = [file.num_points(sample) for sample in test.samples]
    between = mesh_of(test.mesh, test.samples[0]).index is None
    return {
        "part": part,
        "samples": len(test),
        "of_samples": file.num_samples,
        "points": _span(*points),
        "of_points": None if between else _span(min(there), max(there)),
        "trained_on": _num_seen(config, file) if part == "all" else 0,
        "tied": not MODELS[config.model.name].unseen_meshes,
    }


def _check_tied(config: RunConfig, file: FieldFile, num_points: int) -> None:
    """Makes sure that a file has the very points of training."""
    found = _first(config, file)
    same = len(found) == num_points
    own = config.data.file
    if same and own is not None and own.exists() and own != file.path.resolve():
        with nfsgeo.data.open(own) as trained:
            same = np.allclose(_first(config, trained).pos, found.pos)
    if not same:
        raise UserError(
            f"{file.path} with other points than those of training",
            f"the same {num_points}, which {config.model.name} is tied to",
            "use data at these points, or a model that takes any, such as nfs",
        )


def _first(config: RunConfig, file: FieldFile) -> Mesh:
    return mesh_of(observe(config.data, file, config.seed), 0)


def _num_seen(config: RunConfig, file: FieldFile) -> int:
    """Training and validation samples of the run, if this is its own file."""
    if config.data.file != file.path.resolve():
        return 0
    with nfsgeo.data.open(file.path) as own:
        train, valid = len(own.split["train"]), len(own.split["valid"])
    limits = config.data.max_train or train, config.data.max_valid or valid
    return min(train, limits[0]) + min(valid, limits[1])


def _span(least: int, most: int) -> int | list[int]:
    return least if least == most else [least, most]
