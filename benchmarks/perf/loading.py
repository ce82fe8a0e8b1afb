"""Reading batches of a data set, beside the training step that they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from nfsgeo.data.connected_batches import ConnectedBatches
from nfsgeo.data.generation import generate
from nfsgeo.training import Experiment, load_config, prepare
from nfsgeo.training.datamodule import windows
from nfsgeo.training.optimiser import make_optimiser
from nfsgeo.training.processes import quiet_lightning

SAMPLES = 12


def read_batch(
    folder: Path,
    *,
    cached: bool,
    size: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[], object]:
    """Reads a batch of the Navier-Stokes file, as training does.

    Args:
        folder: Where the file is, or is made.
        cached: Whether the samples were read before, as from the second epoch on.
        size: Resolution and time steps of the file, in place of the defaults.
        settings: Of the training, by dotted key, in place of the defaults.
    """
    experiment = _experiment(folder, size, settings)
    data = experiment.config.data
    train = windows(data, experiment.file, experiment.mesh, "train")
    train.cache_bytes *= cached
    loader = DataLoader(
        train,
        batch_size=data.batch_size,
        sampler=range(data.batch_size),
        collate_fn=ConnectedBatches(experiment.forecaster.connect),
    )
    return lambda: next(iter(loader))


def training_step(
    folder: Path,
    *,
    size: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[], object]:
    """A step of training on that batch: forwards, backwards, and the optimiser's."""
    experiment = _experiment(folder, size, settings)
    forecaster = experiment.forecaster
    weights = forecaster.model.parameters()
    optimiser = make_optimiser(weights, experiment.config.optimiser)
    batch = read_batch(folder, cached=True, size=size, settings=settings)()

    def step() -> None:
        optimiser.zero_grad()
        with quiet_lightning():
            forecaster.training_step(batch, 0).backward()
        optimiser.step()

    return step


def _experiment(
    folder: Path, size: Mapping[str, Any] | None, settings: Mapping[str, Any] | None
) -> Experiment:
    path = folder / "navier-stokes.nc"
    if not path.exists():
        generate("navier-stokes", path, samples=SAMPLES, **(size or {}))
    return prepare(load_config(overrides={"data.file": path, **(settings or {})}))
