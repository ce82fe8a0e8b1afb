"""Carries out the runs of a suite, several at a time if asked to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from nfsgeo.data.cached import cached_file
from nfsgeo.training import RunPaths
from nfsgeo_benchmarks.processes import process_context
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.worker import record_failure, work

__all__ = ["RUNS", "Progress", "carry_out_all", "is_finished"]

Progress = Callable[[str, int, int], None]
RUNS = "runs"


def is_finished(run: Run, folder: Path) -> bool:
    """Whether a run has all its results; ``folder`` is that of the suite."""
    return RunPaths(folder / RUNS / run.name).report.exists()


def carry_out_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    progress: Progress = lambda what, done, total: None,
    ended: Callable[[Run], None] = lambda run: None,
) -> None:
    """Carries out the runs that are not finished, each in a process of its own.

    A run that fails is recorded and does not stop the others; a run that was killed
    continues where it was. The cores are divided among the processes.

    Args:
        runs: The runs; finished ones are skipped.
        folder: Folder of the suite.
        jobs: Runs at the same time.
        progress: Called with what is being done, how much is done and in all.
        ended: Called after each run.

    Raises:
        KeyboardInterrupt: Interrupted; the same call goes on.
    """
    waiting = [run for run in runs if not is_finished(run, folder)]
    for data in {run.data for run in waiting}:
        cached_file(**data.model_dump(), progress=progress)
    left = len(waiting)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    busy: dict[Connection, _Process] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                process = _Process(waiting.pop(0), folder, threads)
                busy[process.connection] = process
            for connection in wait(list(busy)):
                process = busy[connection]  # type: ignore[index]
                if not process.listen():
                    del busy[process.connection]
                    ended(process.run)
            done = left - len(waiting) - len(busy)
            progress("runs", done, left)
    finally:
        for process in busy.values():
            process.interrupt()


class _Process:
    def __init__(self, run: Run, folder: Path, threads: int) -> None:
        context = process_context(work.__module__)
        self.run, self.folder = run, folder / RUNS / run.name
        self.connection, there = context.Pipe(duplex=False)
        self._process = context.Process(
            target=work, args=(run, self.folder, threads, there)
        )
        self._process.start()
        there.close()
        self.epochs = 0

    def listen(self) -> bool:
        """Receives what the process sent; False when it has ended."""
        try:
            self.epochs = self.connection.recv()
            return True
        except EOFError:
            self._process.join()
        code = self._process.exitcode
        if code == -signal.SIGKILL:
            record_failure(self.folder, "OOM", "killed, as happens without memory")
        elif code:
            record_failure(self.folder, "failed", f"the process ended with {code}")
        return False

    def interrupt(self) -> None:
        """Ends it as Ctrl-C would, so that the run can go on later."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGINT)
            self._process.join()
