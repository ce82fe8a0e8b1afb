"""Makes the data sets: solves samples in batches and writes them to a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfsgeo.data.batches import Task, batch_size_for, missing_ranges, solve_batches
from nfsgeo.data.disk import cache_folder, check_room, occupied
from nfsgeo.data.equations import EQUATIONS, find_equation
from nfsgeo.data.extras import require
from nfsgeo.data.native.grid_writer import GridWriter
from nfsgeo.data.native.layout import Header, partial_path
from nfsgeo.data.native.mesh_writer import MeshWriter
from nfsgeo.data.native.staging import StagedWriter
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.pde.solver import Solver
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.version import __version__

__all__ = ["cached_file", "generate", "generate_all"]


def generate(
    equation: str,
    out: str | Path,
    *,
    samples: int | None = None,
    resolution: int | None = None,
    records: int | None = None,
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
        out: The file to make.
        samples: Number of samples; 1200 when None.
        resolution: Points on each axis, or squares along each side of a cell with a
            hole; the equation's own when None.
        records: Number of time steps to store; the equation's own when None.
        seed: Seed of the initial conditions.
        device: ``"cpu"`` or ``"cuda"``; on CUDA one process does the work.
        workers: Processes, each with one thread; 1 works in this one. More are
            spawned, so a script needs ``if __name__ == "__main__"`` around the call.
        options: Options of the equation, by name.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.
        batch_size: Samples solved together; chosen by size and device when None.

    Returns:
        ``out``.

    Raises:
        UserError: A setting is wrong, ``out`` exists, the disk is full, a package is
            missing, or a solution fails its checks.
    """
    tick = progress or silent
    solver = find_equation(equation).with_options(options)
    samples, resolution, records = _sizes(solver, samples, resolution, records)
    for name, value, least in (
        ("--samples", samples, 1),
        ("--resolution", resolution, 4),
        ("--records", records, 1),
        ("--workers", workers, 1),
        ("batch size", 1 if batch_size is None else batch_size, 1),
    ):
        if value < least:
            raise UserError(f"{name} {value}", f"{least} or more", "raise it")
    _check_device(device)
    _check_packages(solver)
    sample_rng(seed, solver.name, 0)  # refuses a wrong seed before a file is begun
    kind = torch.device(device).type
    batch_size = batch_size or batch_size_for(
        prod(solver.shape(resolution)), records, kind
    )
    timed = solver.static_role == "initial condition"
    about: dict[str, Any] = {
        "equation": solver.name,
        "domain": solver.domain,
        "times": solver.times(records),
        "component_names": solver.component_names,
        "static_names": solver.static_names,
        "static_role": solver.static_role,
        "provenance": _provenance(solver, seed),
    }
    staged: dict[str, Any] = {
        "num_samples": samples,
        "parameter_names": ("dt",) if timed else (),
        "packing": partial(tick, "packing samples"),
    }
    writer: StagedWriter
    if axes := solver.axes(resolution):
        writer = GridWriter(out, axes=axes, **about, **staged)
    else:
        cells, num_points = solver.cells(resolution), prod(solver.shape(resolution))
        header = Header(**about)
        writer = MeshWriter(out, header, cells=cells, num_points=num_points, **staged)
    with writer:
        done = np.array(writer.done)
        tasks = [
            Task(solver, seed, indices, resolution, records, device)
            for indices in missing_ranges(~done, batch_size)
        ]
        finished = int(done.sum())
        tick("making samples", finished, samples)
        processes = max(1, min(workers, len(tasks))) if kind == "cpu" else 1
        with closing(solve_batches(tasks, processes)) as batches:
            for batch in batches:
                parameters = {"dt": batch.dt} if timed else {}
                writer.write(batch.start, batch.u, batch.a, parameters, pos=batch.pos)
                finished += len(batch.u)
                tick("making samples", finished, samples)
    return Path(out)


