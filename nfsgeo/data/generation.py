"""Generation of data sets: samples are solved in batches and written to a file."""

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

from nfsgeo.data.conventions import INITIAL, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.flags import with_node_types
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.pde import Solver, find_equation
from nfsgeo.data.pde.periodic import PeriodicSolver, flush_denormals
from nfsgeo.data.pde.random_fields import GENERATOR, sample_rng
from nfsgeo.data.writers import OWN, write_own
from nfsgeo.errors import UserError, require
from nfsgeo.files import (
    cache_folder,
    check_room,
    check_target,
    only_here,
    safe_name,
    save_array,
    write_bytes,
)
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
            not there yet, see :func:`~nfsgeo.files.cache_folder`.
        samples: Number of samples; the equation's own when None.
        resolution: Points on each axis, squares along each side of a cell with a hole,
            mesh lines around a body, or parts of an edge of the icosahedron of one; the
            equation's own when None.
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
    samples = _number("--samples", samples, solver.samples)
    resolution = _number("--resolution", resolution, solver.resolution, least=4)
    num_steps = _number("--records", num_steps, solver.num_steps)
    workers = _number("--workers", workers, 1)
    if cached := out is None:
        sizes = f"{resolution}-{num_steps}-{samples}-seed{seed}"
        changed = solver.model_dump(exclude_defaults=True).items()
        name = "-".join([solver.name, sizes, *(f"{k}={v}" for k, v in changed)])
        out = cache_folder() / f"{safe_name(name.replace('/', '_'), 200)}.nc"
        if out.exists():
            return out
        out.parent.mkdir(parents=True, exist_ok=True)
    kind = device.partition(":")[0]
    if kind != "cpu" and not (kind == "cuda" and torch.cuda.is_available()):
        expected = "cpu, or cuda where torch sees one"
        raise UserError(f"device {device!r}", expected, "choose one")
    for package in solver.needs:
        require(package, f"generating {solver.name}", "fem")
    # These refuse a wrong seed or number of time steps before a file is begun.
    sample_rng(seed, solver.name, 0)
    solver.times(num_steps)
    out = Path(out)
    check_target(out, *OWN.endings)
    points = prod(solver.shape(resolution))
    fits = BATCH_BYTES // (8 * points * num_steps)
    usual = max(1, min(64, max(4, BATCH_VALUES[kind] // points), fits))
    batch_size = _number("batch size", batch_size, usual)
    folder = out.with_name(out.name + ".partial")
    ranges = [range(samples)[i : i + batch_size] for i in range(0, samples, batch_size)]
    todo = [batch for batch in ranges if not _staged_at(folder, "u", batch).exists()]
    finished = samples - sum(map(len, todo))
    values = num_steps * len(solver.component_names) + len(solver.static_names)
    check_room(out, 4 * (samples - finished) * points * values)
    settings = solver.model_dump(), resolution, num_steps, seed, GENERATOR
    header, about = folder / "about.json", json.dumps([solver.name, *settings])
    folder.mkdir(exist_ok=True)
    if cached:  # which another process may be making
        tick("waiting for the file", 0, samples)
    with only_here(folder, "data", wait=cached):
        if cached and out.exists():
            return out
        if not header.exists() and not any(folder.glob("*.npy")):
            write_bytes(header, about.encode())
        if not header.exists() or header.read_text() != about:
            same = "samples staged with the same settings"
            again = "repeat the settings it was begun with or remove it"
            raise UserError(f"{folder}", same, again)
        tick("making samples", finished, samples)
        processes = max(1, min(workers, len(todo))) if kind == "cpu" else 1
        made = _Batches(solver, seed, resolution, num_steps, device, todo)
        with closing(_solved(made, processes)) as batches:
            for batch, arrays in batches:
                for name in sorted(arrays):  # "u", the last, tells that a batch is made
                    save_array(_staged_at(folder, name, batch), arrays[name])
                finished += len(batch)
                tick("making samples", finished, samples)
        check_target(out, *OWN.endings)  # which may have been made meanwhile
        write_own(_staged(folder, ranges, made), out, tick)
        shutil.rmtree(folder, ignore_errors=True)
    return out


@dataclass(frozen=True)
class _Batches(Dataset[Any]):
    """Ranges of samples to solve. An item is the range and its arrays by the names of
    :class:`~nfsgeo.data.pde.Solution`, fields in float32; or the error of the solver.
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
        chosen, how = self.ranges[number], dict[str, Any](device=self.device)
        how |= {"resolution": self.resolution, "num_steps": self.num_steps}
        try:
            with flush_denormals():
                solution = self.solver.solve(self.seed, chosen, **how)
        except UserError as error:  # which torch would wrap in its traceback
            return error
        # Rounded here, after the checks: half as much to send between processes.
        arrays = {"u": solution.u.float(), "a": solution.a.float(), "dt": solution.dt}
        arrays |= {"pos": solution.pos, "scalars": solution.scalars}
        return chosen, {k: v.cpu().numpy() for k, v in arrays.items() if v is not None}


def _solved(
    made: _Batches, workers: int
) -> Generator[tuple[range, dict[str, Any]], None, None]:
    """Solve batches, in this process or in spawned ones of one thread each, and yields
    them as they come.

    Raises:
        UserError: A solution fails its checks, or a process was killed.
    """
    loader = DataLoader(
        made,
        batch_size=None,
        collate_fn=_as_it_is,
        worker_init_fn=end_with_parent,
        num_workers=workers if workers > 1 else 0,
        multiprocessing_context="spawn" if workers > 1 else None,
        in_order=False,
        generator=torch.Generator(),  # not the global one, which others seed
    )
    try:
        for batch in loader:
            if isinstance(batch, UserError):
                raise batch
            yield batch
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


def end_with_parent(_: int = 0) -> None:
    """End this process, a worker of any number, when its parent is gone; else it would
    wait for ever for the queue between them.
    """
    if (parent := multiprocessing.parent_process()) is not None:

        def leave() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=leave, daemon=True).start()


def _staged_at(folder: Path, name: str, batch: range) -> Path:
    return folder / f"{name}-{batch.start}-{batch.stop}.npy"


def _staged(folder: Path, ranges: Sequence[range], made: _Batches) -> Fields:
    """The fields of all batches, read when they are asked for."""

    def samples(name: str, *dims: str) -> tuple[tuple[str, ...], list[Variable]]:
        paths = [_staged_at(folder, name, batch) for batch in ranges]
        arrays = [np.load(p, mmap_mode="r", allow_pickle=False) for p in paths]
        return dims, [Variable(dims, sample) for batch in arrays for sample in batch]

    solver, steady = made.solver, not made.solver.spacing
    axes, parameters = solver.axes(made.resolution), dict[str, Any]()
    space = "xyz"[: len(axes)] or ("point",)
    role = STATIC if steady or solver.static_inputs else INITIAL
    u, a = {"components": solver.component_names}, {"components": solver.static_names}
    variables = {
        "u": (*samples("u", "time", *space, "component"), u),
        "a": (*samples("a", *space, "component"), {"role": role, **a}),
    }
    coordinates: dict[str, Any] = {"time": ("time", solver.times(made.num_steps))}
    for axis, values in zip("xyz", axes, strict=False):
        coordinates[axis] = axis, values
    if not axes:
        dims, points = samples("pos", "point", "axis")
        coordinates["points"] = dims, [pos.values for pos in points]
    if isinstance(solver, PeriodicSolver):
        parameters["dt"] = [float(dt) for dt in samples("dt")[1]]
    if solver.scalar_names:
        rows = [scalars.values for scalars in samples("scalars", "s")[1]]
        parameters |= zip(solver.scalar_names, np.stack(rows, axis=1), strict=True)
    named = [*"xyz"[: solver.domain.dim], *solver.component_names]
    named += solver.static_names if role == STATIC else ()
    named += () if steady else "t"
    fields = to_fields(
        Path(solver.name),
        variables,
        coordinates,
        cells=() if axes else solver.cells(made.resolution),
        domain=solver.domain,
        parameters=parameters,
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
    fields = with_node_types(fields, dict(enumerate(solver.node_types)))
    return fields.with_known(solver.scalar_names)


def _number(name: str, value: int | None, usual: int, least: int = 1) -> int:
    """A setting, the usual one where it is None; refused where it is too small."""
    number = usual if value is None else value
    if number < least:
        raise UserError(f"{name} {number}", f"{least} or more", "raise it")
    return number
