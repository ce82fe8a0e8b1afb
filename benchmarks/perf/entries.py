"""What `nfsgeo bench perf` measures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nfsgeo_benchmarks.perf.calibration import calibration
from nfsgeo_benchmarks.perf.entry import Entry
from nfsgeo_benchmarks.perf.fourier import our_fno, their_fno
from nfsgeo_benchmarks.perf.generators import batch_of, instances
from nfsgeo_benchmarks.perf.loading import read_batch, training_step
from nfsgeo_benchmarks.perf.point_entries import POINT_ENTRIES
from nfsgeo_benchmarks.perf.recurrent import (
    our_dcrnn,
    their_batched_dcrnn,
    their_dcrnn,
)

__all__ = ["ENTRIES"]

# CPU seconds of an instance at full size, on the core that the calibration knows.
COSTS = {"burgers": 0.016, "kdv": 0.020, "darcy": 0.17, "navier-stokes": 0.85}


def _generator(equation: str, seconds: float) -> Entry:
    samples = batch_of(equation)
    return Entry(
        name=f"generate-{equation}",
        title=f"{samples} instances, over {seconds} s each of a calibrated core",
        variant=partial(instances, equation=equation, samples=samples),
        reference=partial(calibration, seconds=samples * seconds),
        held=1.5,
        clock="cpu",
        repeats=5,
    )


def _loading(name: str, title: str, cached: bool) -> Entry:
    return Entry(
        name=name,
        title=f"a Navier-Stokes batch, {title}, over a training step of nfs",
        variant=partial(read_batch, cached=cached),
        reference=training_step,
        held=0.1,
        repeats=5,
    )


FNO = {
    "size": 64,
    "records": 10,
    "samples": 2,
    "width": 32,
    "depth": 3,
    "modes": 8,
}
DCRNN = {"points": 1024, "records": 10, "samples": 4, "radius": 0.05}


def _dcrnn(
    name: str, cell: str, reference: Callable[..., Callable[[], object]], repeats: int
) -> Entry:
    return Entry(
        name=name,
        title="a training step of dcrnn, 4 samples of 1024 points, 10 records in and "
        f"10 out, over the same of torch-geometric-temporal's {cell}",
        variant=partial(our_dcrnn, **DCRNN),
        reference=partial(reference, **DCRNN),
        held=0.5,
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
            "records, width 32, depth 3, 16 x 16 x 6 modes, 2 samples, over "
            "neuraloperator's FNO of as many weights",
            variant=partial(our_fno, **FNO),
            reference=partial(their_fno, **FNO),
            held=1.0,
            clock="cpu",
            requires=("neuraloperator",),
        ),
        *POINT_ENTRIES,
        _dcrnn("dcrnn-cell", "cell", their_dcrnn, repeats=2),
        _dcrnn("dcrnn-batched", "batched cell", their_batched_dcrnn, repeats=3),
    )
}
