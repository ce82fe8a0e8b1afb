"""The content of a run folder, as plain arrays and dictionaries."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles
from nfsgeo.data.times import time_texts
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import BY_TIME_STEP
from nfsgeo.geometry import Domain
from nfsgeo.report.numbers import axis_labels, with_unit
from nfsgeo.training import RunPaths

__all__ = ["Predictions", "RunFolder", "read_run_folder"]

T = TypeVar("T")


@dataclass(frozen=True)
class Predictions:
    """Predictions for a few test samples, in the data's own units.

    Args:
        domain: Box that holds the points.
        pos: Points ``[n, d]``.
        times: Times of all time steps, inputs first ``[n_in + n_out]``.
        samples: Numbers of the samples in the data file ``[S]``.
        x: Inputs ``[S, n, n_in, F]``.
        truth: ``[S, n, n_out, C]``.
        prediction: ``[S, n, n_out, C]``.
        error_by_time_step: Mean absolute error at each time step over the test set, by
            method: ``"model"`` and the baselines ``[n_out]``, or ``[n_out, C]`` for
            several components.
        component_names: Names of the ``C`` components.
        component_units: Their units, ``""`` where it is not known.
        axes: Names of the axes, with their units where they are known.
        input_names: Names of the static inputs of a problem without time, if known.
        time_unit: Unit of the times, ``""`` where it is not known.
        triangles: Of a mesh in the plane, point numbers ``[m, 3]``, None without any.
    """

    domain: Domain
    pos: Doubles
    times: Doubles
    samples: NDArray[np.int64]
    x: Doubles
    truth: Doubles
    prediction: Doubles
    error_by_time_step: dict[str, Doubles]
    component_names: list[str]
    component_units: list[str]
    axes: list[str]
    input_names: list[str]
    time_unit: str = ""
    triangles: NDArray[np.int64] | None = None

    @property
    def quantities(self) -> list[str]:
        """Names of the components, followed by their units."""
        pairs = zip(self.component_names, self.component_units, strict=True)
        return [with_unit(name, unit) for name, unit in pairs]

    @property
    def steady(self) -> bool:
        """Whether the problem has no time: a coefficient in, a solution out."""
        return len(self.times) < self.x.shape[2] + self.truth.shape[2]

    @property
    def times_out(self) -> Doubles:
        """Times of the predicted time steps ``[n_out]``."""
        return self.times[-self.truth.shape[2] :]

    @property
    def leads(self) -> Doubles:
        """Times of the predicted time steps after the last input ``[n_out]``."""
        return self.times_out - self.times[self.x.shape[2] - 1]

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
    metrics: dict[str, Doubles] = field(default_factory=dict)
    unseen: dict[str, Doubles] = field(default_factory=dict)
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
    return RunFolder(
        path=path,
        config=_read(paths.config, _mapping(yaml.safe_load)) or {},
        environment=_read(paths.environment, _mapping(json.loads)) or {},
        summary=_read(paths.summary, _mapping(json.loads)) or {},
        metrics=_read(paths.metrics, _columns) or {},
        unseen=_read(paths.unseen, _columns) or {},
        predictions=_read_predictions(paths.evaluation),
    )


def _read(path: Path, parse: Callable[[str], T]) -> T | None:
    if not path.is_file():
        return None
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(
        f"{path} ({reason})", "a file that nfsgeo wrote", "remove it and try again"
    )


def _mapping(parse: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    def checked(text: str) -> dict[str, Any]:
        value = parse(text)
        if not isinstance(value, dict):
            raise ValueError(f"holds a {type(value).__name__}, not a mapping")
        return value

    return checked


def _columns(text: str) -> dict[str, Doubles]:
    """Columns of a table of numbers; an empty cell is NaN."""
    rows = list(csv.DictReader(text.splitlines()))
    if not rows:
        return {}
    return {
        name: np.array([float(row[name] or "nan") for row in rows])
        for name in rows[0]
        if name is not None and all(isinstance(row[name], str) for row in rows)
    }


def _read_predictions(path: Path) -> Predictions | None:
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _predictions(dict(arrays))
    except Exception as error:  # zipfile's own errors derive from Exception
        raise _damaged(path, error) from error


def _predictions(arrays: dict[str, NDArray[Any]]) -> Predictions:
    truth = arrays["truth"]
    domain = Domain.from_dict(arrays)
    names = [str(name) for name in arrays["component_names"]]
    units = [str(unit) for unit in arrays.get("component_units", [""] * len(names))]
    if not len(units) == len(names) == truth.shape[-1]:
        raise ValueError(f"{len(names)} names and {len(units)} units of components")
    return Predictions(
        domain=domain,
        pos=arrays["pos"].astype(np.float64),
        times=arrays["times"].astype(np.float64).reshape(-1),
        samples=arrays["sample"],
        x=arrays["x"].astype(np.float64),
        truth=truth.astype(np.float64),
        prediction=arrays["prediction"].astype(np.float64),
        error_by_time_step={
            name: arrays[key] for name, key in BY_TIME_STEP.items() if key in arrays
        },
        component_names=names,
        component_units=units,
        input_names=[str(name) for name in arrays.get("input_names", ())],
        time_unit=str(arrays.get("time_unit", "")),
        triangles=arrays.get("triangles"),
        axes=axis_labels(domain, [str(unit) for unit in arrays.get("axis_units", ())]),
    )
