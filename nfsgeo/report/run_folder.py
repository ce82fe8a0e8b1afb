"""The content of a run folder, as tables, arrays and dictionaries."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nfsgeo.config.bounded_yaml import parse_yaml
from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import NODE_TYPE, Doubles, Indices
from nfsgeo.data.other_files import check_source
from nfsgeo.data.times import clock, time_texts
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import BY_TIME_STEP, SERIES
from nfsgeo.geometry import Domain
from nfsgeo.report.text import axis_labels, time_axis, with_unit
from nfsgeo.training import RunPaths
from nfsgeo.training.checkpoints import read_checkpoint, weights_digest

__all__ = ["Predictions", "RunFolder", "read_run_folder"]


@dataclass(frozen=True)
class Example:
    """A test sample in the data's own units, and what was predicted for it."""

    rank: str  # by its error: best, median, worst, or ""
    name: str  # with its number in the data file
    key: tuple[int, float]  # that number and the first time, in the order of the file
    times: Doubles  # [n_in + n_out]
    when: list[str]  # the predicted times as text
    pos: Doubles  # points [n, d]
    x: Doubles  # inputs [n, n_in, F]
    truth: Doubles  # [n, n_out, C]
    prediction: Doubles
    triangles: Indices | None  # of a mesh [m, 3]
    mesh_pos: Doubles | None  # points of that mesh [k, 2] if observed at some of them


class Predictions:
    """Predictions for a few test samples, in the data's own units.

    Args:
        arrays: The content of ``evaluation.npz``.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        def texts(name: str) -> list[str]:
            return [str(text) for text in arrays.get(name, ())]

        self.domain = Domain.from_dict(arrays)
        num, _, n_out, num_components = arrays["truth"].shape
        # Mean over the test set, by method, [n_out, C].
        self.error_by_time_step: dict[str, Doubles] = {
            name: arrays[key].reshape(n_out, -1)
            for name, key in BY_TIME_STEP.items()
            if key in arrays
        }
        self.mae: Doubles = arrays.get("mae_by_sample", np.empty(0))  # of all samples
        names, units = texts("component_names"), texts("component_units")
        units = units or [""] * len(names)
        if not len(units) == len(names) == num_components:
            raise ValueError(f"{len(names)} names and {len(units)} units of components")
        # Components, and the same with their units where they are known.
        self.component_names = names
        self.quantities = [with_unit(*pair) for pair in zip(names, units, strict=True)]
        # Inputs of a problem without time, and the meanings of those that are
        # categories by name; earlier versions knew the static ones alone.
        self.input_names = texts("input_names")
        of_inputs = zip(self.input_names, texts("input_units"), strict=False)
        self.input_units = dict(of_inputs)
        kinds = zip(self.input_names, texts("input_kinds"), strict=False)
        read = {name: json.loads(text) for name, text in kinds if text}
        if NODE_TYPE in self.input_names:
            read.setdefault(NODE_TYPE, {})
        self.categories = {
            name: {int(k): str(v) for k, v in meanings.items()}
            for name, meanings in read.items()
        }
        self.units = units
        self.axes = axis_labels(self.domain, texts("axis_units"))
        # Names, times and fields at some stations; empty where points have no names.
        self.stations = [arrays[name] for name in SERIES if name in arrays]
        self.time_unit = str(arrays.get("time_unit", ""))  # "" where it is not known
        ranks = texts("rank") or [""] * num
        examples = [self._example(arrays, k, rank) for k, rank in enumerate(ranks)]
        first = examples[0]
        # A problem without time has a coefficient as input and a solution as output.
        self.steady = len(first.times) < first.x.shape[1] + n_out
        self.moving = not self.steady and n_out > 1
        self.first = min(examples, key=lambda example: example.key)
        # By their errors: the best, the median and the worst, as far as it is known.
        self.examples = [e for e, rank in zip(examples, ranks, strict=True) if rank]
        self.examples = self.examples or examples
        # Times after the last input, as they stand on an axis, and its label.
        times, unit = clock(first.times, self.time_unit)
        last = 0.0 if self.steady else times[-n_out - 1]
        self.leads = time_axis(times[-n_out:] - last, unit)

    def _example(self, arrays: Mapping[str, Any], k: int, rank: str) -> Example:
        """Read a sample, of a mesh that may have fewer points than others."""
        # Earlier versions had one mesh and the same times for all samples.
        sample_arrays = {n: arrays[n][k] for n in ("x", "truth", "prediction")}
        ndims = {"times": 2, "pos": 3, "triangles": 3, "mesh_pos": 3}
        for name, ndim in ndims.items():
            if (array := arrays.get(name)) is not None:
                sample_arrays[name] = array[k] if array.ndim == ndim else array
        times, mesh = (
            sample_arrays.pop("times"),
            sample_arrays.pop("triangles", np.empty((0, 3))),
        )
        mesh, valid = mesh[mesh[:, 0] >= 0], ~np.isnan(sample_arrays["pos"]).any(axis=1)
        around = sample_arrays.pop("mesh_pos", np.empty((0, 2)))
        around = around[~np.isnan(around).any(axis=1)]
        fields = {
            name: field[valid].astype(float) for name, field in sample_arrays.items()
        }
        samples: list[int] = arrays["sample"].tolist()
        when = time_texts(times[-sample_arrays["truth"].shape[1] :], self.time_unit)
        name, key = f"sample {samples[k]}", (samples[k], float(times[0]))
        name += f", {when[0]}" * (samples.count(key[0]) > 1)  # windows of a series
        fields |= {"mesh_pos": around if len(around) else None}
        fields |= {"triangles": mesh if len(mesh) else None}
        return Example(rank, name, key, times, when, **fields)


@dataclass(frozen=True)
class RunFolder:
    """The files of a run; a missing one is empty or None."""

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    unseen: pd.DataFrame = field(default_factory=pd.DataFrame)
    predictions: Predictions | None = None


def read_run_folder(path: Path) -> RunFolder:
    """Read a run folder, without results of other weights than its best ones.

    Raises:
        UserError: The folder holds no run, or one of its files is damaged.
    """
    paths = RunPaths.existing(path)
    files: dict[str, tuple[Path, Callable[[Path], Any]]] = {
        "config": (paths.config, _mapping),
        "environment": (paths.environment, _mapping),
        "summary": (paths.summary, _mapping),
        "metrics": (paths.metrics, _numbers),
        "unseen": (paths.unseen, _numbers),
        "predictions": (paths.evaluation, _predictions),
    }
    content = {}
    for name, (file, read) in files.items():
        if file.is_file():
            with reading(file, "a file that nfsgeo wrote", "remove it and try again"):
                content[name] = read(file)
    weights = content.get("summary", {}).get("weights")
    with suppress(UserError, OSError):  # without a checkpoint
        if weights and weights_digest(read_checkpoint(paths.best)) != weights:
            text = "%s is of other weights and left out until the run is evaluated"
            logging.getLogger(__name__).warning(text, paths.summary)
            for name in ("summary", "unseen", "predictions"):
                content.pop(name, None)
    return RunFolder(path, **content)


def _mapping(file: Path) -> dict[str, Any]:
    """A file of YAML, or of JSON, which allows NaN."""
    parse = parse_yaml if file.suffix == ".yaml" else json.loads
    value = parse(file.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"holds a {type(value).__name__}, not a mapping")
    return value


def _numbers(file: Path) -> pd.DataFrame:
    return pd.read_csv(file).astype(float)


def _predictions(file: Path) -> Predictions:
    check_source(file)
    with np.load(file, allow_pickle=False) as arrays:
        return Predictions(dict(arrays))
