"""Carries out the runs of a suite, several at a time if asked to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nfsgeo.progress import Progress, silent
from nfsgeo_benchmarks.processes import process_context
from nfsgeo_benchmarks.suites.earlier import RUNS, is_finished
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.worker import record_failure, work


def carry_out_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    progress: Progress = silent,
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
        KeyboardInterrupt: Interrupted; the same call continues.
    """
    waiting = [run for run in runs if not is_finished(run, folder)]
    for data in {run.data.key: run.data for run in waiting}.values():
        data.obtain(progress)
    total = len(waiting)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = process_context(work.__module__)
    busy: dict[Any, tuple[Run, BaseProcess]] = {}  # by sentinel
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                run = waiting.pop(0)
                arguments = (run, folder / RUNS / run.name, threads)
                started = context.Process(target=work, args=arguments)
                started.start()
                busy[started.sentinel] = run, started
            for sentinel in wait(list(busy)):
                run, process = busy.pop(sentinel)
                process.join()
                _record_exit(folder / RUNS / run.name, process.exitcode)
                ended(run)
            progress("runs", total - len(waiting) - len(busy), total)
    finally:
        # As Ctrl-C would, so that the runs can be continued later.
        for _, process in busy.values():
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
                process.join()


def _record_exit(folder: Path, code: int | None) -> None:
    """Records the failure of a process that did not end by itself."""
    if code == -signal.SIGKILL:
        record_failure(folder, "OOM", "killed, as happens without memory")
    elif code:
        record_failure(folder, "failed", f"the process ended with {code}")
