"""Times a variant and its reference alternately, each in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo_benchmarks.processes import process_context

# Prepares in a folder that variant and reference share, and returns what is timed. It
# is sent to another process: a function of a module, with functools.partial.
Work = Callable[[Path], Callable[[], object]]


class Times(NamedTuple):
    """Seconds that one repetition took, and the peak of memory by its end."""

    wall: float
    cpu: float
    memory: int


@dataclass(frozen=True)
class Entry:
    """A variant and the reference that its cost is given in.

    Attributes:
        name: Unique; lower case, words joined by hyphens.
        title: What is compared, one line.
        variant: Prepares the variant.
        reference: Prepares the reference, after the variant.
        bound: Largest ratio of times that is accepted.
        memory_bound: The same for peak memory; None to only report the ratio.
        repeats: Pairs that are timed, after one that is not.
        requires: A package that it needs besides nfsgeo's own, by the name of its
            module.
        devices: Where it can be measured.
    """

    name: str
    title: str
    variant: Work
    reference: Work
    bound: float
    memory_bound: float | None = None
    repeats: int = 7
    requires: str | None = None
    devices: tuple[str, ...] = ("cpu", "cuda")

    def lacks(self, device: str) -> str | None:
        """What there would have to be to measure it on a device, None for nothing."""
        if device not in self.devices:
            return f"an entry for {device}"
        if device == "cuda" and not torch.cuda.is_available():
            return "a CUDA device"
        if self.requires is not None and find_spec(self.requires) is None:
            return f"the package {self.requires}"
        return None


def measure(
    entry: Entry, folder: Path, device: str = "cpu", progress: Progress = silent
) -> dict[str, Any]:
    """Runs an entry.

    One process prepares and repeats the variant, another the reference; both live
    throughout and run alternately, on one thread each, so that other work on the
    machine affects both alike.

    Args:
        entry: What to measure.
        folder: Where it may put files.
        device: Where both create their tensors, ``cpu`` or ``cuda``.
        progress: Called with the entry's name, repetitions done, and their number.

    Returns:
        A row of ``results.csv``. The ratio of times is that of the smallest CPU times
        on the CPU, which other work on the machine disturbs least, and the median of
        the pairs on CUDA. Memory is the peak of the process, or of PyTorch on the
        device, less what was held before the first repetition.

    Raises:
        UserError: A process was killed, or its work raised one.
    """
    context = process_context("nfsgeo_benchmarks.perf.entries")
    pairs: list[list[Times]] = []
    with ExitStack() as stack:
        both = [stack.enter_context(ProcessPoolExecutor(1, context)) for _ in range(2)]
        try:
            progress(entry.name, 0, entry.repeats)
            for pool, work in zip(both, (entry.variant, entry.reference), strict=True):
                pool.submit(_prepare, work, folder, device).result()
            for done in range(entry.repeats + 1):
                pairs.append([pool.submit(_repeat).result() for pool in both])
                progress(entry.name, done, entry.repeats)
        except BrokenProcessPool:
            given = "a process of the benchmark that was killed"
            raise UserError(given, "memory for it", "free some and try again") from None
    times = np.array(pairs)  # [pair, variant or reference, quantity of Times]
    wall, cpu, memory = np.moveaxis(times, 2, 0)
    wall, cpu = wall[1:], cpu[1:]  # the first one warms up
    if device == "cpu":
        seconds = cpu.min(axis=0)
        ratio = seconds[0] / seconds[1]
    else:
        seconds = np.median(wall, axis=0)
        ratio = np.median(wall[:, 0] / wall[:, 1])
    peaks, most = memory.max(axis=0), entry.memory_bound
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


class _Prepared:
    """The work of a process, and the memory that it held before it began."""

    repeat: Callable[[], object]
    cuda = False
    memory = 0


def _prepare(work: Work, folder: Path, device: str) -> None:
    """Prepares work in the process where it is called."""
    torch.set_num_threads(1)
    torch.set_default_device(device)
    _Prepared.cuda = device == "cuda"
    _Prepared.repeat = work(folder)
    gc.collect()
    if _Prepared.cuda:
        torch.cuda.reset_peak_memory_stats()
        _Prepared.memory = torch.cuda.memory_allocated()
    else:
        _Prepared.memory = held_memory()


def _repeat() -> Times:
    """Does the work once, in the process where it was prepared."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = _Prepared.repeat()
    if _Prepared.cuda:
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = torch.cuda.max_memory_allocated() if _Prepared.cuda else peak_memory()
    del result
    return Times(wall, cpu, peak - _Prepared.memory)


def held_memory() -> int:
    """Memory that this process holds, in bytes; its peak is counted anew from here.

    What was freed is given back first, so that it counts when it is needed again.
    Where the system cannot forget a peak, the peak is what comes back.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_memory()
    return _status("VmRSS")


def peak_memory() -> int:
    """Most memory that this process has held, in bytes.

    On Linux, getrusage would count the parent before the process began as well.
    """
    if sys.platform == "linux":
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(dict(line.split(":", 1) for line in lines)[field].split()[0])
