"""Times a variant and its reference in turn, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from nfsgeo.errors import UserError
from nfsgeo_benchmarks.perf.entry import Entry, Measurement, Times, Work

__all__ = ["measure", "peak_memory"]


def measure(
    entry: Entry,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Measurement:
    """Runs an entry.

    One process prepares and repeats the variant, another the reference; both live
    throughout and work in turn, on one thread, so that what else goes on on the
    machine meets both alike.

    Args:
        entry: What to measure.
        folder: Where it may put files.
        progress: Called with the entry's name, repetitions done, and their number.

    Raises:
        UserError: A process was killed, or its work raised one.
    """
    with ExitStack() as stack:
        progress(entry.name, 0, entry.repeats)
        variant = stack.enter_context(Process(entry.variant, folder))
        reference = stack.enter_context(Process(entry.reference, folder))
        pairs = []
        for done in range(entry.repeats + 1):
            pairs.append((variant.run(), reference.run()))
            progress(entry.name, done, entry.repeats)
        # The first one warms up.
        of_variant, of_reference = zip(*pairs[1:], strict=True)
        return Measurement(
            entry,
            entry.ratio(of_variant, of_reference),
            entry.seconds(of_variant),
            entry.seconds(of_reference),
            variant.peak,
            reference.peak,
        )


class Process:
    """A process that has prepared some work and does it when told to."""

    def __init__(self, work: Work, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, work, folder), daemon=False
        )
        self._process.start()
        there.close()
        self.peak = 0
        self._answer()

    def run(self) -> Times:
        """Does the work once."""
        self._connection.send(True)
        times, self.peak = self._answer()
        return times

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()  # which ends it
        if error is not None:
            self._process.terminate()
        self._process.join()

    def _answer(self) -> tuple[Times, int]:
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


def _serve(connection: Connection, work: Work, folder: Path) -> None:
    """What the process does: prepare, then repeat until nobody asks any more."""
    torch.set_num_threads(1)
    try:
        repeat = work(folder)
        connection.send((Times(0, 0), 0))
        while connection.recv():
            wall, cpu = time.perf_counter(), time.process_time()
            repeat()
            times = Times(time.perf_counter() - wall, time.process_time() - cpu)
            connection.send((times, peak_memory()))
    except (EOFError, KeyboardInterrupt):
        return
    except BaseException as error:
        connection.send(error)


def peak_memory() -> int:
    """Most memory that this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts the parent before the process began as well
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
