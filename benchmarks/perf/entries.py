"""The entries that `nfsgeo bench perf` measures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nfsgeo.models import MODELS
from nfsgeo_benchmarks.perf.measure import Entry
from nfsgeo_benchmarks.perf.work import (
    prediction,
    read_batch,
    search,
    step,
    their_fno,
    training_step,
)

MILLION = 1024**2
FNO = {"width": 32, "depth": 3, "modes": 8}
# What interpolation and blocks cost at most: by default `nfs` has no learned kernel and
# no tokens of time in two dimensions.
LEARNED = {"width": 32, "depth": 2, "time": "tokens", "kernel": "channel"}
PAPER = MODELS["nfs"].paper
PAPER_CORE = {key: PAPER[key] for key in ("width", "depth", "modes", "norm")}


def _loading(name: str, title: str, bound: float, cached: bool) -> Entry:
    return Entry(
        name=name,
        title=f"a Navier-Stokes batch, {title}, over a training step of nfs",
        variant=partial(read_batch, cached=cached),
        reference=training_step,
        bound=bound,
        devices=("cpu",),
    )


def _nfs(
    name: str,
    points: int,
    time_steps: int,
    samples: int,
    bounds: tuple[float, float],
    settings: Mapping[str, Any],
    core: Mapping[str, Any],
) -> Entry:
    size = {"points": points, "time_steps": time_steps, "samples": samples}
    grid = {"grid": round(points**0.5)}
    return Entry(
        name=name,
        title=f"a training step of nfs, {samples} samples of {points} points each, "
        f"{time_steps} time steps, over its Fourier blocks on a grid of as many points",
        variant=partial(step, model="nfs", **size, settings={**grid, **settings}),
        reference=partial(step, model="fno", **size, settings=core),
        bound=bounds[0],
        memory_bound=bounds[1],
    )


def _search(name: str, title: str, ours: str, theirs: str, bound: float) -> Entry:
    size = {"points": 65536, "neighbours": 16}
    return Entry(
        name=f"search-{name}",
        title=f"16 neighbours of each of 65536 points, over {title}",
        variant=partial(search, **size, backend=ours),
        reference=partial(search, **size, backend=theirs),
        bound=bound,
        repeats=5,
        requires="torch_cluster" if theirs == "torch_cluster" else None,
        devices=("cpu",),
    )


BATCH = {"points": 4096, "time_steps": 10, "samples": 2}
CORE = {"norm": "channel"}

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _loading("load-first-epoch", "read from the file", 0.15, cached=False),
        _loading("load-cached", "read before", 0.05, cached=True),
        _nfs("nfs-default", 4096, 10, 4, (0.3, 0.5), {}, CORE),
        _nfs("nfs-4096x10", 4096, 10, 4, (1.3, 1.3), LEARNED, CORE),
        _nfs("nfs-16384x10", 16384, 10, 1, (1.3, 1.3), LEARNED, CORE),
        _nfs("nfs-paper", 4096, 40, 1, (4.5, 1.5), PAPER, PAPER_CORE),
        Entry(
            name="fno-core",
            title="a training step of fno over space and time, 64 x 64 nodes, 10 time "
            "steps, 2 samples, over neuraloperator's FNO of as many weights",
            variant=partial(
                step, model="fno", **BATCH, settings={**FNO, "time_modes": 6}
            ),
            reference=partial(their_fno, **BATCH, **FNO),
            bound=1.0,
            requires="neuralop",
        ),
        Entry(
            name="predict-million",
            title="prediction of nfs, 4096 points, 10 time steps, at 1048576 query "
            "points over 65536; bound: power 1.1",
            variant=partial(prediction, points=4096, time_steps=10, queries=MILLION),
            reference=partial(prediction, points=4096, time_steps=10, queries=65536),
            bound=round(16**1.1, 1),
            memory_bound=4,
            repeats=2,
        ),
        _search("torch-cluster", "torch-cluster", "auto", "torch_cluster", 1.0),
        _search("cell-list", "SciPy's k-d tree; by cells", "cell_list", "scipy", 5.0),
    )
}
