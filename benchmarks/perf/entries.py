"""The entries that `nfsgeo bench perf` measures.

The functions of work prepare it in a folder, for a device, and return one repetition.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from nfsgeo.config import OptimiserSection
from nfsgeo.data.generation import generate
from nfsgeo.data.windows import ConnectedBatches
from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MODELS, Problem, build_model
from nfsgeo.training import Experiment, load_config, prepare
from nfsgeo.training.module import make_optimiser
from nfsgeo.training.processes import quiet_lightning
from nfsgeo_benchmarks.perf.measure import Entry

DOMAIN = Domain.unit(2)
MILLION = 1024**2
FNO: dict[str, Any] = {"width": 32, "depth": 3, "modes": 8}
# What kernels and blocks cost at most: by default `nfs` has no learned kernel and no
# tokens of time in two dimensions, but messages between points.
LEARNED = {"width": 32, "depth": 2, "time": "tokens", "kernel": "channel"}
LEARNED |= {"latent": False, "point_channels": 0, "neighbours": 0}
LEARNED |= {"factorised": False, "skip": False}
PAPER = MODELS["nfs"].paper
PAPER_CORE = {key: PAPER[key] for key in ("width", "depth", "modes", "norm")}


def read_batch(folder: Path, device: str, *, cached: bool) -> Callable[[], Any]:
    """Prepare the reading of a batch of a Navier-Stokes file, as in training.

    Its samples are ``cached`` as from the second epoch on.
    """
    experiment = _experiment(folder)
    data = experiment.config.data
    train = experiment.used.windows("train")
    train.cache.max_bytes *= cached
    loader = DataLoader(
        train,
        batch_size=data.batch_size,
        sampler=range(data.batch_size),
        collate_fn=ConnectedBatches(experiment.forecaster.connect),
    )
    return lambda: next(iter(loader))


def training_step(folder: Path, device: str) -> Callable[[], object]:
    """Prepare a training step on that batch: forward, backward, optimiser."""
    experiment, batch = _experiment(folder), read_batch(folder, device, cached=True)()
    weights = experiment.forecaster.model.parameters()
    optimiser = make_optimiser(weights, experiment.config.optimiser)

    def run() -> None:
        optimiser.zero_grad()
        with quiet_lightning():
            experiment.module.training_step(batch, 0).backward()
        optimiser.step()

    return run


def _experiment(folder: Path) -> Experiment:
    path = folder / "navier-stokes.nc"
    if not path.exists():
        generate("navier-stokes", path, samples=12)
    return prepare(load_config(overrides={"data.file": path}))


class Size(NamedTuple):
    """Points per sample, a square number, predicted time steps, samples per batch."""

    points: int
    time_steps: int
    samples: int

    @property
    def side(self) -> int:
        """Nodes along an axis of a grid with this number of points."""
        return math.isqrt(self.points)


def step(
    folder: Path,
    device: str,
    *,
    model: str,
    size: Size,
    settings: Mapping[str, Any],
    graded: bool = False,
) -> Callable[[], float]:
    """Prepare a training step of a model, 10 time steps in, on prepared graphs.

    Each sample of `fno` is on a grid, and of all others on random points of its own,
    ``graded`` towards the centre, or even.
    """
    torch.manual_seed(0)
    points, time_steps, samples = size
    grid = (size.side, size.side) if model == "fno" else None
    problem = Problem(DOMAIN, 1, 1, 10, time_steps, points, grid, True)
    network = build_model(model, problem, settings).to(device)
    pos = torch.rand(samples * points, 2)
    if graded:
        pos = 0.5 + 16 * (pos - 0.5) ** 5
    if grid:
        pos = equispaced_grid(DOMAIN, grid).repeat(samples, 1)
    pos = pos.to(device)
    batch = torch.arange(samples, device=device).repeat_interleave(points)
    graphs = network.connect(pos, batch)
    x = torch.randn(len(pos), 10, 1, device=device)
    target = torch.randn(len(pos), time_steps, 1, device=device)
    return _step(network, lambda: network(x, pos, batch, graphs=graphs), target)


def prediction(folder: Path, device: str, *, queries: int) -> Callable[[], Tensor]:
    """Prepare a prediction of `nfs` at random query points on prepared graphs."""
    points = 4096
    problem = Problem(DOMAIN, 1, 1, 10, 10, points, None, True)
    network = build_model("nfs", problem).to(device)
    x = torch.randn(points, 10, 1, device=device)
    pos, query_pos = torch.rand(points + queries, 2, device=device).tensor_split(
        [points]
    )
    graphs = network.connect(pos, query_pos=query_pos)

    def run() -> Tensor:
        with torch.inference_mode():
            return network(x, pos, graphs=graphs).mean()

    return run


def their_fno(
    folder: Path, device: str, *, size: Size, width: int, depth: int, modes: int
) -> Callable[[], float]:
    """Prepare a training step of neuraloperator's FNO over space and time.

    It has as many weights as `fno` of these settings. Its input already has a copy for
    each predicted time step, and it has no activation after the last block; both save
    it a little time.
    """
    with warnings.catch_warnings():
        # The import changes the filters of the whole process.
        from neuralop.models import FNO
    shape = (size.side, size.side, size.time_steps)
    network = FNO(
        n_modes=(2 * modes, 2 * modes, size.time_steps),  # of which it keeps n / 2 + 1
        in_channels=10,
        out_channels=1,
        hidden_channels=width,
        n_layers=depth,
        lifting_channel_ratio=0,
        projection_channel_ratio=128 / width,
        use_channel_mlp=False,
        channel_mlp_skip=None,
    ).to(device)
    x = torch.randn(size.samples, 10, *shape, device=device)
    target = torch.randn(size.samples, 1, *shape, device=device)
    return _step(network, lambda: network(x), target)


def _step(
    network: nn.Module, predict: Callable[[], Tensor], target: Tensor
) -> Callable[[], float]:
    """Return a training step that returns the loss before Adam's update."""
    optimiser = make_optimiser(network.parameters(), OptimiserSection(lr=1e-3))

    def run() -> float:
        optimiser.zero_grad()
        loss = mse_loss(predict(), target)
        loss.backward()
        optimiser.step()
        return loss.item()

    return run


