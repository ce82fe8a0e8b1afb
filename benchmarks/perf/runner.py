"""Times a variant and its reference alternately, each in a process of its own."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.training.callbacks import release_memory
from nfsgeo_benchmarks.perf.entry import Entry, Measurement, Times, Work
from nfsgeo_benchmarks.perf.roofline import Amount, Count, Rates, machine_rates
from nfsgeo_benchmarks.processes import process_context


class Repetition(NamedTuple):
    """What one repetition took, and the number that it returned, if any."""

    times: Times
    result: float | None


def measure(entry: Entry, folder: Path, progress: Progress = silent) -> Measurement:
    """Runs an entry.

    One process prepares and repeats the variant, another the reference; both live
    throughout and run alternately, on one thread each, so that other work on the
    machine affects both alike.

    Args:
        entry: What to measure.
        folder: Where it may put files.
        progress: Called with the entry's name, repetitions done, and their number.

    Raises:
        UserError: A package is missing, a process was killed, or its work raised one.
    """
    entry.check()
    with ExitStack() as stack:
        progress(entry.name, 0, entry.repeats)
        variant = stack.enter_context(Process(entry.variant, folder, entry.device))
        reference = stack.enter_context(Process(entry.reference, folder, entry.device))
        pairs = []
        for done in range(entry.repeats + 1):
            pairs.append((variant.run(), reference.run()))
            progress(entry.name, done, entry.repeats)
        # The first one warms up.
        of_variant = [mine.times for mine, _ in pairs[1:]]
        of_reference = [theirs.times for _, theirs in pairs[1:]]
        return Measurement(
            entry,
            entry.ratio(of_variant, of_reference),
            entry.seconds(of_variant),
            entry.seconds(of_reference),
            variant.peak,
            reference.peak,
            *variant.roofline(),
            None
            if entry.agreement is None
            else _difference([(a.result, b.result) for a, b in pairs]),
        )


def _difference(pairs: Sequence[tuple[object, object]]) -> float:
    """Largest relative difference of pairs of numbers."""
    largest = 0.0
    for a, b in pairs:
        assert isinstance(a, float) and isinstance(b, float)
        largest = max(largest, abs(a - b) / (abs(b) or 1.0))
    return largest


class Process:
    """A process that prepares some work and repeats it on request."""

    def __init__(self, work: Work, folder: Path, device: str) -> None:
        context = process_context("nfsgeo_benchmarks.perf.entries")
        self._connection, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, work, folder, device), daemon=False
        )
        self._process.start()
        there.close()
        self.peak = 0
        self._answer()

    def run(self) -> Repetition:
        """Does the work once."""
        self._connection.send("run")
        repetition, self.peak = self._answer()
        return repetition

    def roofline(self) -> tuple[Amount, Rates]:
        """The work of a repetition, and the rates of the machine."""
        self._connection.send("count")
        amount, rates = self._answer()
        return amount, rates

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._connection.close()  # which ends it
        if kind is not None:
            self._process.terminate()
        self._process.join()

    def _answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            raise UserError(
                "a process of the benchmark that was killed",
                "memory for it",
                "free some and try again",
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _serve(connection: Connection, work: Work, folder: Path, device: str) -> None:
    """Prepares in the process, then repeats the work whenever it is asked to."""
    torch.set_num_threads(1)
    on_device = device != "cpu"
    if on_device:
        torch.set_default_device(device)
    try:
        repeat = work(folder)
        before = _held_on_device() if on_device else held_memory()
        connection.send((Repetition(Times(0, 0), None), 0))
        while True:
            if connection.recv() == "count":
                with Count() as count:
                    repeat()
                connection.send((count.amount, machine_rates(device)))
                continue
            wall, cpu = time.perf_counter(), time.process_time()
            result = repeat()
            if on_device:
                torch.cuda.synchronize()
            times = Times(time.perf_counter() - wall, time.process_time() - cpu)
            number = result if isinstance(result, float) else None
            peak = torch.cuda.max_memory_allocated() if on_device else peak_memory()
            connection.send((Repetition(times, number), peak - before))
            del result
    except (EOFError, KeyboardInterrupt):
        return
    except BaseException as error:
        connection.send(error)


def _held_on_device() -> int:
    """Memory that PyTorch holds on the device; its peak is counted anew from here."""
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def held_memory() -> int:
    """Memory that this process holds, in bytes; its peak is counted anew from here.

    What was freed is given back first, so that it counts when it is needed again.
    Where the system cannot forget a peak, the peak is what comes back.
    """
    gc.collect()
    release_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_memory()
    return _status("VmRSS")


def peak_memory() -> int:
    """Most memory that this process has held, in bytes."""
    if Path("/proc/self/status").exists():
        # getrusage counts the parent before the process began as well.
        return _status("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(dict(line.split(":", 1) for line in lines)[field].split()[0])
