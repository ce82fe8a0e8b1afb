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
from nfsgeo.geometry import Domain, equispaced_grid, radius_edges, radius_for
from nfsgeo.models import MODELS, Model, Problem, build_model
from nfsgeo.models.fourier import IN_MORE
from nfsgeo.training import Experiment, load_config, prepare
from nfsgeo.training.lightning_setup import quiet_lightning
from nfsgeo.training.module import make_optimiser
from nfsgeo_benchmarks.perf.measure import Entry, Work

Search = Callable[[Tensor, float], Tensor]  # edges ``[2, E]`` within a radius

DOMAIN, SQUARE = Domain.unit(2), Domain.unit(2, periodic=False)
MILLION = 1024**2
FNO: dict[str, Any] = {"width": 32, "depth": 3, "modes": 8}
# What kernels and blocks cost at most: by default `nfs` has no learned kernel and no
# tokens of time in two dimensions, but messages between points.
LEARNED = {"width": 32, "depth": 2, "time": "tokens", "kernel": "channel"}
LEARNED |= {"latent": False, "point_channels": 0, "neighbours": 0}
LEARNED |= {"factorised": False, "skip": False}
PAPER = MODELS["nfs"].paper
PAPER_CORE = {key: PAPER[key] for key in ("width", "depth", "modes", "norm")}
CORE = {"norm": "channel"}
BLOCKS = ("width", "depth", "time", "factorised", "skip")
OWN_CORE = CORE | {key: IN_MORE[key] for key in BLOCKS}
WIDE = {"width": IN_MORE["width"]}
LIBRARY: dict[str, Any] = {"device": "cuda", "requires": "neuralop"}
ON_GRIDS = ("fno", "neuralop-fno")
# Neighbours for which torch-cluster reserves memory; the densest ball has fewer.
MOST = 128


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
    full: bool = False,
    train: bool = True,
) -> Callable[[], Tensor]:
    """Prepare a training step of a model, or a prediction, on prepared graphs.

    It has 10 time steps in. Each sample of a model for grids is on a grid, and of all
    others on random points of its own, ``graded`` towards the centre, or even. The grid
    of a ``full`` model has as many nodes as there are points.
    """
    if full:
        settings = {**settings, "grid": size.side}
    network, pos, batch = _points(model, size, device, settings, graded)
    graphs = network.connect(pos, batch)
    x = torch.randn(len(pos), 10, 1, device=device)

    def predict() -> Tensor:
        return network(x, pos, batch, graphs=graphs)

    if not train:
        return torch.inference_mode()(lambda: predict().mean())
    target = torch.randn(len(pos), size.time_steps, 1, device=device)
    return _step(network, predict, target)


def graph_making(folder: Path, device: str, *, size: Size) -> Callable[[], object]:
    """Prepare the making of the graphs of `nfs`, which works on the CPU."""
    network, pos, batch = _points("nfs", size, device, {}, False)
    return lambda: network.connect(pos, batch)


