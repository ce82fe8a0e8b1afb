"""Makes the data sets: solves samples in batches and writes them to a file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import closing, suppress
from math import prod
from pathlib import Path
from typing import Any

import torch

from nfsgeo.data.batches import Task, batch_size_for, missing_ranges, solve_batches
from nfsgeo.data.build import Array, build
from nfsgeo.data.disk import cache_folder, check_ending, check_room, partial_path
from nfsgeo.data.equations import find_equation
from nfsgeo.data.fields import FIELD, INITIAL, STATIC, Fields
from nfsgeo.data.formats import OWN, require
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.pde.solver import Solver
from nfsgeo.data.staging import Staging
from nfsgeo.data.store import write_own
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.version import __version__

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
    solver = find_equation(equation).with_options(options)
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
    times = solver.times(num_steps)
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
    tasks = [
        Task(solver, seed, indices, resolution, num_steps, device)
        for indices in missing_ranges(~done, batch_size)
    ]
    finished = int(done.sum())
    tick("making samples", finished, samples)
    processes = max(1, min(workers, len(tasks))) if kind == "cpu" else 1
    with closing(solve_batches(tasks, processes)) as batches:
        for batch in batches:
            arrays = {"u": batch.u, "a": batch.a, "dt": batch.dt, "pos": batch.pos}
            staging.put(batch.start, {k: v for k, v in arrays.items() if v is not None})
            finished += len(batch.u)
            tick("making samples", finished, samples)
    fields = _staged(staging, solver, samples, resolution, times, seed)
    write_own(fields, out, tick)
    staging.remove()
    return out


def _staged(
    staging: Staging,
    solver: Solver,
    samples: int,
    resolution: int,
    times: Any,
    seed: int,
) -> Fields:
    """The fields of a staged data set."""
    initial = solver.static_role == "initial condition"
    axes = solver.axes(resolution)
    space = "xyz"[: len(axes)] or "p"
    arrays = []
    for name, letters, names, role in (
        ("u", f"nt{space}c", solver.component_names, FIELD),
        ("a", f"n{space}c", solver.static_names, INITIAL if initial else STATIC),
    ):
        if axes:
            values: Any = staging.variable(name, tuple(letters))[:samples]
        else:
            values, letters = staging.each(name, tuple(letters))[:samples], letters[1:]
        arrays.append(Array(values, letters, names, role))
    where: dict[str, Any] = {"axes": axes}
    if not axes:
        points = staging.variable("pos", ("n", "p", "d"))[:samples]
        where = {"points": [*points.values], "cells": solver.cells(resolution)}
    steps = staging.variable("dt", ("n",))[:samples]
    return build(
        Path(solver.name),
        arrays,
        **where,
        times=times,
        domain=solver.domain,
        parameters={"dt": steps.values} if initial else None,
        equation=solver.name,
        provenance={
            "commit": _commit(),
            "seed": seed,
            "scheme": GENERATOR,
            "parameters": solver.model_dump(),
            "solver": dict(solver.method),
        },
        units=solver.units,
    )


def _cached_name(solver: Solver, *numbers: int) -> str:
    """Name in the cache: the equation, its sizes, seed and options."""
    name = "{}-{}-{}-{}-seed{}".format(solver.name, *numbers)
    for key, value in solver.model_dump(exclude_defaults=True).items():
        name += f"-{key}={value}".replace("/", "_")
    return f"{name}.nc"


def _sizes(solver: Solver, *given: int | None) -> tuple[int, int, int]:
    """Numbers of samples, points on an axis and time steps, the equation's if None."""
    defaults = solver.samples, solver.resolution, solver.num_steps
    samples, resolution, num_steps = (
        default if value is None else value
        for value, default in zip(given, defaults, strict=True)
    )
    for name, value, least in (
        ("--samples", samples, 1),
        ("--resolution", resolution, 4),
        ("--records", num_steps, 1),
    ):
        if value < least:
            raise UserError(f"{name} {value}", f"{least} or more", "raise it")
    return samples, resolution, num_steps


def _kind(device: str) -> str:
    """Whether a device is ``cpu`` or ``cuda``, once it is there."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise UserError(f"device {device!r}", "cpu or cuda", "choose one")
    if kind == "cuda" and not torch.cuda.is_available():
        given, expected = f"device {device!r}", "a CUDA device that torch sees"
        raise UserError(given, expected, "use cpu")
    return kind


def _commit() -> str:
    """Last commit that changed the solvers; the version where there is no checkout."""
    # Later commits leave it as it is, so that a generation can go on after them.
    root, found = Path(__file__).resolve().parents[2], ""
    command = ["git", "log", "-1", "--format=%H", "--", "nfsgeo/data/pde"]
    if (root / ".git").exists():
        with suppress(OSError):
            found = subprocess.run(
                command, cwd=root, capture_output=True, text=True
            ).stdout.strip()
    return found or __version__
