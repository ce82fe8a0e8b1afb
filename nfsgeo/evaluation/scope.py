"""The samples of a file that are scored, and their points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from nfsgeo.data.io.opening import matches
from nfsgeo.data.splits import SPLITS
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError, option
from nfsgeo.models import MODELS
from nfsgeo.training.run_data import RunData
from nfsgeo.training.source import open_source

__all__ = ["Part", "describe_data", "describe_scored", "scoped"]

Part = Literal["all", "test"]
# Distance of points that count as the same, over the lengths of the domain.
SAME_POINT = 1e-5


def scoped(
    used: RunData,
    num_points: int,
    *,
    own_data: bool,
    part: Part | None,
    around: bool,
) -> tuple[RunData, Part]:
    """Return the data to score: the test part of the run's own file, or a named one.

    A named file is scored at all points, unless the model is tied to those of training
    or meshes around the points of the run are asked for. Where all samples are scored,
    they are the test part of the fields.

    Args:
        used: The file with the configuration of the run.
        num_points: Number of points of a training sample.
        own_data: Whether the file is that of the run.
        part: The part to score; None for the usual one.
        around: Whether meshes are around the points of the run.

    Raises:
        UserError: ``"all"`` of the run's own file, there is no test part, or a named
            file lacks the points that the model is tied to, or the grid that it needs.
    """
    config, file = used.config, used.file
    info, data = MODELS[config.model.name], config.data
    part = part or ("test" if own_data else "all")
    if part == "all" and own_data:
        raise UserError(
            "--part all of the data of the run",
            "the test part, since the model was trained on the others",
            "leave it out, or name the file to score with --data FILE",
        )
    if part == "test" and not len(used.samples("test")):
        raise UserError(
            f"{file.path} without test samples, {file.num_samples} in all",
            "at least one to score",
            f"give {option('part', 'all')} with --data FILE",
        )
    if own_data:
        return used, part
    # Measurements have noise of their own.
    changes: dict[str, Any] = {"max_test": None, "max_train": None, "input_noise": 0.0}
    if part == "all":
        parts = dict.fromkeys(SPLITS, np.arange(0))
        file = file.with_split(parts | {"test": np.arange(file.num_samples)})
        changes["split_by"] = "series"  # windows have all time steps
    if not info.unseen_meshes:
        _check_tied(used, num_points)
    elif not around:
        # No more points per batch than in training.
        most = max(num_points, *map(file.num_points, range(file.num_samples)))
        changes["batch_size"] = max(1, data.batch_size * num_points // most)
        changes |= {"mesh": "all", "points": None, "grid": None}
        changes["mesh_per_sample"] = False
    return RunData(config.changed(data=data.changed(**changes)), file), part


def describe_scored(
    used: RunData,
    test: WindowDataset,
    part: Part,
    points: tuple[int, int],
    run_data: RunData | None = None,
) -> dict[str, Any]:
    """Return the entry ``"scored"`` of a summary.

    ``"points"`` is one number, or the smallest and the largest where samples differ;
    ``"of_points"`` is the number in the file, None if points lie between these.
    ``"trained_on"`` counts samples that the run was trained or validated on, and
    ``"windows"`` the scored windows, if samples have several. ``"data_of_run"`` is
    there, and true, where a named file holds the data of the run.

    Args:
        used: The file with the configuration of the run.
        test: The windows that were scored.
        part: The part of the file.
        points: Smallest and largest number of points of a sample.
        run_data: The data of the run, where the file was named and holds them.
    """
    file, samples = test.file, np.unique(test.samples).tolist()
    scored: dict[str, Any] = {"part": part, "samples": len(samples)}
    scored |= {"of_samples": file.num_samples, "points": _span(points)}
    between, trained = test.mesh(samples[0]).index is None, 0
    scored["of_points"] = None if between else _span(map(file.num_points, samples))
    if part == "all" and run_data is not None:
        parts = [run_data.samples(name) for name in ("train", "valid")]
        trained = len(np.unique(np.concatenate(parts)))
    scored |= {"trained_on": trained} | ({"data_of_run": True} if run_data else {})
    scored["tied"] = not MODELS[used.config.model.name].unseen_meshes
    return scored | ({"windows": len(test)} if len(test) > len(samples) else {})


def describe_data(used: RunData) -> dict[str, Any]:
    """Return the entry ``"dataset"`` of a summary.

    It has the number of ``"samples"`` of each part and how they were ``"split"``, the
    units of ``"fields"`` and ``"inputs"`` by name, and the numbers of ``"points"`` of a
    sample of the file and of ``"time_steps"``.
    """
    file, data = used.file, used.config.data
    samples = {part: len(used.samples(part)) for part in SPLITS}
    split = "in the order of the file"
    if data.split_by == "time":
        samples, split = {"series": file.num_samples}, "by time"
    elif data.test_file is not None:
        split = "by data.test_file"
    elif data.split is not None:
        split = "by data.split"
    elif "part" in file.dataset:
        split = "by the file"
    inputs = [*file.input_names, *file.forcing_names]
    return {
        "samples": samples,
        "split": split,
        "fields": {name: file.units.get(name, "") for name in file.component_names},
        "inputs": {name: file.units.get(name, "") for name in inputs},
        "points": _span(map(file.num_points, range(file.num_samples))),
        "time_steps": len(file.times),
    }


def _span(numbers: Iterable[int]) -> int | list[int]:
    """The smallest and the largest number, or the only one."""
    ordered = sorted(set(numbers))
    return ordered[0] if len(ordered) == 1 else [ordered[0], ordered[-1]]


def _check_tied(used: RunData, num_points: int) -> None:
    """Refuse a file whose points are not those of training."""
    config, file, pos = used.config, used.file, used.mesh(0).pos
    path, same = config.data.file, len(pos) == num_points
    if same and path is not None and matches(path) and path != file.path.resolve():
        trained = RunData(config, open_source(config.data))
        off = np.abs(trained.mesh(0).pos - pos)
        same = bool((off <= SAME_POINT * np.array(file.domain.lengths)).all())
    if not same:
        raise UserError(
            f"{file.path} with other points than those of training",
            f"the same {num_points}, which {config.model.name} is tied to",
            "use data at these points, or a model that takes any, such as nfs",
        )