def generate_all(
    folder: str | Path,
    *,
    samples: int | None = None,
    resolution: int | None = None,
    records: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Make ``<folder>/<equation>.h5`` for every equation, at its defaults.

    Files that are there already are left as they are.

    Args:
        folder: Where to; it is made when it does not exist.
        samples: As in :func:`generate`, like all that follow.
        resolution: Points on each axis.
        records: Number of time steps to store.
        seed: Seed of the initial conditions.
        device: ``"cpu"`` or ``"cuda"``.
        workers: Number of processes.
        progress: Called with the equation's name as well.

    Returns:
        The path of the file of each equation.

    Raises:
        UserError: As in :func:`generate`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.h5" for name in EQUATIONS}
    missing = {name: path for name, path in paths.items() if not path.exists()}
    for name in missing:
        _check_packages(EQUATIONS[name])
    # What is stored of an equation without time is one record.
    steps = {n: records if EQUATIONS[n].records > 1 else None for n in missing}
    wanted = sum(_bytes(EQUATIONS[n], samples, resolution, steps[n]) for n in missing)
    begun = sum(occupied(partial_path(path)) for path in missing.values())
    check_room(folder, wanted - begun)
    for number, (name, path) in enumerate(missing.items(), 1):
        place = f"{name} ({number} of {len(missing)})"
        generate(
            name,
            path,
            samples=samples,
            resolution=resolution,
            records=steps[name],
            seed=seed,
            device=device,
            workers=workers,
            progress=progress and partial(_within, place, progress),
        )
    return paths


def cached_file(
    equation: str,
    *,
    samples: int | None = None,
    resolution: int | None = None,
    records: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """A data set of one equation in the user's cache, made where it is not there yet.

    See :func:`~nfsgeo.data.disk.cache_folder`. All cores work.
    ``samples``, ``resolution``, ``records``, ``seed``, ``options`` and ``progress``,
    and the errors, are those of :func:`generate`.
    """
    solver = find_equation(equation).with_options(options)
    samples, resolution, records = _sizes(solver, samples, resolution, records)
    name = f"{solver.name}-{resolution}-{records}-{samples}-seed{seed}"
    for each in solver.options:
        if (value := getattr(solver, each.name)) != each.default:
            name += f"-{each.name}={value}".replace("/", "_")
    path = cache_folder() / f"{name}.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(
            solver.name,
            path,
            samples=samples,
            resolution=resolution,
            records=records,
            seed=seed,
            options=options,
            workers=os.cpu_count() or 1,
            progress=progress,
        )
    return path


def _sizes(
    solver: Solver, samples: int | None, resolution: int | None, records: int | None
) -> tuple[int, int, int]:
    """Numbers of samples, points on an axis and time steps, the equation's if None."""
    return (
        solver.samples if samples is None else samples,
        solver.resolution if resolution is None else resolution,
        solver.records if records is None else records,
    )


def _bytes(
    solver: Solver, samples: int | None, resolution: int | None, records: int | None
) -> int:
    """Bytes of all fields of a file, before they are packed."""
    samples, resolution, records = _sizes(solver, samples, resolution, records)
    fields = records * solver.components + len(solver.static_names)
    return 4 * samples * prod(solver.shape(resolution)) * fields


def _within(place: str, progress: Progress, what: str, done: int, total: int) -> None:
    """Progress on one of several files."""
    progress(f"{place}, {what}", done, total)


def _check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise UserError(f"device {device!r}", "cpu or cuda", "choose one")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"device {device!r}", "a CUDA device that torch sees", "use cpu"
        )


def _check_packages(solver: Solver) -> None:
    for package in solver.needs:
        require(package, f"generating {solver.name}", "fem")


def _provenance(solver: Solver, seed: int) -> dict[str, Any]:
    return {
        "commit": _commit(),
        "seed": seed,
        "scheme": GENERATOR,
        "parameters": asdict(solver),
        "solver": dict(solver.method),
        "units": dict(solver.units),
    }


def _commit() -> str:
    """Last commit that changed the solvers; the version where there is no checkout.

    Later commits leave it as it is, so that a generation can go on after them.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / ".git").exists():
        command = ["git", "log", "-1", "--format=%H", "--", "nfsgeo/data/pde"]
        try:
            found = subprocess.run(command, cwd=root, capture_output=True, text=True)
        except OSError:
            return __version__
        return found.stdout.strip() or __version__
    return __version__
