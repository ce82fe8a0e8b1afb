"""Solves batches of samples, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

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
    num_steps: int
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


@dataclass(frozen=True)
class _Solutions(Dataset[Batch | UserError]):
    """The batch of each task, or why there is none."""

    tasks: Sequence[Task]

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, number: int) -> Batch | UserError:
        task = self.tasks[number]
        try:
            with flush_denormals():
                found = task.solver.solve(
                    task.seed,
                    task.indices,
                    resolution=task.resolution,
                    num_steps=task.num_steps,
                    device=task.device,
                )
        except UserError as error:  # which torch would wrap in its traceback
            return error
        # Rounded here, after the checks: half as much to send between processes.
        u, a = (t.cpu().numpy().astype(np.float32) for t in (found.u, found.a))
        pos = None if found.pos is None else found.pos.cpu().numpy()
        return Batch(task.indices.start, u, a, found.dt.cpu().numpy(), pos)


def solve_batches(tasks: Sequence[Task], workers: int) -> Generator[Batch, None, None]:
    """Solve the tasks and yield their batches as they come.

    Args:
        tasks: What to solve.
        workers: Spawned processes of one thread each; 1 works in this process.

    Raises:
        UserError: A solution fails its checks, or a process was killed.
    """
    several: dict[str, Any] = {"multiprocessing_context": "spawn"}
    loader = DataLoader(
        _Solutions(tasks),
        batch_size=None,
        collate_fn=_as_it_is,
        worker_init_fn=_watch_parent,
        num_workers=workers if workers > 1 else 0,
        in_order=False,
        generator=torch.Generator(),  # not the global one, which others seed
        **several if workers > 1 else {},
    )
    try:
        for found in loader:
            if isinstance(found, UserError):
                raise found
            yield found
    except UserError:
        raise
    except RuntimeError as error:
        if "exited unexpectedly" not in str(error):
            raise
        raise UserError(
            f"a process of {workers} that was killed",
            "memory for all of them",
            "use fewer workers; finished batches are kept",
        ) from error


def _as_it_is(batch: Any) -> Any:
    return batch


def _watch_parent(_: int) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """Leaves when the parent is gone: its queue would be waited on for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def missing_ranges(missing: np.ndarray, size: int) -> list[range]:
    """Runs of True in ``missing`` ``[N]``, cut to at most ``size``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]])))
    return [
        range(start, min(start + size, stop))
        for first, stop in edges.reshape(-1, 2).tolist()
        for start in range(first, stop, size)
    ]


def batch_size_for(values: int, num_steps: int, kind: str) -> int:
    """4 to 64 samples, fewer where their time steps would not fit in memory.

    Args:
        values: Points of the grid.
        num_steps: Number of time steps that are stored.
        kind: ``"cpu"`` or ``"cuda"``.
    """
    by_speed = min(64, max(4, _BATCH_VALUES[kind] // values))
    return max(1, min(by_speed, _BATCH_BYTES // (8 * values * num_steps)))
