"""Predictions for new data, at the observed points or anywhere else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.build import Array, build
from nfsgeo.data.disk import check_room
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.opening import write, writer_of
from nfsgeo.data.staging import Staging
from nfsgeo.data.times import span_text, time_text
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.evaluation.fitting import check_fields
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.query_points import read_points
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.evaluation.scoring import predictions
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS
from nfsgeo.training import Forecaster, RunConfig
from nfsgeo.training.lead_times import check_lead
from nfsgeo.training.observation import observe

__all__ = ["predict"]

# Points that a batch predicts at, approximately; a batch has at least one sample.
POINTS = 1 << 16


def predict(
    folder: Path,
    source: Path,
    target: Path,
    *,
    query_points: Path | None = None,
    first: int | None = None,
    steps: int | None = None,
    lead_times: Sequence[float] | None = None,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Predicts every sample of a file and writes a file of point clouds.

    The last snapshots of the file are observed, as far apart as in training, and the
    time steps after its end are predicted. A forcing has to be in the file at these,
    too: its end is then the last time step with a value of the fields.

    A point cloud is observed at all of its points, a grid at the points of the run,
    or at all of them for a model that comes with nfsgeo.

    Args:
        folder: The run's folder, or the name of a model that comes with nfsgeo.
        source: Fields with at least as many snapshots as the run has input time steps.
        target: The file to make; its ending chooses the format, see
            :func:`nfsgeo.data.export`.
        query_points: Where to predict, see :func:`read_points`; None for the observed
            points.
        first: Number of the first observed snapshot, from 0, to predict from an earlier
            time; None for the last ones.
        steps: Number of time steps to predict, by an autoregressive rollout where they
            are more than in training; None for as many as in training.
        lead_times: Times to predict, after the last observed one, for a model of lead
            times; None for those of the first validation window.
        device: In place of the run's own.
        progress: Called with the number of samples done and in all.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    config, forecaster = open_run(find_run(folder), device)
    writer_of(target)
    with (
        tempfile.TemporaryDirectory(dir=target.parent, prefix=target.name) as scratch,
        nfsgeo.data.open(source) as file,
    ):
        file = check_fields(forecaster, file)
        # A point cloud is observed everywhere; a model that needs a grid refuses it.
        at_all = file.shape is None and MODELS[config.model.name].points
        mesh = MeshOfFile(file) if at_all else observe(config.data, file, config.seed)
        points = (
            None if query_points is None else read_points(query_points, file.domain)
        )
        most = max(map(file.num_points, range(file.num_samples)))
        num = config.data.points or most if points is None else len(points)
        observed, ahead = _window(forecaster, config, file, first, steps, lead_times)
        known = _steps_ahead(file, ahead)
        values = 4 * len(ahead) * file.components
        check_room(target, file.num_samples * num * (values + 8 * file.domain.dim))
        samples = range(file.num_samples)
        windows = WindowDataset(
            file,
            samples,
            len(observed),
            len(known),
            mesh,
            numbers=np.concatenate([observed, known]),
        )
        queried = most if points is None else len(points)
        size = max(1, min(config.data.batch_size, POINTS // queried))
        queries = None if points is None else torch.from_numpy(points)
        connect = partial(_connect, forecaster, file, queries)
        staging = Staging(Path(scratch) / "samples", {})
        where: list[NDArray[np.float64]] = []
        for batch, u in predictions(
            forecaster,
            windows,
            size,
            connect=connect,
            steps=steps,
            ahead=torch.from_numpy(ahead),
        ):
            sizes = batch.graphs.query_sizes or batch.graphs.sizes
            places = batch.pos.cpu().split(batch.graphs.sizes)
            for pos, values in zip(places, u.cpu().split(sizes), strict=True):
                staging.put(len(where), {"u": values.numpy()[None]})
                where.append(pos.numpy() if points is None else points)
            if progress is not None:
                progress(len(where), len(samples))
        fields = build(
            Path(source.name),
            [Array(staging.each("u", ("n", *"ptc")), "ptc", file.component_names)],
            points=where,
            times=ahead,
            domain=file.domain,
            equation=file.equation,
            provenance={"model": config.model.name, "predicted_from": source.name},
            units=file.units,
            split=file.split,
        )
        write(fields, target)
    return target


def _connect(
    forecaster: Forecaster, file: Fields, queries: Tensor | None, pos: Tensor
) -> Graphs:
    if queries is None:
        return forecaster.connect(pos)
    return forecaster.connect(pos, query_pos=file.domain.wrap(queries))


def _window(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    first: int | None,
    steps: int | None,
    lead_times: Sequence[float] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers of the observed snapshots, and the times that are predicted.

    Relative to the last observed snapshot, all times are those of training. A file
    with too few snapshots, or none at some of these times, is refused. A model of lead
    times takes snapshots that are any time apart.
    """
    trained = np.array(forecaster.description["times"])
    n_in, num = config.data.n_in or 0, len(file.times)
    if first is not None and not (n_in and 0 <= first < num):
        raise UserError(
            f"the first observed snapshot {first} of {file.path}",
            f"one of 0 to {num - 1}" if n_in else "none, for a coefficient is observed",
            "change it or leave it out",
        )
    if lead_times is not None:
        _check_lead_times(forecaster, lead_times, steps)
    if steps is not None and steps < 1:
        raise UserError(f"{steps} time steps", "1 or more", "change their number")
    if not n_in:
        if steps is not None:
            raise UserError(
                f"{steps} time steps of {file.path}, a problem without time",
                "fields in time",
                "leave the number of time steps out",
            )
        return np.empty(0, np.int64), trained
    around = trained - trained[n_in - 1]
    if forecaster.lead_times:
        found = _last_snapshots(config, file, first)
        return found, file.times[found[-1]] + _ahead(around[n_in:], steps, lead_times)
    if not file.num_observed():
        raise UserError(
            f"{file.path} without any value of {' and '.join(file.component_names)}",
            "observed time steps to predict from",
            "add them to the file",
        )
    last = file.times[file.num_observed() - 1]
    begin = last + around[0] if first is None else file.times[first]
    wanted = begin + around[:n_in] - around[0]
    found = np.abs(file.times[:, None] - wanted).argmin(axis=0)
    if found[-1] >= file.num_observed():
        raise UserError(
            f"{file.path} with {file.num_observed()} observed snapshots, and time "
            f"steps {found[0]} to {found[-1]} to predict from",
            "observed ones",
            "use a smaller --first",
        )
    # The one gap that is learned where a single snapshot is observed.
    step = np.diff(trained).min()
    if not np.allclose(file.times[found], wanted, rtol=0, atol=1e-3 * step * n_in):
        gaps = np.diff(file.times[first or 0 :])
        given = f"{file.path} with {len(gaps) + 1} snapshots"
        if len(gaps):
            equal = np.allclose(gaps, gaps[0], rtol=1e-3)
            given += f", {gaps.min():g}{'' if equal else f' to {gaps.max():g}'} apart"
        raise UserError(
            given + (f", from number {first} on" if first else ""),
            f"at least {n_in}, {step:g} apart, as in training",
            "use a file with such snapshots at its end, or choose others by the number "
            "of the first, --first",
        )
    return found, file.times[found[-1]] + _ahead(around[n_in:], steps, None)


