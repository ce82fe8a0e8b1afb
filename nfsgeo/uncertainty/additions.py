"""Error bands and statistics of training inputs, as additions to a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric.data import Batch

from nfsgeo.data.splits import split_in_order
from nfsgeo.errors import UserError, option
from nfsgeo.evaluation.additions import Addition, Companion
from nfsgeo.evaluation.references import References
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Graphs
from nfsgeo.models import Task
from nfsgeo.training import RunPaths
from nfsgeo.training.run_data import RunData
from nfsgeo.uncertainty.band_features import BandFeatures, with_nearest
from nfsgeo.uncertainty.bands import Bands, needed
from nfsgeo.uncertainty.fitting import LEVEL, band_scores, fit_bands
from nfsgeo.uncertainty.out_of_distribution import InputStatistics, TrainingInputs

__all__ = ["InputsOfRun", "BandsOfRun", "check_bands"]

# Smallest number of training windows whose inputs are described, and largest number
# of those that are read.
FEWEST, MOST = 20, 512
# Fraction of the values that is masked in every second window.
GAPS = 0.2


def check_bands(used: RunData, task: Task, num: int) -> None:
    """Check before training that bands can be fitted.

    Args:
        used: The data, with the complete configuration.
        task: Task of the model.
        num: The number of validation windows.

    Raises:
        UserError: Bands are asked for, and there are too few windows or lead times.
    """
    if used.config.model.bands and (task.any_time or num < needed(LEVEL)):
        given = f"--bands with {num} validation windows"
        given += ", of lead times" * task.any_time
        expected, advice = f"at least {needed(LEVEL)}", _more_windows(used, task)
        if task.any_time:
            expected, advice = "a model without lead times", "leave out lead times"
        raise UserError(given, expected, f"{advice}, or leave out {option('bands')}")


def _more_windows(used: RunData, task: Task, part: str = "valid") -> str:
    """Return advice by which a part of the data has as many windows as bands need."""
    data, num, length = (
        used.config.data,
        len(used.samples(part)),
        task.n_in + task.n_out,
    )
    usual, later = data.evaluation_stride, math.ceil(needed(LEVEL) / num) - 1
    total = enough = needed(LEVEL)
    if num < used.file.num_samples:
        total = next(n for n in count(enough) if len(split_in_order(n)[part]) >= enough)
    advice = f"use more samples, {total} in all"
    advice += " at the default split" * (total > enough)
    rest = used.file.num_samples - enough
    free = data.test_file is None and data.max_valid is None and part == "valid"
    if free and rest >= 2 * enough:
        test = min(len(used.file.split["test"]), rest - enough)
        sizes = f"[{rest - test},{enough},{test}]"
        advice += f", or validate on more of them, {option('data.split', sizes)}"
    if data.split_by == "time" and usual:
        steps = data.length(length) + later * usual
        advice = f"use a longer series, with {steps} time steps in the {part} part"
    spare = len(used.steps[part]) - data.length(length)
    stride = min(task.n_out, spare // max(1, later))  # at most, for so many windows
    closer = task.has_time and 0 < stride < (usual or math.inf)
    # Windows across gaps in time are left out.
    if closer and num * len(used.starts(part, length, stride)) >= needed(LEVEL):
        strided = option("data.evaluation_stride", stride)
        advice += f", or train with validation windows closer together, {strided}"
        advice += ", which overlap, so that bands may cover less than their level"
    return advice


@dataclass(frozen=True)
class BandsOfRun(Addition):
    """Error bands of a model and of references, by name."""

    bands: Mapping[str, Bands]

    @staticmethod
    def path(paths: RunPaths) -> Path:
        return paths.bands

    def state(self) -> dict[str, Any]:
        return {name: bands.state() for name, bands in self.bands.items()}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        return cls({name: Bands.of_state(bands) for name, bands in state.items()})

    @classmethod
    def fit(cls, scored: ScoredModel, references: References | None) -> Self | None:
        if not scored.used.config.model.bands:
            return None
        return cls(fit_bands(scored, references or References(scored)))

    def calibrated(self, scored: ScoredModel, references: References | None) -> Self:
        if (num := len(scored.windows())) < needed(LEVEL):
            data = scored.used.config.data
            by_sample = data.split_by != "time" and data.evaluation_stride is None
            noun = "samples" if by_sample else "windows"
            raise UserError(
                f"{num} {noun} of {scored.used.file.path} to calibrate error bands",
                f"{needed(LEVEL)} {noun} for the level {LEVEL:g}",
                _more_windows(scored.used, scored.forecaster.task, "test"),
            )
        references = references or References(scored)
        return replace(self, bands=fit_bands(scored, references, self.bands))

    def scores(self, scored: ScoredModel, references: References) -> dict[str, Any]:
        return {"bands": band_scores(scored, self.bands, references)}

    def companion(
        self, forecaster: Forecaster, steps: int, level: float | None
    ) -> Companion | None:
        if level == 0 or steps != forecaster.task.n_out:
            return None
        level = LEVEL if level is None else level
        return _Ends(forecaster, self.bands["model"], level)


class _Ends(Companion):
    """The ends of the bands of a level."""

    suffixes = "lower", "upper"
    needs_observed = True  # points around the query points

    def __init__(self, forecaster: Forecaster, bands: Bands, level: float) -> None:
        self.forecaster, self.bands, self.level = forecaster, bands, level
        self.attributes = {"level": level}

    def connect(self, graphs: Graphs) -> Graphs:
        return with_nearest(graphs, self.forecaster.task.domain.normalised)

    def components(self, u: Tensor, batch: Batch) -> list[Tensor]:
        inputs = self.forecaster.inputs_of(batch)
        features = BandFeatures.of(self.forecaster, u, inputs)
        below, above = self.bands.ends(features, self.level).to(u)
        return [u - below, u + above]


@dataclass(frozen=True)
class InputsOfRun(Addition):
    """Statistics of the inputs of training."""

    training: TrainingInputs

    @staticmethod
    def path(paths: RunPaths) -> Path:
        return paths.inputs

    def state(self) -> dict[str, Any]:
        return vars(self.training)

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        return cls(TrainingInputs(**state))

    @classmethod
    def fit(cls, scored: ScoredModel, references: References | None) -> Self | None:
        windows = scored.windows("train", mesh=scored.used.training_mesh)
        if (num := len(windows)) < FEWEST:
            return None
        some: Any = Subset(windows, range(0, num, 1 + num // MOST))
        statistics = InputStatistics.of(scored.forecaster, some, gaps=GAPS)
        training = TrainingInputs.fit(*statistics.table())
        if scored.used.file.own_meshes:
            training = replace(training, points=statistics.points)
        return cls(training)

    def scores(self, scored: ScoredModel, references: References) -> dict[str, Any]:
        statistics = InputStatistics.of(scored.forecaster, scored.windows())
        return {"out_of_distribution": statistics.out_of_distribution(self.training)[0]}

    def companion(
        self, forecaster: Forecaster, steps: int, level: float | None
    ) -> Companion | None:
        return _Distances(forecaster, self.training)


class _Distances(Companion):
    """The distance of each sample from those of training."""

    def __init__(self, forecaster: Forecaster, training: TrainingInputs) -> None:
        self.statistics, self.training = InputStatistics(forecaster), training

    @torch.no_grad()
    def components(self, u: Tensor, batch: Batch) -> list[Tensor]:
        self.statistics.add(batch)
        return []

    def parameters(self) -> dict[str, Any]:
        return {
            "out_of_distribution": self.statistics.out_of_distribution(self.training)[1]
        }
