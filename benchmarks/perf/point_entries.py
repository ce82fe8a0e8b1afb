"""What is measured of `nfs`, its interpolation and its search for neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nfsgeo.models import MODELS
from nfsgeo_benchmarks.perf.entry import Entry
from nfsgeo_benchmarks.perf.gino import nfs_beside_gino, their_gino
from nfsgeo_benchmarks.perf.interpolation import up_and_down
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

__all__ = ["POINT_ENTRIES"]

MILLION = 1024**2
# Points, records of the result, samples of a batch.
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
    held: float,
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
        held=held,
        clock="cpu",
        repeats=5,
        requires=requires,
    )


def _interpolation(points: int, training: bool) -> Entry:
    sizes = {"points": points, "records": 10, "training": training}
    return Entry(
        name=f"interpolate-{'step' if training else 'forward'}-{points}",
        title="up to a grid and back, 16 neighbours, 10 records, over its messages "
        "written out",
        variant=partial(up_and_down, **sizes),
        reference=partial(up_and_down, **sizes, fused=False),
        held=1.0,
        held_memory=1.0,
        agreement=1e-4,
        clock="cpu",
        repeats=3,
    )


def _interpolation_growth(training: bool, ordered: bool) -> Entry:
    sizes = {"records": 2, "training": training, "ordered": ordered}
    times = _growth(MILLION / 4096)
    return Entry(
        name=f"interpolate-{'step' if training else 'forward'}-growth"
        f"{'-ordered' if ordered else ''}",
        title="up to a grid and back, 16 neighbours, 2 records, of 1048576 points in "
        f"{'spatial' if ordered else 'random'} order over 4096; held at the power 1.1",
        variant=partial(up_and_down, points=MILLION, **sizes),
        reference=partial(up_and_down, points=4096, **sizes),
        held=times,
        held_memory=times,
        clock="cpu",
        repeats=4,
    )


def _nfs(points: int, records: int, samples: int) -> Entry:
    size = {"points": points, "records": records, "samples": samples}
    return Entry(
        name=f"nfs-{points}x{records}",
        title=f"a training step of nfs, {samples} samples of {points} points each, "
        f"{records} records, over its Fourier blocks on a grid of as many points",
        variant=partial(nfs_step, **size),
        reference=partial(core_step, **size),
        held=1.3,
        held_memory=1.3,
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
        held=1.0,
        requires=("torch-cluster",),
    ),
    _search("dense", "the distances of all pairs", dense_search, held=0.2, points=8192),
    _search(
        "cell-list",
        "SciPy's k-d tree; by the cell list",
        partial(our_search, backend="scipy"),
        held=5.0,
        backend="cell_list",
    ),
    *(_interpolation(n, training) for n in (1024, 16384) for training in (False, True)),
    *(
        _interpolation_growth(training, ordered)
        for ordered in (False, True)
        for training in (False, True)
    ),
    *(_nfs(*sizes) for sizes in STEPS),
    Entry(
        name="nfs-fno",
        title="a training step of nfs, 4 samples of 4096 points, 10 records, over fno",
        variant=partial(nfs_step, points=4096, records=10, samples=4),
        reference=partial(core_step, points=4096, records=10, samples=4, norm="none"),
        clock="cpu",
        repeats=3,
    ),
    Entry(
        name="nfs-dense",
        title="a training step of nfs with the paper's settings, 4096 points, 40 "
        "records, over equation (7) written out",
        variant=partial(nfs_step, points=4096, records=40, samples=1, settings=PAPER),
        reference=partial(
            plain_nfs_step, points=4096, records=40, samples=1, settings=PAPER
        ),
        held=0.2,
        held_memory=0.1,
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
        held=1 / 3,
        held_memory=1 / 3,
        clock="cpu",
        repeats=15,
        requires=("neuraloperator", "torch-scatter"),
    ),
    Entry(
        name="nfs-gino-records",
        title="the same with 10 records: tokens of nfs, channels of GINO",
        variant=partial(nfs_beside_gino, **GINO, records=10),
        reference=partial(their_gino, **GINO, records=10),
        clock="cpu",
        repeats=3,
        requires=("neuraloperator", "torch-scatter"),
    ),
    Entry(
        name="predict-million",
        title="prediction of nfs, 4096 points, 10 records, at 1048576 query points "
        "over 65536; held at the power 1.1 and 4 GB",
        variant=partial(nfs_prediction, points=4096, records=10, queries=MILLION),
        reference=partial(nfs_prediction, points=4096, records=10, queries=65536),
        held=_growth(16),
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
    Entry(
        name="interpolate-triton",
        title="up to a grid and back, 65536 points, 16 neighbours, 10 records, "
        "backwards too, in one kernel, over what PyTorch compiles",
        variant=partial(up_and_down, points=65536, records=10, training=True),
        reference=partial(
            up_and_down, points=65536, records=10, training=True, compiled=True
        ),
        agreement=1e-4,
        requires=("triton",),
        device="cuda",
    ),
)
