"""The entries that `nfsgeo bench perf` measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nfsgeo.models import MODELS
from nfsgeo_benchmarks.perf.entry import Entry
from nfsgeo_benchmarks.perf.generators import batch_of, calibration, instances
from nfsgeo_benchmarks.perf.interpolation import up_and_down
from nfsgeo_benchmarks.perf.loading import read_batch, training_step
from nfsgeo_benchmarks.perf.neuraloperator import (
    nfs_beside_gino,
    our_fno,
    their_fno,
    their_gino,
)
from nfsgeo_benchmarks.perf.recurrent import (
    our_dcrnn,
    their_batched_dcrnn,
    their_dcrnn,
)
from nfsgeo_benchmarks.perf.search import (
    dense_search,
    our_search,
    torch_cluster_search,
)
from nfsgeo_benchmarks.perf.solver import (
    core_step,
    nfs_prediction,
    nfs_step,
    plain_nfs_step,
)

MILLION = 1024**2
# Points, predicted time steps, samples per batch.
STEPS = (
    (1024, 10, 4),
    (1024, 40, 4),
    (4096, 10, 4),
    (4096, 40, 1),
    (16384, 10, 1),
    (16384, 40, 1),
)
PAPER = MODELS["nfs"].paper
GINO = {
    "side": 64,
    "samples": 1,
    "width": 32,
    "depth": 3,
    "modes": 8,
    "hidden": 32,
    "radius": 0.036,
}


def _growth(times: float) -> float:
    """What the cost may grow by, as the power 1.1 of the size."""
    return round(float(times**1.1), 1)


def _search(
    name: str,
    title: str,
    reference: Callable[..., Callable[[], object]],
    *,
    bound: float,
    points: int = 65536,
    backend: str = "auto",
    requires: tuple[str, ...] = (),
) -> Entry:
    size = {"points": points, "neighbours": 16}
    return Entry(
        name=f"search-{name}",
        title=f"16 neighbours of each of {points} points on the CPU, over {title}",
        variant=partial(our_search, **size, backend=backend),
        reference=partial(reference, **size),
        bound=bound,
        clock="cpu",
        repeats=5,
        requires=requires,
    )


def _interpolation(points: int, training: bool) -> Entry:
    sizes = {"points": points, "time_steps": 10, "training": training}
    return Entry(
        name=f"interpolate-{'step' if training else 'forward'}-{points}",
        title="up to a grid and back, 16 neighbours, 10 time steps, over its messages "
        "written out",
        variant=partial(up_and_down, **sizes),
        reference=partial(up_and_down, **sizes, fused=False),
        bound=1.0,
        memory_bound=1.0,
        agreement=1e-4,
        clock="cpu",
        repeats=3,
    )


def _interpolation_growth(training: bool) -> Entry:
    sizes = {"time_steps": 2, "training": training, "ordered": True}
    times = _growth(MILLION / 4096)
    return Entry(
        name=f"interpolate-{'step' if training else 'forward'}-growth-ordered",
        title="up to a grid and back, 16 neighbours, 2 time steps, of 1048576 points "
        "in spatial order over 4096; bound: power 1.1",
        variant=partial(up_and_down, points=MILLION, **sizes),
        reference=partial(up_and_down, points=4096, **sizes),
        bound=times,
        memory_bound=times,
        clock="cpu",
        repeats=4,
    )


def _nfs(points: int, time_steps: int, samples: int) -> Entry:
    size = {"points": points, "time_steps": time_steps, "samples": samples}
    return Entry(
        name=f"nfs-{points}x{time_steps}",
        title=f"a training step of nfs with learned kernels, {samples} samples of "
        f"{points} points each, {time_steps} time steps, over its Fourier blocks on a "
        "grid of as many points",
        variant=partial(nfs_step, **size),
        reference=partial(core_step, **size),
        bound=1.3,
        memory_bound=1.3,
        clock="cpu",
        repeats=15,
    )


def _on_cuda(entry: Entry) -> Entry:
    """The same on a GPU."""
    return replace(entry, name=f"{entry.name}-cuda", clock="wall", device="cuda")


ON_CPU = (
    _search(
        "torch-cluster",
        "torch-cluster",
        torch_cluster_search,
        bound=1.0,
        requires=("torch-cluster",),
    ),
    _search(
        "dense", "the distances of all pairs", dense_search, bound=0.2, points=8192
    ),
    _search(
        "cell-list",
        "SciPy's k-d tree; by the cell list",
        partial(our_search, backend="scipy"),
        bound=5.0,
        backend="cell_list",
    ),
    *(_interpolation(n, training) for n in (1024, 16384) for training in (False, True)),
    *(_interpolation_growth(training) for training in (False, True)),
    *(_nfs(*sizes) for sizes in STEPS),
    Entry(
        name="nfs-fno",
        title="a training step of nfs with learned kernels, 4 samples of 4096 points, "
        "10 time steps, over fno",
        variant=partial(nfs_step, points=4096, time_steps=10, samples=4),
        reference=partial(
            core_step, points=4096, time_steps=10, samples=4, norm="none"
        ),
        clock="cpu",
        repeats=3,
    ),
    Entry(
        name="nfs-dense",
        title="a training step of nfs with the paper's settings, 4096 points, 40 "
        "time steps, over equation (7) written out",
        variant=partial(
            nfs_step, points=4096, time_steps=40, samples=1, settings=PAPER
        ),
        reference=partial(
            plain_nfs_step, points=4096, time_steps=40, samples=1, settings=PAPER
        ),
        bound=0.2,
        memory_bound=0.1,
        agreement=1e-4,
        clock="cpu",
        repeats=2,
    ),
    Entry(
        name="nfs-gino",
        title="a training step of nfs, a sample of 4096 points, no time, over "
        "neuraloperator's GINO of equal width, depth, modes and edges",
        variant=partial(nfs_beside_gino, **GINO),
        reference=partial(their_gino, **GINO),
        bound=1 / 3,
        memory_bound=1 / 3,
        clock="cpu",
        repeats=15,
        requires=("neuraloperator", "torch-scatter"),
    ),
    Entry(
        name="nfs-gino-time-steps",
        title="the same with 10 time steps: tokens of nfs, channels of GINO",
        variant=partial(nfs_beside_gino, **GINO, time_steps=10),
        reference=partial(their_gino, **GINO, time_steps=10),
        clock="cpu",
        repeats=3,
        requires=("neuraloperator", "torch-scatter"),
    ),
    Entry(
        name="predict-million",
        title="prediction of nfs, 4096 points, 10 time steps, at 1048576 query points "
        "over 65536; bound: power 1.1 and 4 GB",
        variant=partial(nfs_prediction, points=4096, time_steps=10, queries=MILLION),
        reference=partial(nfs_prediction, points=4096, time_steps=10, queries=65536),
        bound=_growth(16),
        most_memory=4 * 10**9,
        clock="cpu",
        repeats=2,
    ),
)

POINT_ENTRIES = (
    *ON_CPU,
    *(
        _on_cuda(entry)
        for entry in ON_CPU
        if entry.name.startswith(("interpolate", "nfs"))
    ),
)


# CPU seconds of an instance at full size, on the core that the calibration knows.
COSTS = {"burgers": 0.016, "kdv": 0.020, "darcy": 0.17, "navier-stokes": 0.85}


def _generator(equation: str, seconds: float) -> Entry:
    samples = batch_of(equation)
    return Entry(
        name=f"generate-{equation}",
        title=f"{samples} instances, over {seconds} s each of a calibrated core",
        variant=partial(instances, equation=equation, samples=samples),
        reference=partial(calibration, seconds=samples * seconds),
        bound=1.5,
        clock="cpu",
        repeats=5,
    )


def _loading(name: str, title: str, cached: bool) -> Entry:
    return Entry(
        name=name,
        title=f"a Navier-Stokes batch, {title}, over a training step of nfs",
        variant=partial(read_batch, cached=cached),
        reference=training_step,
        bound=0.1,
        repeats=5,
    )


FNO = {
    "size": 64,
    "time_steps": 10,
    "samples": 2,
    "width": 32,
    "depth": 3,
    "modes": 8,
}
DCRNN = {"points": 1024, "time_steps": 10, "samples": 4, "radius": 0.05}


def _dcrnn(
    name: str, cell: str, reference: Callable[..., Callable[[], object]], repeats: int
) -> Entry:
    return Entry(
        name=name,
        title="a training step of dcrnn, 4 samples of 1024 points, 10 time steps in "
        f"and 10 out, over the same of torch-geometric-temporal's {cell}",
        variant=partial(our_dcrnn, **DCRNN),
        reference=partial(reference, **DCRNN),
        bound=0.5,
        clock="cpu",
        repeats=repeats,
        requires=("torch-geometric-temporal",),
    )


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *(_generator(equation, seconds) for equation, seconds in COSTS.items()),
        _loading("load-first-epoch", "read from the file", cached=False),
        _loading("load-cached", "read before", cached=True),
        Entry(
            name="fno-core",
            title="a training step of fno over space and time, 64 x 64 nodes, 10 "
            "time steps, width 32, depth 3, 16 x 16 x 6 modes, 2 samples, over "
            "neuraloperator's FNO of as many weights",
            variant=partial(our_fno, **FNO),
            reference=partial(their_fno, **FNO),
            bound=1.0,
            clock="cpu",
            requires=("neuraloperator",),
        ),
        *POINT_ENTRIES,
        _dcrnn("dcrnn-cell", "cell", their_dcrnn, repeats=2),
        _dcrnn("dcrnn-batched", "batched cell", their_batched_dcrnn, repeats=3),
    )
}
