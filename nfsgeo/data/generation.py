"""Makes the data sets: solves samples in batches and writes them to a file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfsgeo.data.batches import Task, batch_size_for, missing_ranges, solve_batches
from nfsgeo.data.equations import EQUATIONS, Equation, find_equation
from nfsgeo.data.native import GridWriter
from nfsgeo.data.options import Option
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.pde.solution import Solver
from nfsgeo.errors import UserError
from nfsgeo.version import __version__

__all__ = [
    "EQUATIONS",
    "Equation",
    "Option",
    "find_equation",
    "generate",
    "generate_all",
]

Progress = Callable[[int, int], None]


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
        resolution: Points on each axis; the equation's own when None.
        records: Number of records; the equation's own when None.
        seed: Of the initial conditions.
        device: ``"cpu"`` or ``"cuda"``; on CUDA one process does the work.
        workers: Processes, each with one thread; 1 works in this one. More are
            spawned, so a script needs ``if __name__ == "__main__"`` around the call.
        options: Of the equation, by name.
        progress: Called with the number of finished samples and of all samples.
        batch_size: Samples solved together; chosen by size and device when None.

    Returns:
        ``out``.

    Raises:
        UserError: A setting is wrong, ``out`` exists, or a solution fails its checks.
    """
    chosen = find_equation(equation)
    solver = chosen.solver(options)
    samples = chosen.samples if samples is None else samples
    resolution = solver.default_resolution() if resolution is None else resolution
    records = solver.default_records() if records is None else records
    for name, value, least in (
        ("samples", samples, 1),
        ("resolution", resolution, 4),
        ("records", records, 1),
        ("workers", workers, 1),
        ("batch size", 1 if batch_size is None else batch_size, 1),
    ):
        if value < least:
            raise UserError(f"{name} {value}", f"{least} or more", "raise it")
    _check_device(device)
    sample_rng(seed, chosen.name, 0)  # refuses a wrong seed before a file is begun
    kind = torch.device(device).type
    batch_size = batch_size or batch_size_for(resolution**chosen.dim, records, kind)
    timed = chosen.static_role == "initial condition"
    with GridWriter(
        out,
        equation=chosen.name,
        domain=solver.domain(),
        axes=solver.axes(resolution),
        times=solver.times(records),
        num_samples=samples,
        component_names=chosen.component_names,
        static_names=chosen.static_names,
        static_role=chosen.static_role,
        provenance=_provenance(chosen, solver, seed),
        parameter_names=("dt",) if timed else (),
    ) as writer:
        done = np.array(writer.done)
        tasks = [
            Task(solver, seed, indices, resolution, records, device)
            for indices in missing_ranges(~done, batch_size)
        ]
        finished = int(done.sum())
        if progress is not None:
            progress(finished, samples)
        alone = kind != "cpu" or workers == 1 or len(tasks) < 2
        processes = 1 if alone else min(workers, len(tasks))
        with closing(solve_batches(tasks, processes)) as batches:
            for batch in batches:
                parameters = {"dt": batch.dt} if timed else {}
                writer.write(batch.start, batch.u, batch.a, parameters)
                finished += len(batch.u)
                if progress is not None:
                    progress(finished, samples)
    return Path(out)


def generate_all(
    folder: str | Path,
    *,
    samples: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Path]:
    """Make ``<folder>/<equation>.h5`` for every equation, at its defaults.

    Files that are there already are left as they are.

    Args:
        folder: Where to; it is made when it does not exist.
        samples: Samples in each file; 1200 when None.
        seed: As in :func:`generate`.
        device: As in :func:`generate`.
        workers: As in :func:`generate`.
        progress: Called with the equation, the finished samples and all samples.

    Returns:
        Equation to file.

    Raises:
        UserError: As in :func:`generate`.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = {name: Path(folder) / f"{name}.h5" for name in EQUATIONS}
    for name, path in paths.items():
        if path.exists():
            continue
        report = None if progress is None else partial(progress, name)
        generate(
            name,
            path,
            samples=samples,
            seed=seed,
            device=device,
            workers=workers,
            progress=report,
        )
    return paths


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


def _provenance(equation: Equation, solver: Solver, seed: int) -> dict[str, Any]:
    return {
        "commit": _commit(),
        "seed": seed,
        "scheme": GENERATOR,
        "parameters": asdict(solver),  # type: ignore[call-overload]
        "solver": dict(equation.method),
        "units": dict(equation.units),
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