def _ahead(
    trained: NDArray[np.float64], steps: int | None, asked: Sequence[float] | None
) -> NDArray[np.float64]:
    """Times after the last input: those of training unless others are asked for."""
    if asked is not None:
        return np.array(asked, np.float64)
    if steps is None:
        return trained
    step = np.diff(trained, prepend=0)
    if not np.allclose(step, step[0], rtol=1e-3, atol=0):
        raise UserError(
            f"--steps {steps} of a model that was trained on unequal time steps",
            "the times to predict",
            "give them by --lead-times",
        )
    return step[0] * np.arange(1, steps + 1)


def _check_lead_times(
    forecaster: Forecaster, asked: Sequence[float], steps: int | None
) -> None:
    given = f"lead times {', '.join(f'{time:g}' for time in asked)}"
    if not forecaster.lead_times or steps is not None:
        raise UserError(
            f"{given} with {'a number of steps' if steps else 'this model'}",
            "one of the two" if steps else "a model that was trained for lead times",
            "leave one out" if steps else "train with --set data.lead_times=true",
        )
    if not len(asked) or not np.all(np.diff([0.0, *asked]) > 0):
        raise UserError(given, "positive times that increase", "change them")
    check_lead(forecaster.description, asked[-1], f"{given}, of which")


def _last_snapshots(
    config: RunConfig, file: Fields, first: int | None
) -> NDArray[np.int64]:
    """Numbers of the observed snapshots, as far apart in number as in training."""
    numbers = config.data.time_stride * np.arange(config.data.n_in or 0)
    begin = file.num_observed() - 1 - numbers[-1] if first is None else first
    if begin < 0 or begin + numbers[-1] >= file.num_observed():
        start = f" from number {first} on" if first else ""
        raise UserError(
            f"{file.path} with {file.num_observed() - (first or 0)} snapshots{start}",
            f"at least {numbers[-1] + 1}",
            "use a longer file" + ", or a smaller --first" * bool(first),
        )
    return begin + numbers


def _steps_ahead(file: Fields, ahead: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers of the predicted time steps, where the file has forcings; else none."""
    if not file.forcing_names:
        return np.empty(0, np.int64)
    found = np.abs(file.times[:, None] - ahead).argmin(axis=0)
    step = np.diff(ahead).min(initial=np.inf)
    step = min(step, np.diff(file.times).min(initial=np.inf))
    there = np.isclose(file.times[found], ahead, rtol=0, atol=1e-3 * step)
    if not there.all():
        raise UserError(
            f"{file.path} without {', '.join(file.forcing_names)} at "
            f"{time_text(ahead[~there][0], file.time_unit)}",
            f"what is known ahead at all {len(ahead)} predicted time steps, "
            f"{span_text(ahead[0], ahead[-1], file.time_unit)}",
            "add these time steps to the file, without values of the fields, or ask "
            "for fewer --steps",
        )
    return found
