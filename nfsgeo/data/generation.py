"""Makes the data sets: solves samples in batches and writes them to a file."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from xarray import Variable

from nfsgeo.data.build import Array, build
from nfsgeo.data.disk import (
    cache_folder,
    check_room,
    check_target,
    save_array,
    write_bytes,
)
from nfsgeo.data.fields import FIELD, INITIAL, STATIC, Fields
from nfsgeo.data.formats import OWN, require
from nfsgeo.data.lazy import stacked
from nfsgeo.data.pde import Solver, find_equation
from nfsgeo.data.pde.periodic import PeriodicSolver, flush_denormals
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.store import write_own
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.version import __version__, commit

__all__ = ["end_with_parent", "generate"]

# Values on the grid of a batch: what stays in a core's cache, what fills a GPU.
BATCH_VALUES = {"cpu": 2**16, "cuda": 2**22}
BATCH_BYTES = 2**30


def generate(
    equation: str,
    out: str | Path | None,
    *,
    samples: int | None = None,
    resolution: int | None = None,
    num_steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    batch_size: int | None = None,
) -> Path:
    """Make a file of solutions of one equation.

    Sample ``i`` depends on the seed, the equation, its options and ``i`` alone: not on
    the number of samples, the batch size, the workers or, to rounding, the device.
    Finished batches are kept in ``<out>.partial``; after a kill, the same call goes on
    from there. ``out`` appears when everything is in it.

    Args:
        equation: A name in :data:`EQUATIONS`.
        out: The file to make; None for one in the user's cache that is made where it is
            not there yet, see :func:`~nfsgeo.data.disk.cache_folder`.
        samples: Number of samples; 1200 when None.
        resolution: Points on each axis, or squares along each side of a cell with a
            hole; the equation's own when None.
        num_steps: Number of time steps to store; the equation's own when None.
        seed: Seed of the initial conditions.
        device: ``"cpu"`` or ``"cuda"``; on CUDA one process does the work.
        workers: Processes, each with one thread; 1 works in this one. More are
            spawned, so a script needs ``if __name__ == "__main__"`` around the call.
        options: Options of the equation, by name.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.
        batch_size: Samples solved together; chosen by size and device when None.

    Returns:
        The file.

    Raises:
        UserError: A setting is wrong, ``out`` exists, the disk is full, a package is
            not installed, or a solution fails its checks.
    """
    tick = progress or silent
    solver = find_equation(equation, options)
    samples, resolution, num_steps = _sizes(solver, samples, resolution, num_steps)
    if out is None:
        name = _cached_name(solver, resolution, num_steps, samples, seed)
        out = cache_folder() / name
        if out.exists():
            return out
        out.parent.mkdir(parents=True, exist_ok=True)
    for name, value in (("--workers", workers), ("batch size", batch_size)):
        if value is not None and value < 1:
            raise UserError(f"{name} {value}", "1 or more", "raise it")
    kind = _kind(device)
    for package in solver.needs:
        require(package, f"generating {solver.name}", "fem")
    # These refuse a wrong seed or number of time steps before a file is begun.
    sample_rng(seed, solver.name, 0)
    solver.times(num_steps)
    out = Path(out)
    check_target(out, *OWN.endings)
    points = prod(solver.shape(resolution))
    if batch_size is None:
        fits = BATCH_BYTES // (8 * points * num_steps)
        batch_size = max(1, min(64, max(4, BATCH_VALUES[kind] // points), fits))
    folder = out.with_name(out.name + ".partial")
    begun = sum(each.stat().st_size for each in folder.rglob("*.npy"))
    values = num_steps * len(solver.component_names) + len(solver.static_names)
    check_room(out, 4 * samples * points * values - begun)
    _begin(
        folder,
        [solver.name, solver.model_dump(), resolution, num_steps, seed, GENERATOR],
    )
    ranges = [
        range(start, min(start + batch_size, samples))
        for start in range(0, samples, batch_size)
    ]
    todo = [each for each in ranges if not _staged_at(folder, "u", each).exists()]
    finished = samples - sum(map(len, todo))
    tick("making samples", finished, samples)
    processes = max(1, min(workers, len(todo))) if kind == "cpu" else 1
    made = _Batches(solver, seed, resolution, num_steps, device, todo)
    with closing(_solved(made, processes)) as batches:
        for batch, arrays in batches:
            for name in sorted(arrays):  # "u", the last, tells that a batch is made
                save_array(_staged_at(folder, name, batch), arrays[name])
            finished += len(batch)
            tick("making samples", finished, samples)
    write_own(_staged(folder, ranges, made), out, tick)
    shutil.rmtree(folder, ignore_errors=True)
    return out


@dataclass(frozen=True)
class _Batches(Dataset[Any]):
    """Samples of an equation to solve, each range of their numbers in one go.

    An item is the range and its arrays, by the names and of the shapes in
    :class:`~nfsgeo.data.pde.Solution`, fields in float32; or why there are none.
    """

    solver: Solver
    seed: int
    resolution: int
    num_steps: int
    device: str
    ranges: Sequence[range]

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, number: int) -> tuple[range, dict[str, Any]] | UserError:
        sizes = {"resolution": self.resolution, "num_steps": self.num_steps}
        chosen = self.ranges[number]
        try:
            with flush_denormals():
                found = self.solver.solve(
                    self.seed, chosen, device=self.device, **sizes
                )
        except UserError as error:  # which torch would wrap in its traceback
            return error
        # Rounded here, after the checks: half as much to send between processes.
        u, a = (values.float() for values in (found.u, found.a))
        arrays = {"u": u, "a": a, "dt": found.dt, "pos": found.pos}
        there = {k: v.cpu().numpy() for k, v in arrays.items() if v is not None}
        return chosen, there


def _solved(
    made: _Batches, workers: int
) -> Generator[tuple[range, dict[str, Any]], None, None]:
    """Solves batches, in this process or in spawned ones of one thread each, and yields
    them as they come.

    Raises:
        UserError: A solution fails its checks, or a process was killed.
    """
    several: dict[str, Any] = {"multiprocessing_context": "spawn"}
    loader = DataLoader(
        made,
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


def _begin(folder: Path, about: Any) -> None:
    """Makes the folder of finished batches, or goes on with one of the same settings.

    Raises:
        UserError: It holds samples of something else.
    """
    header, text = folder / "about.json", json.dumps(about, sort_keys=True)
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        write_bytes(header, text.encode())
    if not header.exists() or header.read_text() != text:
        same = "samples staged with the same settings"
        todo = "repeat the settings it was begun with or remove it"
        raise UserError(f"{folder}", same, todo)


def _staged_at(folder: Path, name: str, batch: range) -> Path:
    return folder / f"{name}-{batch.start}-{batch.stop}.npy"


def _staged(folder: Path, ranges: Sequence[range], made: _Batches) -> Fields:
    """The fields of all batches, read when they are asked for."""

    def parts(name: str, letters: str) -> list[Variable]:
        paths = [_staged_at(folder, name, batch) for batch in ranges]
        arrays = [np.load(p, mmap_mode="r", allow_pickle=False) for p in paths]
        return [Variable([*letters], values) for values in arrays]

    solver, steady = made.solver, not made.solver.spacing
    axes = solver.axes(made.resolution)
    space = "xyz"[: len(axes)] or "p"
    arrays, where = [], dict[str, Any](axes=axes)
    for name, letters, names, role in (
        ("u", f"nt{space}c", solver.component_names, FIELD),
        ("a", f"n{space}c", solver.static_names, STATIC if steady else INITIAL),
    ):
        values: Any = parts(name, letters)
        if axes:
            values = stacked(values, "n")
        else:
            values = [each[i] for each in values for i in range(len(each))]
            letters = letters[1:]
        arrays.append(Array(values, letters, names, role))
    if not axes:
        points = stacked(parts("pos", "npd"), "n")
        where = {"points": [*points.values], "cells": solver.cells(made.resolution)}
    steps: dict[str, Any] = {}
    if isinstance(solver, PeriodicSolver):
        steps["dt"] = stacked(parts("dt", "n"), "n").values
    named = [*"xyz"[: solver.dim], *solver.component_names]
    named += solver.static_names if steady else "t"
    return build(
        Path(solver.name),
        arrays,
        **where,
        times=solver.times(made.num_steps),
        domain=solver.domain,
        parameters=steps,
        equation=solver.name,
        provenance={
            "commit": commit() or __version__,
            "seed": made.seed,
            "scheme": GENERATOR,
            "parameters": solver.model_dump(),
            "solver": solver.method,
        },
        units=dict.fromkeys(named, "1") | dict(solver.units),
    )


def _cached_name(solver: Solver, *numbers: int) -> str:
    """Name in the cache: the equation, its sizes, seed and options."""
    name = "{}-{}-{}-{}-seed{}".format(solver.name, *numbers)
    for key, value in solver.model_dump(exclude_defaults=True).items():
        name += f"-{key}={value}".replace("/", "_")
    return f"{name}.nc"


def _sizes(solver: Solver, *given: int | None) -> list[int]:
    """Numbers of samples, points on an axis and time steps, the equation's if None."""
    usual = {
        "--samples": (solver.samples, 1),
        "--resolution": (solver.resolution, 4),
        "--records": (solver.num_steps, 1),
    }
    found = []
    for (name, (default, least)), value in zip(usual.items(), given, strict=True):
        found.append(default if value is None else value)
        if found[-1] < least:
            raise UserError(f"{name} {value}", f"{least} or more", "raise it")
    return found


def _kind(device: str) -> str:
    """Whether a device that is there is ``cpu`` or ``cuda``."""
    there = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    kind = device.partition(":")[0]
    if kind not in there:
        expected = " or ".join(there) + ", the devices that torch sees"
        raise UserError(f"device {device!r}", expected, "choose one")
    return kind
