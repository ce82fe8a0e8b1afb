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
from nfsgeo.data.times import time_texts
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import BY_TIME_STEP
from nfsgeo.geometry import Domain
from nfsgeo.report.text import axis_labels, with_unit
from nfsgeo.training import RunPaths

__all__ = ["Predictions", "RunFolder", "read_run_folder"]


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
        quantities: The same, followed by their units where these are known.
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
    quantities: list[str]
    axes: list[str]
    input_names: list[str]
    time_unit: str = ""
    triangles: Indices | None = None

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
        "config": (paths.config, lambda file: _mapping(yaml.safe_load, file)),
        "environment": (paths.environment, lambda file: _mapping(json.loads, file)),
        "summary": (paths.summary, lambda file: _mapping(json.loads, file)),
        "metrics": (paths.metrics, lambda file: pd.read_csv(file).astype(float)),
        "unseen": (paths.unseen, lambda file: pd.read_csv(file).astype(float)),
        "predictions": (paths.evaluation, _predictions),
    }
    found = {}
    for name, (file, read) in files.items():
        if file.is_file():
            try:
                found[name] = read(file)
            except Exception as error:  # zipfile's own errors derive from Exception
                reason = (str(error) or type(error).__name__).splitlines()[0]
                raise UserError(
                    f"{file} ({reason})",
                    "a file that nfsgeo wrote",
                    "remove it and try again",
                ) from error
    return RunFolder(path, **found)


def _mapping(parse: Callable[[str], Any], file: Path) -> dict[str, Any]:
    value = parse(file.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"holds a {type(value).__name__}, not a mapping")
    return value


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
        axes=axis_labels(domain, [str(unit) for unit in arrays.get("axis_units", ())]),
    )
