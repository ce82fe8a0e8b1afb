"""Time a variant and its reference alternately."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo_benchmarks.forkserver import CONTEXT, begin_with

# Prepares for a device, in a folder that variant and reference share, and returns what
# is timed. It is sent to a process: a function of a module, with functools.partial.
Work = Callable[[Path, str], Callable[[], object]]
ROLES = ("variant", "reference")
PREPARED: dict[str, Callable[[], object]] = {}  # of this process, by role

# Pairs on a card that warm up, and that are timed unless the seconds are over.
CARD_WARM_UP, CARD_REPEATS, CARD_SECONDS = 3, 20, 6.0


@dataclass(frozen=True)
class Entry:
    """A variant and the reference to which its cost is related."""

    name: str  # unique; lower case, words joined by hyphens
    variant: Work
    reference: Work  # prepared after the variant
    bound: float  # largest ratio of times that is accepted
    memory_bound: float | None = None  # the same of peak memory; None to only report it
    card_bound: float | None = None  # ``bound`` on a card, where it differs
    repeats: int = 7  # pairs that are timed on the CPU, after one that is not
    requires: str | None = None  # name of a module that it needs besides nfsgeo's own
    device: str | None = None  # the only one on which it is measured unless named
    samples: int | None = None  # in a repetition, if samples per second are reported

    def lacks(self, device: str) -> str | None:
        """Return the package or work that the entry lacks, or ``None``."""
        if device == "cuda" and self.device == "cpu":
            return "work for cuda"
        if self.requires is not None and find_spec(self.requires) is None:
            return f"the package {self.requires}"
        return None

    def sized(self, points: int) -> Self:
        """Return the entry with other numbers of points, to try whether it runs."""
        works: dict[str, Any] = {role: getattr(self, role) for role in ROLES}
        for role, work in works.items():
            if size := getattr(work, "keywords", {}).get("size"):
                works[role] = partial(work, size=size._replace(points=points))
        return replace(self, **works)


def measure(
    entry: Entry, folder: Path, device: str = "cpu", progress: Progress = silent
) -> dict[str, Any]:
    """Measure an entry.

    Both run alternately, so that other work on the machine affects both alike. They may
    put files into ``folder``. On the CPU each has a process of one thread. A card is
    measured from this process, because each further one would take seconds to start.

    Returns a row of ``results.csv``. The ratio of times is that of the smallest CPU
    times on the CPU, which other work on the machine disturbs least, and the median of
    the pairs on CUDA, timed by its events after a warm-up. Memory is the peak of the
    process, or of PyTorch on the device, less what was held before.

    Raises:
        UserError: A process was killed, or its work raised one.
    """
    card = device == "cuda"
    pairs: list[list[tuple[float, float, int]]] = []
    calls = [lambda function, *given: function(*given)] * 2
    with ExitStack() as stack:
        stack.callback(PREPARED.clear)
        if not card:
            begin_with("nfsgeo_benchmarks.perf.entries")
            both = [stack.enter_context(ProcessPoolExecutor(1, CONTEXT)) for _ in ROLES]
            calls = [
                lambda *do, pool=executor: pool.submit(*do).result()
                for executor in both
            ]
        lanes = list(zip(calls, ROLES, strict=True))
        warm_up, repeats = (CARD_WARM_UP, CARD_REPEATS) if card else (1, entry.repeats)
        try:
            progress(entry.name, 0, repeats)
            held = [
                call(_prepare, role, getattr(entry, role), folder, device)
                for call, role in lanes
            ]
            begin = time.perf_counter()
            while len(pairs) < warm_up + repeats:
                pairs.append([call(_repeat, role, device) for call, role in lanes])
                progress(entry.name, max(0, len(pairs) - warm_up), repeats)
                if card and time.perf_counter() > begin + CARD_SECONDS and pairs[1:]:
                    break
        except BrokenProcessPool:
            given = "a process of the benchmark that was killed"
            raise UserError(given, "memory for it", "free some and try again") from None
    wall, cpu, memory = np.moveaxis(np.array(pairs), 2, 0)  # [pair, variant or not]
    first, warm_up = wall[0, 0], min(warm_up, len(pairs) - 1)
    wall, cpu = wall[warm_up:], cpu[warm_up:]
    if card:
        seconds = np.median(wall, axis=0)
        ratio = np.median(wall[:, 0] / wall[:, 1])
    else:
        seconds = cpu.min(axis=0)
        ratio = seconds[0] / seconds[1]
    peaks, most = memory.max(axis=0) - held, entry.memory_bound
    memory_ratio = peaks[0] / max(peaks[1], 1)
    bound = (card and entry.card_bound) or entry.bound
    well = ratio <= bound and (most is None or memory_ratio <= most)
    rates = [entry.samples and entry.samples / float(duration) for duration in seconds]
    return {
        "name": entry.name,
        "ratio": float(ratio),
        "bound": bound,
        "memory_ratio": float(memory_ratio),
        "memory_bound": most,
        "variant_seconds": float(seconds[0]),
        "reference_seconds": float(seconds[1]),
        "variant_first_seconds": float(first),
        "variant_samples_per_second": rates[0],
        "reference_samples_per_second": rates[1],
        "variant_peak_memory_bytes": int(peaks[0]),
        "reference_peak_memory_bytes": int(peaks[1]),
        "repeats": len(wall),
        "status": "ok" if well else "missed",
    }


def _prepare(role: str, work: Work, folder: Path, device: str) -> int:
    """Prepare work in this process, and return the memory that the process holds."""
    if device == "cpu":
        torch.set_num_threads(1)
    PREPARED[role] = work(folder, device)
    gc.collect()
    return 0 if device == "cuda" else _peak_memory(anew=True)


def _repeat(role: str, device: str) -> tuple[float, float, int]:
    """Repeat the prepared work; return its wall time, CPU time and peak memory.

    On a card, the time between events, twice, and the memory that was added.
    """
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        start.record()
        PREPARED[role]()
        end.record()
        torch.cuda.synchronize()
        seconds = start.elapsed_time(end) / 1000
        return seconds, seconds, torch.cuda.max_memory_allocated() - held
    wall, cpu = time.perf_counter(), time.process_time()
    result = PREPARED[role]()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak_memory()
    del result
    return wall, cpu, peak


def _peak_memory(anew: bool = False) -> int:
    """Return the peak memory of this process in bytes, or ``anew`` start from here."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if anew:
        # What was freed is given back, so that it counts when it is needed again.
        ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):  # where the system cannot forget a peak
            Path("/proc/self/clear_refs").write_text("5")
    # On Linux, getrusage would count the parent before the process began as well.
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0])
