"""Error bands and statistics of training inputs, as additions to a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric.data import Batch

from nfsgeo.config import RunConfig
from nfsgeo.errors import UserError
from nfsgeo.evaluation.additions import Addition, Companion, read_stored
from nfsgeo.evaluation.references import References
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Graphs
from nfsgeo.models import Task
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.uncertainty.bands import BandFeatures, Bands, needed, with_nearest
from nfsgeo.uncertainty.fitting import LEVEL, band_scores, fit_bands
from nfsgeo.uncertainty.training_inputs import InputStatistics, TrainingInputs

__all__ = ["InputsOfRun", "BandsOfRun", "check_bands"]

# Fewest training windows whose inputs are kept, and most that are read.
FEWEST, MOST = 20, 512
# Share of the values that are missing in every other window.
GAPS = 0.2


def check_bands(config: RunConfig, task: Task, num: int) -> None:
    """Makes sure, before training, that bands can be fitted.

    Args:
        config: The resolved configuration.
        task: What the model maps.
        num: The number of validation windows.

    Raises:
        UserError: Bands are asked for, and there are too few windows or lead times.
    """
    if config.model.bands and (task.any_time or num < needed(LEVEL)):
        given = f"--bands with {num} validation windows"
        given += ", of lead times" * task.any_time
        wanted = f"at least {needed(LEVEL)}, without lead times"
        advice = "leave out lead times" if task.any_time else "use more samples"
        raise UserError(given, wanted, f"{advice}, or leave out --bands")


@dataclass(frozen=True)
class BandsOfRun(Addition):
    """Error bands of a model and of references, by name."""

    bands: Mapping[str, Bands]

    @classmethod
    def load(cls, paths: RunPaths) -> Self | None:
        def make(content: dict[str, Any]) -> dict[str, Bands]:
            return {name: Bands.of_state(state) for name, state in content.items()}

        bands = read_stored(paths.bands, make)
        return None if bands is None else cls(bands)

    @classmethod
    def of_run(
        cls,
        scored: ScoredModel,
        paths: RunPaths,
        references: References | None = None,
        *,
        own: bool = True,
        calibrate: bool = False,
    ) -> Self | None:
        known, num = cls.load(paths), len(scored.windows()) if calibrate else 0
        if calibrate and (known is None or num < needed(LEVEL)):
            there = "" if known is not None else "no "
            raise UserError(
                f"{num} samples to calibrate {there}bands of {paths.root}",
                f"bands, and {needed(LEVEL)} samples for the level {LEVEL:g}",
                "train with --bands" if there else "use a file with more samples",
            )
        if not calibrate and (known is not None or not scored.used.config.model.bands):
            return known
        earlier = None if known is None else known.bands
        bands = fit_bands(scored, references or References(scored), earlier)
        write_tensors(paths.bands, {name: of.state() for name, of in bands.items()})
        return cls(bands)

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
        around = BandFeatures.of(self.forecaster, u, inputs)
        below, above = self.bands.ends(around, self.level).to(u)
        return [u - below, u + above]


@dataclass(frozen=True)
class InputsOfRun(Addition):
    """Statistics of the inputs of training."""

    known: TrainingInputs

    @classmethod
    def load(cls, paths: RunPaths) -> Self | None:
        return read_stored(paths.inputs, lambda it: cls(TrainingInputs(**it)))

    @classmethod
    def of_run(
        cls,
        scored: ScoredModel,
        paths: RunPaths,
        references: References | None = None,
        *,
        own: bool = True,
        calibrate: bool = False,
    ) -> Self | None:
        if (stored := cls.load(paths)) is not None or not own:
            return stored
        windows = scored.windows("train", mesh=scored.used.training_mesh)
        if (num := len(windows)) < FEWEST:
            return None
        some: Any = Subset(windows, range(0, num, 1 + num // MOST))
        statistics = InputStatistics.of(scored.forecaster, some, gaps=GAPS)
        made = cls(TrainingInputs.fit(*statistics.table()))
        write_tensors(paths.inputs, vars(made.known))
        return made

    def scores(self, scored: ScoredModel, references: References) -> dict[str, Any]:
        statistics = InputStatistics.of(scored.forecaster, scored.windows())
        return statistics.unlike(self.known)[0]

    def companion(
        self, forecaster: Forecaster, steps: int, level: float | None
    ) -> Companion | None:
        return _Compared(forecaster, self.known)


class _Compared(Companion):
    """The distance of each sample from those of training."""

    def __init__(self, forecaster: Forecaster, known: TrainingInputs) -> None:
        self.statistics, self.known = InputStatistics(forecaster), known

    @torch.no_grad()
    def components(self, u: Tensor, batch: Batch) -> list[Tensor]:
        self.statistics.add(batch)
        return []

    def parameters(self) -> dict[str, Any]:
        return self.statistics.unlike(self.known)[1]
