"""What `nfsgeo bench perf` measures."""

from __future__ import annotations

from functools import partial

from nfsgeo_benchmarks.perf.calibration import calibration
from nfsgeo_benchmarks.perf.entry import Entry
from nfsgeo_benchmarks.perf.generators import batch_of, instances
from nfsgeo_benchmarks.perf.loading import read_batch, training_step

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


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *(_generator(equation, seconds) for equation, seconds in COSTS.items()),
        _loading("load-first-epoch", "read from the file", cached=False),
        _loading("load-cached", "read before", cached=True),
    )
}