def _points(
    model: str, size: Size, device: str, settings: Mapping[str, Any], graded: bool
) -> tuple[Model, Tensor, Tensor]:
    """Return a model, the points of a batch, and the sample of each; see `step`."""
    torch.manual_seed(0)
    points, time_steps, samples = size
    grid = (size.side, size.side) if model in ON_GRIDS else None
    problem = Problem(DOMAIN, 1, 1, 10, time_steps, points, grid, True)
    network = build_model(model, problem, settings).to(device)
    pos = torch.rand(samples * points, 2)
    if graded:
        pos = 0.5 + 16 * (pos - 0.5) ** 5
    if grid:
        pos = equispaced_grid(DOMAIN, grid).repeat(samples, 1)
    batch = torch.arange(samples, device=device).repeat_interleave(len(pos) // samples)
    return network, pos.to(device), batch


def prediction(folder: Path, device: str, *, size: Size) -> Callable[[], Tensor]:
    """Prepare a prediction of `nfs` at random query points on prepared graphs."""
    points = 4096
    problem = Problem(DOMAIN, 1, 1, 10, size.time_steps, points, None, True)
    network = build_model("nfs", problem).to(device)
    x = torch.randn(points, 10, 1, device=device)
    pos = torch.rand(points, 2, device=device)
    query_pos = torch.rand(size.points, 2, device=device)
    graphs = network.connect(pos, query_pos=query_pos)
    return torch.inference_mode()(lambda: network(x, pos, graphs=graphs).mean())


def their_fno(
    folder: Path, device: str, *, size: Size, width: int, depth: int, modes: int
) -> Callable[[], Tensor]:
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


def search(
    folder: Path, device: str, *, size: Size, method: Search
) -> Callable[[], Tensor]:
    """Prepare the search of all pairs of random points within a radius.

    Its ball holds ``2 log n`` of ``n`` points on average.
    """
    torch.manual_seed(0)
    pos = torch.rand(size.points, 2).to(device)
    radius = radius_for(size.points, SQUARE, 2)
    return lambda: method(pos, radius)


def by_scipy(pos: Tensor, radius: float) -> Tensor:
    """Search on the CPU, with copies to it and back."""
    return radius_edges(pos, pos, radius, SQUARE, backend="scipy")


def by_torch_cluster(pos: Tensor, radius: float) -> Tensor:
    """Search on the device of the points, on a card among all pairs."""
    from torch_cluster import radius as within

    return within(pos, pos, radius, max_num_neighbors=MOST)


def by_cells(pos: Tensor, radius: float) -> Tensor:
    """Search on the device of the points, in the 3 x 3 cells around each point.

    Points are sorted by cell, row by row: three cells side by side hold a range of
    them. Around the square are empty cells.
    """
    side = int(1 / radius)
    row = side + 2
    column = (pos * side).long().clamp(max=side - 1) + 1
    cell = row * column[:, 0] + column[:, 1]
    order = cell.argsort()
    numbers = torch.arange(row**2 + 1, device=pos.device)
    first = torch.searchsorted(cell[order], numbers)  # points before each cell
    middle = cell[:, None] + row * numbers[:3] - row
    begin, end = first[middle - 1].flatten(), first[middle + 2].flatten()
    count = end - begin
    target = torch.arange(len(count), device=pos.device).repeat_interleave(count)
    shift = begin - (count.cumsum(0) - count)
    source = order[torch.arange(len(target), device=pos.device) + shift[target]]
    target = target // 3
    near = (pos[source] - pos[target]).norm(dim=1) <= radius
    return torch.stack([source, target])[:, near]


def _step(
    network: nn.Module, predict: Callable[[], Tensor], target: Tensor
) -> Callable[[], Tensor]:
    """Return a training step that returns the loss before Adam's update."""
    optimiser = make_optimiser(network.parameters(), OptimiserSection(lr=1e-3))

    def run() -> Tensor:
        optimiser.zero_grad()
        loss = mse_loss(predict(), target)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return run


BATCH, USUAL, LARGE = Size(4096, 10, 2), Size(4096, 10, 4), Size(100_000, 1, 1)
NFS = partial(step, model="nfs", settings={})


def _load(name: str, bound: float, *, cached: bool) -> Entry:
    """A Navier-Stokes batch, over a training step of the default nfs."""
    work = partial(read_batch, cached=cached)
    return Entry(f"load-{name}", work, training_step, bound, device="cpu")


def _beside(name: str, bound: float, *, graded: bool) -> Entry:
    """A training step of nfs, over one of fno-spline."""
    both = partial(NFS, size=Size(1600, 10, 4), graded=graded)
    reference = partial(both, model="fno-spline")
    return Entry(f"nfs-{name}-points", both, reference, bound, 1.5)


def _nfs(
    name: str,
    size: Size,
    bounds: tuple[float, float | None],
    settings: Mapping[str, Any],
    core: Mapping[str, Any],
    model: str = "fno",
    **facts: Any,
) -> Entry:
    """A training step of nfs, over its Fourier blocks on a grid, or another model."""
    variant = partial(step, model="nfs", size=size, settings=settings, full=True)
    reference = partial(step, model=model, size=size, settings=core)
    return Entry(f"nfs-{name}", variant, reference, *bounds, **facts)


def _search(name: str, method: Search, requires: str | None = None) -> Entry:
    """A radius search, over that by SciPy."""
    both = (
        partial(search, size=LARGE, method=backend) for backend in (method, by_scipy)
    )
    return Entry(f"search-{name}", *both, 1.0, device="cuda", requires=requires)


def _growth(name: str, work: Work, points: int, over: int = 4096) -> Entry:
    """Work at many points over fewer, at most the power 1.1 of their number."""
    both = (partial(work, size=Size(num, 1, 1)) for num in (points, over))
    bound = round((points / over) ** 1.1, 1)
    return Entry(f"{name}-{points}", *both, bound, device="cuda")


# Entries that matter most on a card come first, since its time may end.
ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _nfs("core", USUAL, (1.5, None), {}, OWN_CORE, device="cuda"),
        _nfs("gino", USUAL, (0.3, None), {}, WIDE, "gino", **LIBRARY),
        _nfs("paper", Size(4096, 40, 1), (4.5, 1.5), PAPER, PAPER_CORE, card_bound=1.5),
        Entry(
            name="throughput-100000",
            variant=partial(NFS, size=LARGE),
            reference=partial(NFS, size=LARGE, train=False),
            bound=5.0,
            device="cuda",
            samples=1,
        ),
        _search("cells", by_cells),
        _search("torch-cluster", by_torch_cluster, "torch_cluster"),
        _nfs("library-fno", USUAL, (1.5, None), {}, WIDE, "neuralop-fno", **LIBRARY),
        _growth("step", NFS, 32768),
        _growth("step", NFS, 262144),
        _growth("graphs", graph_making, 32768),
        _growth("graphs", graph_making, 262144),
        _load("first-epoch", 0.15, cached=False),
        _load("cached", 0.05, cached=True),
        _nfs("default", USUAL, (0.3, 0.5), {}, CORE),
        _beside("even", 1.35, graded=False),
        _beside("graded", 1.6, graded=True),
        _nfs("4096x10", USUAL, (1.3, 1.3), LEARNED, CORE),
        _nfs("16384x10", Size(16384, 10, 1), (1.3, 1.3), LEARNED, CORE),
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
            variant=partial(prediction, size=Size(MILLION, 10, 1)),
            reference=partial(prediction, size=Size(65536, 10, 1)),
            bound=round(16**1.1, 1),
            memory_bound=4,
            repeats=2,
            device="cpu",
        ),
    )
}
