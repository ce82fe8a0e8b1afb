"""The content of a run folder, as tables, arrays and dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.data.times import clock, time_texts
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import BY_TIME_STEP
from nfsgeo.evaluation.station_series import SERIES
from nfsgeo.geometry import Domain
from nfsgeo.report.text import axis_labels, with_unit
from nfsgeo.training import RunPaths

__all__ = ["Predictions", "RunFolder", "read_run_folder"]


@dataclass(frozen=True)
class Predictions:
    """Predictions for a few test samples, in the data's own units."""

    domain: Domain
    pos: Doubles  # points [n, d]
    times: Doubles  # of all time steps, inputs first [n_in + n_out]
    samples: NDArray[np.int64]  # their numbers in the data file [S]
    x: Doubles  # inputs [S, n, n_in, F]
    truth: Doubles  # [S, n, n_out, C]
    prediction: Doubles  # [S, n, n_out, C]
    # Mean absolute error over the test set, of the model and the baselines [n_out], or
    # [n_out, C] for several components.
    error_by_time_step: dict[str, Doubles]
    component_names: list[str]
    quantities: list[str]  # the same, followed by their units where they are known
    axes: list[str]  # their names, with their units where they are known
    input_names: list[str]  # of static inputs of a problem without time, if known
    time_unit: str  # "" where it is not known
    triangles: Indices | None  # of a mesh in the plane, point numbers [m, 3]
    # Names of a few stations [K], times [T], and what was observed and predicted there
    # [K, T, C]; empty where points have no names.
    stations: tuple[NDArray[Any], ...]

    @property
    def steady(self) -> bool:
        """Whether the problem has no time: a coefficient in, a solution out."""
        return len(self.times) < self.x.shape[2] + self.truth.shape[2]

    @property
    def moving(self) -> bool:
        """Whether there are predictions at several times."""
        return not self.steady and len(self.times_out) > 1

    @property
    def times_out(self) -> Doubles:
        """Times of the predicted time steps ``[n_out]``."""
        return self.times[-self.truth.shape[2] :]

    @property
    def leads(self) -> tuple[Doubles, str]:
        """Predicted times after the last input ``[n_out]``, and their unit."""
        times, unit = clock(self.times, self.time_unit)
        return times[-len(self.times_out) :] - times[self.x.shape[2] - 1], unit

    def when(self, step: int) -> str:
        """The time of a predicted time step, as text."""
        return time_texts(self.times_out, self.time_unit)[step]


@dataclass(frozen=True)
class RunFolder:
    """The files of a run; what is not there is empty or None."""

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    unseen: pd.DataFrame = field(default_factory=pd.DataFrame)
    predictions: Predictions | None = None

    @property
    def steady(self) -> bool:
        """Whether the problem has no time, as far as the files tell."""
        if self.predictions is not None:
            return self.predictions.steady
        data = self.config.get("data")
        return isinstance(data, dict) and data.get("n_in") == 0


def read_run_folder(path: Path) -> RunFolder:
    """Reads a run folder.

    Raises:
        UserError: The folder holds no run, or one of its files is damaged.
    """
    paths = RunPaths(path)
    if not (paths.summary.is_file() or paths.config.is_file()):
        raise UserError(
            f"{path}",
            "a run folder with a config.yaml or summary.json",
            "give the folder that 'nfsgeo train' wrote",
        )
    files: dict[str, tuple[Path, Callable[[Path], Any]]] = {
        "config": (paths.config, _mapping),
        "environment": (paths.environment, _mapping),
        "summary": (paths.summary, _mapping),
        "metrics": (paths.metrics, _numbers),
        "unseen": (paths.unseen, _numbers),
        "predictions": (paths.evaluation, _predictions),
    }
    found = {}
    for name, (file, read) in files.items():
        if file.is_file():
            try:
                found[name] = read(file)
            except Exception as error:  # zipfile's own errors derive from Exception
                reason = (str(error) or type(error).__name__).splitlines()[0]
                given, todo = f"{file} ({reason})", "remove it and try again"
                raise UserError(given, "a file that nfsgeo wrote", todo) from error
    return RunFolder(path, **found)


def _mapping(file: Path) -> dict[str, Any]:
    """A file of YAML, or of JSON, which allows NaN."""
    parse = yaml.safe_load if file.suffix == ".yaml" else json.loads
    value = parse(file.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"holds a {type(value).__name__}, not a mapping")
    return value


def _numbers(file: Path) -> pd.DataFrame:
    return pd.read_csv(file).astype(float)


def _predictions(file: Path) -> Predictions:
    with np.load(file, allow_pickle=False) as stored:
        arrays = dict(stored)
    domain = Domain.from_dict(arrays)
    names = [str(name) for name in arrays["component_names"]]
    units = [str(unit) for unit in arrays.get("component_units", [""] * len(names))]
    if not len(units) == len(names) == arrays["truth"].shape[-1]:
        raise ValueError(f"{len(names)} names and {len(units)} units of components")
    fields = ("pos", "x", "truth", "prediction")
    return Predictions(
        domain=domain,
        **{name: arrays[name].astype(np.float64) for name in fields},
        times=arrays["times"].astype(np.float64).reshape(-1),
        samples=arrays["sample"],
        error_by_time_step={
            name: arrays[key] for name, key in BY_TIME_STEP.items() if key in arrays
        },
        component_names=names,
        quantities=[with_unit(*pair) for pair in zip(names, units, strict=True)],
        input_names=[str(name) for name in arrays.get("input_names", ())],
        time_unit=str(arrays.get("time_unit", "")),
        triangles=arrays.get("triangles"),
        stations=tuple(arrays[name] for name in SERIES if name in arrays),
        axes=axis_labels(domain, [str(unit) for unit in arrays.get("axis_units", ())]),
    )
