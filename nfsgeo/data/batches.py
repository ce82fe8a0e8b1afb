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

from nfsgeo.data.pde.fourier import flush_denormals
from nfsgeo.data.pde.solver import Solver
from nfsgeo.errors import UserError

__all__ = [
    "Batches",
    "batch_size_for",
    "end_with_parent",
    "ranges_of",
    "solve_batches",
]

# Values on the grid of a batch: what stays in a core's cache, what fills a GPU.
_BATCH_VALUES = {"cpu": 2**16, "cuda": 2**22}
_BATCH_BYTES = 2**30

Batch = tuple[int, dict[str, np.ndarray]]


@dataclass(frozen=True)
class Batches(Dataset[Batch | UserError]):
    """Samples of an equation to solve, each range of their numbers in one go.

    An item is the number of its first sample and its arrays, by the names and of the
    shapes in :class:`~nfsgeo.data.pde.Solution`, fields in float32; or why there is
    none.
    """

    solver: Solver
    seed: int
    resolution: int
    num_steps: int
    device: str
    ranges: Sequence[range]

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, number: int) -> Batch | UserError:
        indices = self.ranges[number]
        try:
            with flush_denormals():
                found = self.solver.solve(
                    self.seed,
                    indices,
                    resolution=self.resolution,
                    num_steps=self.num_steps,
                    device=self.device,
                )
        except UserError as error:  # which torch would wrap in its traceback
            return error
        # Rounded here, after the checks: half as much to send between processes.
        u, a = (values.float() for values in (found.u, found.a))
        arrays = {"u": u, "a": a, "dt": found.dt, "pos": found.pos}
        there = {k: v.cpu().numpy() for k, v in arrays.items() if v is not None}
        return indices.start, there


def solve_batches(batches: Batches, workers: int) -> Generator[Batch, None, None]:
    """Solve batches and yield them as they come.

    Args:
        batches: What to solve.
        workers: Spawned processes of one thread each; 1 works in this process.

    Raises:
        UserError: A solution fails its checks, or a process was killed.
    """
    several: dict[str, Any] = {"multiprocessing_context": "spawn"}
    loader = DataLoader(
        batches,
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


def ranges_of(chosen: np.ndarray, size: int) -> list[range]:
    """Runs of True in ``chosen`` ``[N]``, cut to at most ``size``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
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
