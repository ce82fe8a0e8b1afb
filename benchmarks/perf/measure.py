"""Time a variant and its reference alternately, each in a process of its own."""

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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo_benchmarks.forkserver import CONTEXT, begin_with

# Prepares for a device, in a folder that variant and reference share, and returns what
# is timed. It is sent to a process: a function of a module, with functools.partial.
Work = Callable[[Path, str], Callable[[], object]]
PREPARED: list[Callable[[], object]] = []  # of this process


@dataclass(frozen=True)
class Entry:
    """A variant and the reference to which its cost is related."""

    name: str  # unique; lower case, words joined by hyphens
    variant: Work
    reference: Work  # prepared after the variant
    bound: float  # largest ratio of times that is accepted
    memory_bound: float | None = None  # the same of peak memory; None to only report it
    repeats: int = 7  # pairs that are timed, after one that is not
    requires: str | None = None  # name of a module that it needs besides nfsgeo's own
    cpu_only: bool = False  # whether it is the same on any device

    def lacks(self, device: str) -> str | None:
        """Return the package or device that the entry lacks, or ``None``."""
        if device == "cuda" and (self.cpu_only or not torch.cuda.is_available()):
            return "work for cuda" if self.cpu_only else "a CUDA device"
        if self.requires is not None and find_spec(self.requires) is None:
            return f"the package {self.requires}"
        return None


def measure(
    entry: Entry, folder: Path, device: str = "cpu", progress: Progress = silent
) -> dict[str, Any]:
    """Measure an entry.

    One process prepares and repeats the variant, another the reference; both live
    throughout and run alternately, on one thread each, so that other work on the
    machine affects both alike. They may put files into ``folder``.

    Returns a row of ``results.csv``. The ratio of times is that of the smallest CPU
    times on the CPU, which other work on the machine disturbs least, and the median of
    the pairs on CUDA. Memory is the peak of the process, or of PyTorch on the device,
    less what was held before the first repetition.

    Raises:
        UserError: A process was killed, or its work raised one.
    """
    begin_with("nfsgeo_benchmarks.perf.entries")
    pairs = []
    with ExitStack() as stack:
        both = [stack.enter_context(ProcessPoolExecutor(1, CONTEXT)) for _ in range(2)]
        try:
            progress(entry.name, 0, entry.repeats)
            works = zip(both, (entry.variant, entry.reference), strict=True)
            held = [
                pool.submit(_prepare, w, folder, device).result() for pool, w in works
            ]
            for done in range(entry.repeats + 1):
                pairs.append([pool.submit(_repeat, device).result() for pool in both])
                progress(entry.name, done, entry.repeats)
        except BrokenProcessPool:
            given = "a process of the benchmark that was killed"
            raise UserError(given, "memory for it", "free some and try again") from None
    wall, cpu, memory = np.moveaxis(np.array(pairs), 2, 0)  # [pair, variant or not]
    wall, cpu = wall[1:], cpu[1:]  # the first one warms up
    if device == "cpu":
        seconds = cpu.min(axis=0)
        ratio = seconds[0] / seconds[1]
    else:
        seconds = np.median(wall, axis=0)
        ratio = np.median(wall[:, 0] / wall[:, 1])
    peaks, most = memory.max(axis=0) - held, entry.memory_bound
    memory_ratio = peaks[0] / max(peaks[1], 1)
    well = ratio <= entry.bound and (most is None or memory_ratio <= most)
    return {
        "name": entry.name,
        "device": device,
        "ratio": float(ratio),
        "bound": entry.bound,
        "memory_ratio": float(memory_ratio),
        "memory_bound": most,
        "variant_seconds": float(seconds[0]),
        "reference_seconds": float(seconds[1]),
        "variant_peak_memory_bytes": int(peaks[0]),
        "reference_peak_memory_bytes": int(peaks[1]),
        "repeats": entry.repeats,
        "status": "ok" if well else "missed",
    }


def _prepare(work: Work, folder: Path, device: str) -> int:
    """Prepare work in this process, and return the memory that the process holds."""
    torch.set_num_threads(1)
    PREPARED.append(work(folder, device))
    gc.collect()
    return _peak_memory(device, anew=True)


def _repeat(device: str) -> tuple[float, float, int]:
    """Repeat the prepared work; return its wall time, CPU time and peak memory."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = PREPARED[-1]()
    if device == "cuda":
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak_memory(device)
    del result
    return wall, cpu, peak


def _peak_memory(device: str, anew: bool = False) -> int:
    """Return the peak memory of this process in bytes, or ``anew`` start from here."""
    if device == "cuda":
        if anew:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated()
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
