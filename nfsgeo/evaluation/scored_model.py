"""A trained model on the fields that it is scored on, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric.data import Batch

from nfsgeo.config import TrainerSection
from nfsgeo.config.errors import explained
from nfsgeo.data.windows import Connect, WindowDataset, batches
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster, rollout
from nfsgeo.forecast.bands import Bands
from nfsgeo.forecast.training_inputs import InputStatistics, TrainingInputs
from nfsgeo.forecast.transforms import Normalise
from nfsgeo.training import FieldErrors, RunConfig, RunPaths, read_config, restore
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.processes import check_device, device_of
from nfsgeo.training.run_data import Observation, RunData
from nfsgeo.training.run_paths import Run, find_run

__all__ = ["LoadedRun", "ScoredModel", "open_run", "predictions", "read_bands"]

T = TypeVar("T")


@dataclass(frozen=True)
class ScoredModel:
    """A trained model, and the fields that it is scored on, where it observes them."""

    forecaster: Forecaster
    used: RunData

    def windows(
        self,
        part: str = "test",
        *,
        mesh: Observation | None = None,
        n_out: int | None = None,
        noise: float | None = None,
    ) -> WindowDataset:
        """Windows as those of training: without points that have no value at all.

        ``noise`` is its standard deviation on the inputs, in that of the training data;
        None for that of training, as for the others.
        """
        scale, absent = self.forecaster.find(Normalise), self.forecaster.drops_absent
        found = self.used.windows(part, mesh, n_out=n_out, drop_absent=absent)
        if noise := self.used.config.data.input_noise if noise is None else noise:
            assert scale is not None
            found.noise = noise * scale.observed
        return found

    def training_inputs(self, paths: RunPaths) -> TrainingInputs | None:
        """Statistics of up to 512 training windows, stored once in the run's folder.

        None of fewer than 20 windows.
        """
        if (known := read_training_inputs(paths)) is not None:
            return known
        windows = self.windows("train", mesh=self.used.training_mesh)
        if (num := len(windows)) < 20:
            return None
        some: Any = Subset(windows, range(0, num, 1 + num // 512))
        statistics = InputStatistics.of(self.forecaster, some, gaps=0.2)
        known = TrainingInputs.fit(*statistics.table())
        write_tensors(paths.inputs, vars(known))
        return known

    def errors(self) -> FieldErrors:
        """Errors of no sample yet."""
        statistics = self.forecaster.task.statistics
        return FieldErrors(**statistics).to(self.forecaster.device)

    def errors_in_parts(
        self, windows: WindowDataset, num_first: Callable[[int], int] | None = None
    ) -> tuple[dict[str, float], ...]:
        """Errors at all predicted points, the first ones of each sample, the others.

        ``num_first`` tells how many of these a sample has; its observed ones if None.
        Errors are NaN where there are no points.
        """
        found = tuple(self.errors() for _ in range(3))
        size = self.used.config.data.batch_size
        for batch, prediction in predictions(self.forecaster, windows, size):
            graphs, nums = batch.graphs, batch.graphs.sizes
            truth = batch.y if graphs.query_sizes is None else batch.query_y
            if num_first is not None:
                nums = tuple(map(num_first, batch.sample.tolist()))
            sizes = torch.tensor(graphs.query_sizes or graphs.sizes)
            sample = torch.arange(len(sizes)).repeat_interleave(sizes)
            rank = torch.arange(len(sample)) - (sizes.cumsum(0) - sizes)[sample]
            first = (rank < torch.tensor(nums)[sample]).to(truth.device)
            sample = sample.to(truth.device)
            everywhere = torch.ones_like(first)
            for errors, at in zip(found, (everywhere, first, ~first), strict=True):
                errors.update(prediction[at], truth[at], sample[at])
        return tuple(errors.compute() for errors in found)


@dataclass(frozen=True)
class LoadedRun:
    """A trained run.

    Attributes:
        config: Its resolved configuration.
        forecaster: Its best model.
        bands: Error bands of the model and of references, by name.
        training_inputs: Statistics of its training inputs, where they are known.
    """

    config: RunConfig
    forecaster: Forecaster
    bands: Mapping[str, Bands]
    training_inputs: TrainingInputs | None


def open_run(run: Run, device: str | None = None) -> LoadedRun:
    """A run with its best model, on ``device`` or the run's own."""
    paths = find_run(run)
    config = read_config(paths.config)
    own = config.trainer
    with explained():
        section = TrainerSection.model_validate(
            {"device": device or own.device, "precision": own.precision}
        )
    check_device(section)
    forecaster = restore(paths.best, config).eval().to(device_of(section))
    known = read_training_inputs(paths)
    return LoadedRun(config, forecaster, read_bands(paths), known)


def read_bands(paths: RunPaths) -> dict[str, Bands]:
    """The error bands of a run and of its references, none where it has none."""

    def made(found: dict[str, Any]) -> dict[str, Bands]:
        return {name: Bands.of_state(state) for name, state in found.items()}

    return _read(paths.bands, made, {})


def read_training_inputs(paths: RunPaths) -> TrainingInputs | None:
    """Statistics of the training inputs of a run, None where it has none."""
    return _read(paths.inputs, lambda it: TrainingInputs(**it), None)


def _read(path: Path, made: Callable[[dict[str, Any]], T], absent: T) -> T:
    """What is made of the content of a file of a run, which need not be there."""
    if not path.exists():
        return absent
    content = read_checkpoint(path, of_nfsgeo=False)
    try:
        return made(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} from another version of nfsgeo",
            "one of this version",
            f"remove it, and evaluate {path.parents[1]} again",
        ) from error


@torch.no_grad()
def predictions(
    forecaster: Forecaster,
    windows: WindowDataset,
    batch_size: int,
    *,
    connect: Connect | None = None,
    steps: int | None = None,
    ahead: Tensor | None = None,
    query_static: Callable[[Batch], Tensor | None] | None = None,
) -> Iterator[tuple[Batch, Tensor]]:
    """Batches of samples, in order, and their predicted fields ``[M, steps, C]``.

    A number of ``steps`` asks for a rollout. A model that can be asked for any time
    predicts those of the windows, or ``ahead`` ``[K]``. Static inputs at the query
    points are those of the windows, or what ``query_static`` tells of a batch.
    """
    for batch in batches(windows, batch_size, connect or forecaster.connect):
        batch = batch.to(forecaster.device)
        known: dict[str, Any] = forecaster.known_ahead(batch)
        if ahead is not None and (times := known["times"]) is not None:
            asked = ahead.to(times).expand(len(times), -1)
            known["times"] = torch.cat([times[:, : windows.n_in], asked], dim=1)
            batch.times = known["times"].flatten()  # error bands need them, too
        if query_static is not None:
            batch.query_static = query_static(batch)
        if steps is None:
            yield batch, forecaster.predict_batch(batch)
            continue
        graphs = batch.graphs
        if graphs.query_pos is not None:
            known["query_static"] = batch.get("query_static")
        u = rollout(forecaster, batch.x, batch.pos, steps, graphs=graphs, **known)
        yield batch, u
