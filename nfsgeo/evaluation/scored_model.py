"""A trained model on the fields that it is scored on, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.config import TrainerSection
from nfsgeo.config.errors import explained
from nfsgeo.data import Fields
from nfsgeo.data.io.opening import matches
from nfsgeo.data.meshes import Observation
from nfsgeo.data.windows import Connect, WindowDataset, batches
from nfsgeo.errors import UserError, option
from nfsgeo.evaluation.additions import Addition, additions_of
from nfsgeo.forecast import Forecaster, matched, rollout
from nfsgeo.training import FieldErrors, RunConfig, read_config, restore
from nfsgeo.training.checkpoints import own_checkpoint
from nfsgeo.training.lightning_setup import check_device, device_of
from nfsgeo.training.reading import read_as_trained
from nfsgeo.training.run_data import RunData
from nfsgeo.training.run_paths import Run, find_run
from nfsgeo.training.source import open_source, relocated, with_parts

__all__ = ["LoadedRun", "ScoredModel", "open_run", "points_of", "predictions"]


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
        stride: int | None = None,
        max_samples: int | None = None,
    ) -> WindowDataset:
        """Return windows like those of training, without points that have no value.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
            mesh: The points at which samples are observed; None for those of training.
            n_out: Time steps to predict; None for those of training.
            noise: Standard deviation of noise on the inputs, in that of the training
                data; None for that of training.
            stride: Time steps from one window to the next.
            max_samples: Number of samples at most, the first ones.
        """
        windows = self.used.windows(
            part, mesh, n_out=n_out, stride=stride, max_samples=max_samples
        )
        noise = self.used.config.data.input_noise if noise is None else noise
        read_as_trained(windows, self.forecaster, noise)
        return windows

    def errors(self) -> FieldErrors:
        """Return the metric of errors, before the first sample."""
        statistics = self.forecaster.task.statistics
        return FieldErrors(**statistics).to(self.forecaster.device)

    def errors_in_parts(
        self, windows: WindowDataset, num_first: Callable[[int], int] | None = None
    ) -> tuple[dict[str, float], ...]:
        """Errors at all predicted points, the first ones of each sample, the others.

        The first ones are the observed points, or as many as ``num_first`` says of a
        sample. Errors are NaN where there are no points.
        """
        parts = tuple(self.errors() for _ in range(3))
        size = self.used.config.data.batch_size
        for batch, prediction in predictions(self.forecaster, windows, size):
            sizes = batch.graphs.predicted_sizes
            truth = batch.y if batch.graphs.query_sizes is None else batch.query_y
            nums = batch.graphs.sizes
            if num_first is not None:
                nums = tuple(map(num_first, batch.sample.tolist()))
            sample, first = (
                tensor.to(truth.device) for tensor in points_of(sizes, nums)
            )
            for errors, at in zip(parts, (first | True, first, ~first), strict=True):
                errors.update(prediction[at], truth[at], sample[at])
        return tuple(errors.compute() for errors in parts)


def points_of(sizes: Sequence[int], num_first: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the sample of each point ``[M]``, and whether it is one of its first.

    The samples follow each other, with so many points and first points each.
    """
    counts = torch.tensor(sizes)
    sample = torch.arange(len(counts)).repeat_interleave(counts)
    rank = torch.arange(len(sample)) - (counts.cumsum(0) - counts)[sample]
    return sample, rank < torch.tensor(num_first)[sample]


@dataclass(frozen=True)
class LoadedRun:
    """A trained run.

    Attributes:
        config: Its complete configuration.
        forecaster: Its best model.
        additions: Further parts that it has stored, by name.
    """

    config: RunConfig
    forecaster: Forecaster
    additions: Mapping[str, Addition]

    def data(self, file: Fields | None = None) -> RunData:
        """Return a file, or that of training, in the terms of the run."""
        file = open_source(self.config.data) if file is None else file
        return RunData(self.config, matched(file, self.forecaster.task))

    def data_of_run(self, file: Fields) -> RunData | None:
        """Return the data of the run if a file holds them, wherever it is.

        Its content is compared, not its name. The parts are those of the run.

        Args:
            file: The file.

        Raises:
            UserError: The run has a test file, too, which is nowhere to be found.
        """
        fingerprint = self.forecaster.task.fingerprint
        if not fingerprint:
            return None
        data = relocated(self.config.data, file.path)
        if data.test_file is not None and not matches(data.test_file):
            raise UserError(
                f"{file.path} without {data.test_file}, the test file of the run",
                "both, to tell whether they are the data of the run",
                "put it beside the other, or score all samples: "
                f"{option('part', 'all')}",
            )
        try:
            used = self.data(with_parts(data, file))
        except UserError:  # other fields, or too few samples
            return None
        return used if used.file.holds(fingerprint) else None


def open_run(run: Run, device: str | None = None) -> LoadedRun:
    """Load a run with its best model.

    Args:
        run: From :func:`nfsgeo.fit`, its folder, or a name such as ``"ns-small"``.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``; None for the device of the run.
    """
    paths = find_run(run)
    config = read_config(paths.config)
    trainer = config.trainer
    with explained():
        section = TrainerSection.model_validate(
            {"device": device or trainer.device, "precision": trainer.precision}
        )
    check_device(section)
    checkpoint = own_checkpoint(paths, paths.best)
    forecaster = restore(paths.best, config, checkpoint).eval().to(device_of(section))
    return LoadedRun(config, forecaster, additions_of(paths, forecaster.digest))


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
    """Yield batches of samples, in order, and their predicted fields ``[M, steps, C]``.

    Args:
        forecaster: The model.
        windows: The samples.
        batch_size: Number of samples of a batch.
        connect: Makes the graphs of a sample; None for those of the model.
        steps: Number of time steps of a rollout; None to predict those of training.
        ahead: Times to predict ``[K]``, for a model that can be asked for any time;
            None for those of the windows.
        query_static: Returns static inputs at the query points of a batch; None for
            those of the windows.
    """
    for batch in batches(windows, batch_size, connect or forecaster.connect):
        batch = batch.to(forecaster.device)
        if ahead is not None and forecaster.task.needs_times:
            observed = batch.times.view(batch.num_graphs, -1)[:, : windows.n_in]
            asked = ahead.to(observed).expand(len(observed), -1)
            batch.times = torch.cat([observed, asked], dim=1).flatten()
        if query_static is not None:
            batch.query_static = query_static(batch)
        if steps is None:
            yield batch, forecaster.predict_batch(batch)
            continue
        inputs = forecaster.inputs_of(batch)
        arguments: dict[str, Any] = {"forcing": inputs.forcing, "times": inputs.times}
        if (graphs := batch.graphs).query_pos is not None:
            arguments["query_static"] = batch.get("query_static")
        u = rollout(forecaster, batch.x, batch.pos, steps, graphs=graphs, **arguments)
        yield batch, u
