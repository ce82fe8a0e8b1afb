"""Predictions for new data, at the observed points or anywhere else."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch
from xarray import Variable

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_at
from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.io.from_memory import kept
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.times import (
    later,
    same_steps,
    spacing_text,
    span_text,
    step_text,
    time_text,
)
from nfsgeo.data.windows import Cache, WindowDataset
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError
from nfsgeo.evaluation.query_points import query_points_of
from nfsgeo.evaluation.scored_model import open_run, predictions
from nfsgeo.files import check_room
from nfsgeo.forecast import matched
from nfsgeo.forecast.matching import check_asked, times_of
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS, Task
from nfsgeo.progress import Progress, silent
from nfsgeo.training.run_data import RunData, open_as
from nfsgeo.training.run_paths import Run

__all__ = ["predict"]

logger = logging.getLogger(__name__)

# Points that a batch predicts at, approximately; a batch has at least one sample.
POINTS = 1 << 16


def predict(
    run: Run,
    source: Fields | Path | str,
    target: Path | str,
    *,
    query_points: Path | str | Doubles | None = None,
    first: int | None = None,
    steps: int | None = None,
    lead_times: Sequence[float] | None = None,
    level: float | None = None,
    device: str | None = None,
    progress: Progress = silent,
) -> Fields:
    """Predicts every sample of a file and writes a file of point clouds.

    Of a run with error bands there are ``u``, ``u_lower`` and ``u_upper`` in place of a
    component ``u``, as far ahead as in training.

    The last snapshots of the file are observed, as far apart as in training, and the
    time steps after its end are predicted. What is known ahead has to be in the file at
    these, too: its end is then the last time step with a value of the fields.

    A point cloud is observed at all of its points, a grid at the points of the run,
    or at all of them for a model that comes with nfsgeo.

    Args:
        run: From :func:`nfsgeo.fit`, its folder, or a name such as ``"ns-small"``.
        source: Fields with at least the run's input snapshots, or their path.
        target: The file to make; its ending chooses the format, see
            :meth:`~nfsgeo.data.Fields.write`.
        query_points: Where to predict, a file for
            :func:`~nfsgeo.evaluation.read_points`; None for the
            observed points. In Python also an array ``[M, d]``. A table, or an ``.npz``
            file, may hold static inputs of the run there, by their names.
        first: Number of the first observed snapshot, from 0, to predict from elsewhere
            in the file.
        steps: Number of time steps to predict, by an autoregressive rollout where they
            are more than in training.
        lead_times: Times to predict, after the last observed one, for a model that was
            trained with ``data.lead_times``.
        level: Share of values that are to lie in an error band, 0.9 by default, the
            attribute ``level`` of its ends; 0 leaves bands out.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, in place of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The predicted snapshots, as ``target`` holds them, with a parameter ``unlike``.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    loaded = open_run(run, device)
    config, forecaster = loaded.config, loaded.forecaster
    source, target = kept(source), Path(target)
    writer_of(target)
    task, data = forecaster.task, config.data
    with (
        tempfile.TemporaryFile(dir=target.parent) as scratch,  # also gone after a kill
        open_as(data, source) as file,
    ):
        file, domain, num = matched(file, task), task.domain, file.num_samples
        # A point cloud is observed everywhere; a model that needs a grid refuses it.
        info = MODELS[config.model.name]
        at_all = file.shape is None and info.any_mesh
        mesh = MeshOfFile(file) if at_all else RunData(config, file).mesh
        points, queries, most = None, None, max(map(file.num_points, range(num)))
        names: list[str] = []
        static: Mapping[str, Any] = {}
        if query_points is not None:
            points, names, static = query_points_of(query_points, domain, task.static)
            queries, most = domain.wrap(torch.from_numpy(points)), len(points)
            if static and file.sample_mesh.any():
                logger.warning(
                    "%s at the query points is that of all %d samples, although their "
                    "meshes differ",
                    *(", ".join(static), num),
                )
            names = names * num
        observed = _observed(task, data.time_stride, file, first)
        ahead = _ahead(task, file, observed, steps, lead_times)
        found = (
            each.companion(forecaster, len(ahead), level)
            for each in loaded.additions.values()
        )
        companions = [companion for companion in found if companion is not None]
        if level and not any(companion.suffixes for companion in companions):
            given = f"level {level:g} of {len(ahead)} time steps without error bands"
            wanted = f"a run with bands, and its {task.n_out} time steps"
            raise UserError(given, wanted, "leave it out, or train with --bands")
        further = {
            f"{name}_{suffix}": (companion.attributes, file.units.get(name, ""))
            for companion in companions
            for suffix, name in product(companion.suffixes, file.component_names)
        }
        fields = [*file.component_names, *further]
        joined = any(companion.needs_observed for companion in companions)
        numbers = np.concatenate([observed, ahead_known := _known_ahead(file, ahead)])
        bytes_each = 4 * len(ahead) * len(fields) + 8 * domain.dim
        check_room(target, num * most * bytes_each)
        steps_each = len(observed), len(ahead_known)
        how: dict[str, Any] = {"numbers": numbers, "cells": info.uses_cells}
        windows = WindowDataset(file, range(num), *steps_each, mesh, **how)
        for sample in range(num) if points is None and file.stations() else ():
            names += [*np.array(file.stations(sample))[mesh(sample).index]]

        def connect(pos: Tensor, **of: Any) -> Graphs:
            wanted = queries
            if queries is not None and joined:
                wanted = torch.cat([pos, queries.to(pos)])
            graphs = forecaster.connect(pos, query_pos=wanted, **of)
            for companion in companions:
                graphs = companion.connect(graphs)
            return graphs

        cache = Cache(2**30)

        def known_at_queries(batch: Batch) -> Tensor | None:
            if queries is None or (not static and task.boundary is None):
                return None
            first, rows = len(task.components) * task.has_time, list[Tensor]()
            inputs = batch.x[:, 0, first : first + len(task.static)]
            for sample, observed in zip(
                batch.sample.tolist(), inputs.split(batch.graphs.sizes), strict=True
            ):
                mesh_number = int(file.sample_geometry[sample])
                make = partial(_static_at, file, task, sample, queries, static)
                values = cache.get(mesh_number, make).to(inputs)
                rows += [observed, values] if joined else [values]
            return torch.cat(rows)

        staged, where = list[tuple[Any, ...]](), list[Doubles]()
        for batch, u in predictions(
            forecaster,
            windows,
            max(1, min(data.batch_size, POINTS // most)),
            connect=connect,
            steps=steps,
            ahead=torch.from_numpy(ahead),
            query_static=known_at_queries,
        ):
            more = [field for each in companions for field in each.components(u, batch)]
            u = torch.cat([u, *more], dim=-1)
            parts = u.cpu().split(batch.graphs.query_sizes or batch.graphs.sizes)
            for values in parts:
                values = values if points is None else values[-len(points) :]
                array = values.numpy()
                staged.append((array.dtype, "r", scratch.tell(), array.shape))
                scratch.write(array.tobytes())
                where.append(mesh(len(where)).pos if points is None else points)
            progress("samples", len(where), num)
        scratch.flush()
        maps = [np.memmap(scratch, *of) for of in staged]
        dims = ("point", "time", "component")
        values = [Variable(dims, staged_values) for staged_values in maps]
        predicted = to_fields(
            Path(source.name),
            {"u": (dims, values, {"components": fields})},
            {
                "points": (("point", "axis"), where),
                "station": ("point", names or None),
                "time": ("time", ahead),
            },
            cells=[*map(file.cells, range(num if at_all and points is None else 0))],
            domain=domain,
            parameters={k: v for of in companions for k, v in of.parameters().items()},
            equation=file.equation,
            provenance={"model": config.model.name, "predicted_from": source.name},
            units={**file.units, **{name: unit for name, (_, unit) in further.items()}},
            split=file.split,
        )
        for name, (attributes, _) in further.items():
            predicted.dataset[name].attrs.update(attributes)
        return nfsgeo.data.open(predicted.write(target))


def _observed(task: Task, stride: int, file: Fields, first: int | None) -> Indices:
    """Numbers of the observed snapshots, the last ones or those from ``first`` on.

    They are as far apart in time as in training or, of a model that can be asked for
    any time, in number.
    """
    n_in, num, usual = task.n_in, file.num_observed(), np.array(task.times[: task.n_in])
    times, _ = times_of(task, file, file.times)
    if first is not None and not (n_in and 0 <= first < len(file.times)):
        raise UserError(
            f"the first observed snapshot {first} of {file.path}",
            f"one of 0 to {len(file.times) - 1} of fields in time",
            "change it or leave it out",
        )
    if not n_in:
        return np.empty(0, np.int64)
    if task.any_time:
        found = stride * np.arange(n_in)
        found += num - 1 - found[-1] if first is None else first
        wanted, fits = f"{found[-1] - found[0] + 1}", found[0] >= 0
    else:
        begin = times[num - 1] + usual[0] if first is None else times[first]
        found, off = _nearest(times, begin + usual - usual[0])
        step = step_text(task.step, task.units.get("time", ""))
        wanted, fits = f"{n_in}, {step} apart", off.max() <= 1e-3 * task.step * n_in
    if not fits or found[-1] >= num:
        apart = spacing_text(file.times[first or 0 :], file.time_unit)
        raise UserError(
            f"{file.path} with {num} observed snapshots"
            + f", {apart} apart" * bool(apart)
            + ", and time steps "
            f"{max(0, found[0])} to {found[-1]} to predict from",
            f"at least {wanted}, as in training",
            "use a file with such snapshots at its end, or choose others by the number "
            "of the first, --first",
        )
    return found


def _ahead(
    task: Task,
    file: Fields,
    observed: Indices,
    steps: int | None,
    lead_times: Sequence[float] | None,
) -> Doubles:
    """Times to predict, in the file's unit."""
    ahead = np.array(task.times[task.n_in :])
    if lead_times is not None:
        check_asked(task, lead_times, steps)
        ahead = np.array(lead_times, np.float64)
    elif steps is not None and task.has_time:
        ahead = _rolled_out(ahead, steps)
    if task.has_time:
        until = file.times[: observed[-1] + 1]
        ahead = later(ahead, until, times_of(task, file, until)[1])
    return ahead


def _rolled_out(ahead: Doubles, steps: int) -> Doubles:
    """So many times after the last input, as far apart as those of training."""
    apart = np.diff(ahead, prepend=0)
    if steps < 1 or not same_steps(apart, apart[0]).all():
        raise UserError(
            f"--steps {steps} of a model that was trained on time steps of "
            f"{apart.min():g} to {apart.max():g}",
            "1 or more, of equal length",
            "change it, or give the times to predict by --lead-times",
        )
    return apart[0] * np.arange(1, steps + 1)


def _known_ahead(file: Fields, ahead: Doubles) -> Indices:
    """Numbers of the predicted time steps, where the file must know something there."""
    if not file.forcing_names:
        return np.empty(0, np.int64)
    found, off = _nearest(file.times, ahead)
    step = min(np.diff(times).min(initial=np.inf) for times in (ahead, file.times))
    if (lacking := ~(off <= 1e-3 * step)).any():
        raise UserError(
            f"{file.path} without {', '.join(file.forcing_names)} at "
            f"{time_text(ahead[lacking][0], file.time_unit)}",
            f"what is known ahead at all {len(ahead)} predicted time steps, "
            f"{span_text(ahead[0], ahead[-1], file.time_unit)}",
            "add these time steps to the file, without values of the fields, or ask "
            "for fewer --steps",
        )
    return found


def _nearest(there: Doubles, times: Doubles) -> tuple[Indices, Doubles]:
    """Numbers of the snapshots nearest to some times, and how far these are off."""
    off = np.abs(there[:, None] - times)
    return off.argmin(axis=0), off.min(axis=0)


def _static_at(
    file: Fields, task: Task, sample: int, points: Tensor, given: Mapping[str, Any]
) -> Tensor:
    """Static inputs of a task at query points ``[M, C_s]``, NaN where unknown."""
    values = torch.full((len(points), len(task.static)), torch.nan).double()
    for name, column in {
        **boundary_at(file, task.boundary, sample, points),
        **given,
    }.items():
        values[:, task.static.index(name)] = torch.tensor(column).double()
    return values
