"""Print where a training step of `nfs` loses time, operator by operator.

    OMP_NUM_THREADS=1 python docs/making/losses.py

A loss is the time that an operator takes beyond what its floating-point operations
need at this machine's rate of matrix products, or its bytes at the rate of a copy,
whichever is longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model
from nfsgeo_benchmarks.perf.roofline import Count, machine_rates
from nfsgeo_benchmarks.perf.steps import step

POINTS, TIME_STEPS, SAMPLES, REPEATS, SHOWN = 4096, 10, 4, 12, 10


class Timed(Count):
    """Seconds, operations and bytes of every operator, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[float]] = {}

    def __torch_dispatch__(self, func: Any, *rest: Any) -> Any:
        flops, nbytes, start = self.flops, self.nbytes, time.perf_counter()
        out = super().__torch_dispatch__(func, *rest)
        seconds = time.perf_counter() - start
        entry = self.found.setdefault(func.overloadpacket.__name__, [0.0, 0.0, 0.0])
        for i, more in enumerate((seconds, self.flops - flops, self.nbytes - nbytes)):
            entry[i] += more
        return out


def training_step() -> Callable[[], float]:
    """A step of the default `nfs` on random points of the plane."""
    torch.manual_seed(0)
    problem = Problem(Domain.unit(2), 1, 1, TIME_STEPS, TIME_STEPS, POINTS, None, True)
    network = build_model("nfs", problem)
    pos = torch.rand(SAMPLES * POINTS, 2)
    batch = torch.arange(SAMPLES).repeat_interleave(POINTS)
    graphs = network.connect(pos, batch)
    x, target = torch.randn(2, len(pos), TIME_STEPS, 1)
    return step(network, lambda: network(x, pos, batch, graphs=graphs), target)


def main() -> None:
    """Print a table in Markdown, the largest losses first."""
    rates, run = machine_rates("cpu"), training_step()
    run()
    best: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        with Timed() as timed:
            run()
        for name, entry in timed.found.items():
            best[name] = min(entry, best.get(name, entry))
    print(f"{rates.flops:.3g} operations and {rates.nbytes:.3g} bytes per second\n")
    rows = [
        (f"`{name}`", seconds, max(flops / rates.flops, nbytes / rates.nbytes))
        for name, (seconds, flops, nbytes) in best.items()
    ]
    rows.sort(key=lambda row: row[2] - row[1])
    sums = [sum(row[i] for row in rows) for i in (1, 2)]
    print("| operator | ms | least | loss |\n|---|--:|--:|--:|")
    for name, seconds, least in [*rows[:SHOWN], ("all", *sums)]:
        cells = (f"{1e3 * each:.1f}" for each in (seconds, least, seconds - least))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
