"""Makes the data sets: solves samples in batches and writes them to a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from math import prod
from pathlib import Path
from typing import Any

import torch

from nfsgeo.data.batches import Batches, batch_size_for, ranges_of, solve_batches
from nfsgeo.data.build import Array, build
from nfsgeo.data.disk import cache_folder, check_ending, check_room, partial_path
from nfsgeo.data.fields import FIELD, INITIAL, STATIC, Fields
from nfsgeo.data.formats import OWN, require
from nfsgeo.data.pde import Solver, find_equation
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.pde.solver import PeriodicSolver
from nfsgeo.data.staging import Staging
from nfsgeo.data.store import write_own
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.version import __version__, commit

__all__ = ["generate"]


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
    points = prod(solver.shape(resolution))
    batch_size = batch_size or batch_size_for(points, num_steps, kind)
    out = Path(out)
    check_ending(out, *OWN.endings)
    folder = partial_path(out)
    begun = sum(each.stat().st_size for each in folder.rglob("*.npy"))
    values = num_steps * len(solver.component_names) + len(solver.static_names)
    check_room(out, 4 * samples * points * values - begun)
    about = [solver.name, solver.model_dump(), resolution, num_steps, seed, GENERATOR]
    staging = Staging(folder, about)
    done = staging.done(samples)[:samples]
    ranges = ranges_of(~done, batch_size)
    todo = Batches(solver, seed, resolution, num_steps, device, ranges)
    finished = int(done.sum())
    tick("making samples", finished, samples)
    processes = max(1, min(workers, len(ranges))) if kind == "cpu" else 1
    with closing(solve_batches(todo, processes)) as batches:
        for start, arrays in batches:
            staging.put(start, arrays)
            finished += len(arrays["u"])
            tick("making samples", finished, samples)
    write_own(_staged(staging, todo, samples), out, tick)
    staging.remove()
    return out


def _staged(staging: Staging, made: Batches, samples: int) -> Fields:
    """The fields of a staged data set."""
    solver, steady = made.solver, not made.solver.spacing
    axes = solver.axes(made.resolution)
    space = "xyz"[: len(axes)] or "p"
    arrays, where = [], dict[str, Any](axes=axes)
    for name, letters, names, role in (
        ("u", f"nt{space}c", solver.component_names, FIELD),
        ("a", f"n{space}c", solver.static_names, STATIC if steady else INITIAL),
    ):
        if axes:
            values: Any = staging.variable(name, tuple(letters))[:samples]
        else:
            values, letters = staging.each(name, tuple(letters))[:samples], letters[1:]
        arrays.append(Array(values, letters, names, role))
    if not axes:
        points = staging.variable("pos", ("n", "p", "d"))[:samples]
        where = {"points": [*points.values], "cells": solver.cells(made.resolution)}
    steps: dict[str, Any] = {}
    if isinstance(solver, PeriodicSolver):
        steps["dt"] = staging.variable("dt", ("n",))[:samples].values
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
    found = []
    for name, value, default, least in zip(
        ("--samples", "--resolution", "--records"),
        given,
        (solver.samples, solver.resolution, solver.num_steps),
        (1, 4, 1),
        strict=True,
    ):
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
