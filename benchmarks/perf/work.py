"""Work that is timed: each function prepares it and returns one repetition."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from nfsgeo.data.connected_batches import ConnectedBatches
from nfsgeo.data.generation import generate
from nfsgeo.geometry import Domain, equispaced_grid, radius_edges
from nfsgeo.models import Problem, build_model
from nfsgeo.training import Experiment, load_config, prepare
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.datamodule import windows
from nfsgeo.training.optimiser import make_optimiser
from nfsgeo.training.processes import quiet_lightning

DOMAIN = Domain.unit(2)


def read_batch(
    folder: Path,
    *,
    cached: bool,
    size: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[], object]:
    """Reads a batch of a Navier-Stokes file, as training does.

    Args:
        folder: Where the file is, or is made.
        cached: Whether the samples were read before, as from the second epoch on.
        size, settings: Of the file and of the training, in place of the defaults.
    """
    experiment = _experiment(folder, size, settings)
    data = experiment.config.data
    train = windows(data, experiment.file, experiment.mesh, "train")
    train.cache.max_bytes *= cached
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
    module, model = experiment.module, experiment.forecaster.model
    weights = model.parameters()
    optimiser = make_optimiser(weights, experiment.config.optimiser)
    batch = read_batch(folder, cached=True, size=size, settings=settings)()

    def run() -> None:
        optimiser.zero_grad()
        with quiet_lightning():
            module.training_step(batch, 0).backward()
        optimiser.step()

    return run


def _experiment(
    folder: Path, size: Mapping[str, Any] | None, settings: Mapping[str, Any] | None
) -> Experiment:
    path = folder / "navier-stokes.nc"
    if not path.exists():
        generate("navier-stokes", path, samples=12, **(size or {}))
    return prepare(load_config(overrides={"data.file": path, **(settings or {})}))


def step(
    folder: Path,
    *,
    model: str,
    points: int,
    time_steps: int,
    samples: int,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[], float]:
    """A training step of a model; its graphs are there already.

    Args:
        model: Its name. `fno` is on a grid, all others on random points.
        points: Points per sample, a square number; as many nodes has the grid of `nfs`.
        time_steps: Number of predicted time steps, after 10 observed ones.
        samples: Samples per batch, each with its own points.
        settings: Settings of the model.
    """
    torch.manual_seed(0)
    side = math.isqrt(points)
    grid = (side, side) if model == "fno" else None
    problem = Problem(DOMAIN, 1, 1, 10, time_steps, points, grid, True)
    network = build_model(model, problem, settings or {})
    pos = torch.rand(samples * points, 2)
    if grid:
        pos = equispaced_grid(DOMAIN, grid).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(points)
    graphs = network.connect(pos, batch)
    x, target = torch.randn(len(pos), 10, 1), torch.randn(len(pos), time_steps, 1)
    return _step(network, lambda: network(x, pos, batch, graphs=graphs), target)


def prediction(
    folder: Path, *, points: int, time_steps: int, queries: int
) -> Callable[[], Tensor]:
    """A prediction of `nfs` at random query points; the graphs are there already."""
    problem = Problem(DOMAIN, 1, 1, 10, time_steps, points, None, True)
    network = build_model("nfs", problem)
    x, pos = torch.randn(points, 10, 1), torch.rand(points, 2)
    graphs = network.connect(pos, query_pos=torch.rand(queries, 2))

    def run() -> Tensor:
        with torch.inference_mode():
            return network(x, pos, graphs=graphs).mean()

    return run


def their_fno(
    folder: Path,
    *,
    points: int,
    time_steps: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
) -> Callable[[], float]:
    """A training step of neuraloperator's FNO over space and time.

    It has as many weights as `fno` of these settings. Its input already has a copy for
    each predicted time step, and it has no activation after the last block; both save
    it a little time.
    """
    with warnings.catch_warnings():
        # The import changes the filters of the whole process.
        from neuralop.models import FNO
    side = math.isqrt(points)
    network = FNO(
        n_modes=(2 * modes, 2 * modes, time_steps),  # of which it keeps n / 2 + 1
        in_channels=10,
        out_channels=1,
        hidden_channels=width,
        n_layers=depth,
        lifting_channel_ratio=0,
        projection_channel_ratio=128 / width,
        use_channel_mlp=False,
        channel_mlp_skip=None,
    )
    x = torch.randn(samples, 10, side, side, time_steps)
    target = torch.randn(samples, 1, side, side, time_steps)
    return _step(network, lambda: network(x), target)


def _step(
    network: nn.Module, predict: Callable[[], Tensor], target: Tensor
) -> Callable[[], float]:
    """Forwards, backwards and Adam's update; gives the error before it."""
    optimiser = make_optimiser(network.parameters(), OptimiserSection(lr=1e-3))

    def run() -> float:
        optimiser.zero_grad()
        loss = mse_loss(predict(), target)
        loss.backward()
        optimiser.step()
        return loss.item()

    return run


def search(
    folder: Path, *, points: int, neighbours: float, backend: str
) -> Callable[[], Tensor]:
    """All pairs of random points in a square that are near each other.

    Args:
        points: Number of sources, and of targets.
        neighbours: Of a target, on average.
        backend: As :func:`nfsgeo.geometry.radius_edges` names it, or ``torch_cluster``
            for that package alone, with room for every neighbour.
    """
    random = torch.Generator().manual_seed(0)
    source, target = torch.rand(2, points, 2, generator=random)
    radius = math.sqrt(neighbours / (math.pi * points))
    if backend == "torch_cluster":
        from torch_cluster import radius as theirs

        most = int(4 * neighbours)
        return lambda: theirs(source, target, radius, max_num_neighbors=most)
    box = Domain.unit(2, periodic=False)
    return lambda: radius_edges(source, target, radius, box, backend=backend)