BATCH = Size(4096, 10, 2)
CORE = {"norm": "channel"}


def _load(name: str, bound: float, *, cached: bool) -> Entry:
    """A Navier-Stokes batch, over a training step of the default nfs."""
    work = partial(read_batch, cached=cached)
    return Entry(f"load-{name}", work, training_step, bound, cpu_only=True)


def _points(name: str, bound: float, *, graded: bool) -> Entry:
    """A training step of nfs, over one without learned layers beside the grid."""
    size = Size(1600, 10, 4)
    both = partial(step, size=size, settings={}, graded=graded)
    variant, reference = partial(both, model="nfs"), partial(both, model="fno-spline")
    return Entry(f"nfs-{name}-points", variant, reference, bound, 1.5)


def _nfs(
    name: str,
    size: Size,
    bounds: tuple[float, float],
    settings: Mapping[str, Any],
    core: Mapping[str, Any],
) -> Entry:
    """A training step of nfs, over its Fourier blocks on a grid of as many points."""
    gridded = {"grid": size.side, **settings}
    variant = partial(step, model="nfs", size=size, settings=gridded)
    reference = partial(step, model="fno", size=size, settings=core)
    return Entry(f"nfs-{name}", variant, reference, *bounds)


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _load("first-epoch", 0.15, cached=False),
        _load("cached", 0.05, cached=True),
        _nfs("default", Size(4096, 10, 4), (0.3, 0.5), {}, CORE),
        _points("even", 1.35, graded=False),
        _points("graded", 1.6, graded=True),
        _nfs("4096x10", Size(4096, 10, 4), (1.3, 1.3), LEARNED, CORE),
        _nfs("16384x10", Size(16384, 10, 1), (1.3, 1.3), LEARNED, CORE),
        _nfs("paper", Size(4096, 40, 1), (4.5, 1.5), PAPER, PAPER_CORE),
        Entry(
            name="fno-core",
            variant=partial(
                step, model="fno", size=BATCH, settings={**FNO, "time_modes": 6}
            ),
            reference=partial(their_fno, size=BATCH, **FNO),
            bound=1.0,
            requires="neuralop",
        ),
        Entry(  # no more than the power 1.1 of the number of query points
            name="predict-million",
            variant=partial(prediction, queries=MILLION),
            reference=partial(prediction, queries=65536),
            bound=round(16**1.1, 1),
            memory_bound=4,
            repeats=2,
        ),
    )
}
