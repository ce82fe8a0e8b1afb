"""Solves batches of samples, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from nfsgeo.data.pde.etdrk4 import flush_denormals
from nfsgeo.data.pde.solver import Solver
from nfsgeo.errors import UserError

__all__ = [
    "Batch",
    "Task",
    "batch_size_for",
    "end_with_parent",
    "missing_ranges",
    "solve_batches",
]

# Values on the grid of a batch: what stays in a core's cache, what fills a GPU.
_BATCH_VALUES = {"cpu": 2**16, "cuda": 2**22}
_BATCH_BYTES = 2**30


@dataclass(frozen=True)
class Task:
    """Samples to solve in one go."""

    solver: Solver
    seed: int
    indices: range
    resolution: int
    records: int
    device: str


@dataclass(frozen=True)
class Batch:
    """Solved samples from number ``start``, arrays as in ``Solution``.

    Fields are float32.
    """

    start: int
    u: np.ndarray
    a: np.ndarray
    dt: np.ndarray
    pos: np.ndarray | None = None


def _solve(task: Task) -> Batch:
    with flush_denormals():
        solution = task.solver.solve(
            task.seed,
            task.indices,
            resolution=task.resolution,
            records=task.records,
            device=task.device,
        )
    # Rounded here, after the checks: half as much to send between processes.
    u, a = (t.cpu().numpy().astype(np.float32) for t in (solution.u, solution.a))
    pos = None if solution.pos is None else solution.pos.cpu().numpy()
    return Batch(task.indices.start, u, a, solution.dt.cpu().numpy(), pos)


def _prepare_worker() -> None:
    torch.set_num_threads(1)
    # Ctrl-C reaches the whole group; the parent alone acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """Leaves when the parent is gone: its queue would be waited on for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def solve_batches(tasks: Sequence[Task], workers: int) -> Generator[Batch, None, None]:
    """Solve the tasks and yield their batches as they come.

    Args:
        tasks: What to solve.
        workers: Spawned processes of one thread each; 1 works in this process.

    Raises:
        UserError: A solution fails its checks, or a process was killed.
    """
    if workers == 1:
        yield from map(_solve, tasks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_prepare_worker)
    waiting = iter(tasks)
    try:
        # A few ahead of the writer: batches that wait for it take memory.
        running = {pool.submit(_solve, task) for task in islice(waiting, 2 * workers)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {
                pool.submit(_solve, task) for task in islice(waiting, len(finished))
            }
            while finished:
                yield finished.pop().result()
    except BrokenProcessPool as error:
        raise UserError(
            f"a process of {workers} that was killed",
            "memory for all of them",
            "use fewer workers; finished batches are kept",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def missing_ranges(missing: np.ndarray, size: int) -> list[range]:
    """Runs of True in ``missing`` ``[N]``, cut to at most ``size``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]])))
    return [
        range(start, min(start + size, stop))
        for first, stop in edges.reshape(-1, 2).tolist()
        for start in range(first, stop, size)
    ]


def batch_size_for(values: int, records: int, kind: str) -> int:
    """4 to 64 samples, fewer where their time steps would not fit in memory.

    Args:
        values: Points of the grid.
        records: Number of time steps that are stored.
        kind: ``"cpu"`` or ``"cuda"``.
    """
    by_speed = min(64, max(4, _BATCH_VALUES[kind] // values))
    return max(1, min(by_speed, _BATCH_BYTES // (8 * values * records)))
