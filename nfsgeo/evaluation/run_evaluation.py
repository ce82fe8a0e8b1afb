"""Evaluates a run and writes the results into its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Subset

from nfsgeo.data import Fields
from nfsgeo.data.io.from_memory import saved_path
from nfsgeo.data.meshes import Mesh
from nfsgeo.errors import UserError, option
from nfsgeo.evaluation.additions import ADDITIONS, keeping
from nfsgeo.evaluation.references import References
from nfsgeo.evaluation.scope import Part, describe_data, describe_scored, scoped
from nfsgeo.evaluation.scored_model import (
    LoadedRun,
    ScoredModel,
    open_run,
    predictions,
)
from nfsgeo.evaluation.scores import Scores, score, unobserved_errors
from nfsgeo.evaluation.unseen import COLUMNS, UnseenAt, evaluate_unseen, spread
from nfsgeo.files import only_here
from nfsgeo.models import num_parameters
from nfsgeo.progress import Progress, silent
from nfsgeo.training import Experiment, RunPaths
from nfsgeo.training.artifacts import read_json, write_arrays, write_json, write_rows
from nfsgeo.training.checkpoints import own_checkpoint
from nfsgeo.training.run import is_finished
from nfsgeo.training.run_data import RunData
from nfsgeo.training.run_paths import Run, find_run
from nfsgeo.training.source import check_in_place, files_as_they_are, open_as
from nfsgeo.training.trainer import read_history

__all__ = ["BY_TIME_STEP", "SERIES", "evaluate_run"]

# Arrays of evaluation.npz that hold errors at each time step, by method.
BY_TIME_STEP = {
    "model": "error_by_record",
    "persistence": "persistence_by_record",
    "linear_extrapolation": "linear_by_record",
    "quadratic_extrapolation": "quadratic_by_record",
    "cubic_extrapolation": "cubic_by_record",
}

# Arrays of evaluation.npz about a few stations, as many as a figure can show.
SERIES = ("station", "station_times", "station_truth", "station_prediction")
STATIONS, TIME_STEPS = 4, 120


def evaluate_run(
    run: Run,
    *,
    data: Fields | Path | str | None = None,
    part: Part | None = None,
    factors: Sequence[float] = (),
    repeats: int = 5,
    unseen_at: UnseenAt | None = None,
    steps: int | None = None,
    boosting: bool = False,
    calibrate: bool = False,
    device: str | None = None,
    progress: Progress = silent,
    experiment: Experiment | None = None,
) -> dict[str, Any]:
    """Compute the errors of a run on its test samples, or on a named file.

    On the run's own data, also where they have moved, this writes ``summary.json``,
    ``evaluation.npz`` and, with ``factors``, ``unseen.csv``. On another file nothing is
    written, and the errors are over all samples unless ``part`` says otherwise, and at
    all points unless the model is tied to those of training, ``factors`` ask for meshes
    around them, or a grid is to ``calibrate`` bands.

    Args:
        run: From :func:`nfsgeo.fit`, its folder, or a name such as ``"ns-small"``.
        data: Another file to score. A file with the content of the run's own data is
            these at another place, of which the test part of the run is scored.
        part: ``"all"`` samples of that file, or its ``"test"`` part.
        factors: Also evaluate on unseen meshes with so many times as many points.
        repeats: Meshes to draw for each factor.
        unseen_at: Where the further points of these lie, see
            :func:`~nfsgeo.evaluation.unseen.evaluate_unseen`. On other data, training
            counts as having seen the points that it would have drawn.
        steps: Also evaluate so many time steps ahead, by an autoregressive rollout.
        boosting: Whether gradient boosted trees are a reference of a single series,
            where scikit-learn is installed, within a minute. Of a problem without time
            they are one in any case, within seconds.
        calibrate: Whether error bands are fitted to these samples from now on, by their
            conformal factors; the scores of bands are on the same samples then.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, instead of the run's own.
        progress: Called with what is being done, how much is done and in all.
        experiment: The experiment that trained the run, whose data need not be read
            and fitted again.

    Returns:
        As ``summary.json`` holds them: the model's errors as ``"test"``, those of
        :class:`~nfsgeo.evaluation.References` as ``"baselines"``, and of several
        components each one's in its own unit as ``"components"``; ``"unobserved"``
        where the file has other points than the model sees, and ``"by_node_type"`` the
        model's errors at the points of each type where there are types, by its meaning
        or number. ``"scored"`` says how many
        samples and points they are over, with ``"data_of_run"`` where ``data`` are the
        run's own; ``"dataset"`` describes these. With ``factors``, ``"unseen"`` holds
        the errors on larger meshes, and ``"unseen_points"`` where their further points
        lie. With ``steps``, ``"rollout"`` is what :meth:`~Scores.rollout` returns.
        Further entries are the scores of the run's
        :class:`~nfsgeo.evaluation.additions.Addition` objects: ``"bands"`` of error
        bands, and ``"out_of_distribution"`` of samples unlike those of training.

    Raises:
        UserError: The run has no checkpoint, or the data do not fit it, or there are no
            error bands to calibrate or too few samples, or an argument is wrong.
    """
    choices = (
        ("part", part, get_args(Part)),
        ("unseen_at", unseen_at, get_args(UnseenAt)),
    )
    for name, choice, names in choices:
        if choice not in (None, *names):
            raise UserError(f"{name} {choice!r}", " or ".join(names), "choose one")
    if steps is not None and steps < 1:
        raise UserError(f"steps {steps}", "1 or more", "change it or leave it out")
    paths = find_run(run)
    if calibrate:
        with only_here(paths.root, "a run"):
            pass  # not in training, whose end makes bands of its own
    loaded = open_run(paths, device)
    forecaster, task = loaded.forecaster, loaded.forecaster.task
    run_data: RunData | None = None
    if data is None:
        used, own_data = _own_data(loaded, paths, experiment), True
    else:
        file = open_as(loaded.config.data, saved_path(data))
        try:
            run_data = loaded.data_of_run(file)
        except UserError:  # its test file is gone
            if part is None:
                raise
        part = part or ("test" if run_data else None)
        # A model that comes with nfsgeo has no data, and its folder is not written to.
        of_run = run_data if part == "test" and loaded.config.data.file else None
        own_data = of_run is not None
        used = of_run or loaded.data(file)
    named = used
    # Bands are to hold for predictions, whose inputs are at the points of the run where
    # the file is a grid.
    around = bool(factors) or (calibrate and used.file.shape is not None)
    used, part = scoped(
        used, task.num_points, own_data=own_data, part=part, around=around
    )
    scored = ScoredModel(forecaster, used)
    references = References(scored, boosting=boosting)
    # What cannot be evaluated is refused before the test samples are scored.
    ahead = None if steps is None else References(scored, steps=steps)
    added = {
        name: kind.of_run(
            scored, paths, references, own_data=own_data, calibrate=calibrate
        )
        for name, kind in ADDITIONS.items()
    }
    if calibrate and added.get("error bands") is None:
        raise UserError(
            f"{paths.root} to calibrate",
            "a run with error bands",
            f"train it again, {option('bands')}, or evaluate it if it has them",
        )
    rows: list[dict[str, Any]] = []
    unseen: dict[str, Any] = {}
    if factors:
        rows, points = evaluate_unseen(
            scored, factors, repeats, at=unseen_at, progress=progress
        )
        unseen = {"unseen": spread(rows), "unseen_points": points}
    scores = score(scored, references, progress=progress)
    summary = _costs(paths, scored) | {"weights": forecaster.digest}
    if own_data:
        summary["fingerprint"] = task.fingerprint
        summary["dataset"] = describe_data(used)
    summary["scored"] = describe_scored(
        named, scores.windows, part, scores.points, run_data
    )
    summary |= scores.summary()
    summary |= unobserved_errors(scored, references)
    if ahead is not None:
        further = score(scored, ahead, steps=steps, progress=progress)
        summary["rollout"] = further.rollout()
    for part_of_run in filter(None, added.values()):
        summary |= part_of_run.scores(scored, references)
    summary |= unseen
    if own_data and not calibrate:
        shown = {**_examples(scored, scores), **_station_series(scored)}
        with keeping(paths, forecaster.digest) as current:
            if current:
                _write(paths, used.file, scores, shown, summary, rows)
    return summary


def _own_data(
    loaded: LoadedRun, paths: RunPaths, experiment: Experiment | None
) -> RunData:
    """Return the data of a run, from the ``experiment`` that trained it if given.

    Raises:
        UserError: The run has no data, or they have moved or changed since training.
    """
    trained, fingerprint = loaded.config.data, loaded.forecaster.task.fingerprint
    if trained.file is None:
        raise UserError(
            f"{paths.root} without data", "a file to evaluate on", "give --data FILE"
        )
    if experiment is not None:
        used = experiment.used
    else:
        check_in_place(trained, paths.root)
        used = loaded.data()
    files = read_json(paths.belongings).get("files") if fingerprint else None
    unchanged = files and files == files_as_they_are(trained)
    if fingerprint and not (unchanged or used.file.holds(fingerprint)):
        raise UserError(
            f"{used.file.path}, which has changed since training",
            "the data that the run was trained on",
            "put them back, or score the file as another one: --data FILE",
        )
    return used


def _costs(paths: RunPaths, scored: ScoredModel) -> dict[str, Any]:
    """Sizes and cost of a run, with which ``summary.json`` begins.

    ``n_s`` is the number of points of a training sample, the median if they differ;
    ``seconds_per_epoch`` is the mean over the epochs trained, validation included;
    ``peak_memory_bytes`` is that of the CUDA device, or of the process on the CPU, and
    None where there is no last checkpoint, as is ``cpu_seconds``, the CPU time of
    training and validation. ``stopped_early`` is true where training
    ran out of ``trainer.patience`` before its last epoch.
    """
    config, file, forecaster = scored.used.config, scored.used.file, scored.forecaster
    rows, task = read_history(paths.metrics), forecaster.task
    memory, cpu, early = None, None, False
    if paths.last.exists():
        checkpoint = own_checkpoint(paths, paths.last)
        history = checkpoint["callbacks"]["History"]
        memory, cpu = history["peak_memory_bytes"], history.get("cpu_seconds")
        early = len(rows) < config.trainer.epochs and is_finished(checkpoint, config)
    return {
        "model": config.model.name,
        "data": str(file.path),
        "equation": file.equation,
        "provenance": file.provenance,
        "seed": config.seed,
        "n_s": task.num_points,
        "n_t": max(1, task.n_in),
        "n_t_out": task.n_out,
        "epochs": len(rows),
        "stopped_early": early,
        "parameters": num_parameters(forecaster.model),
        "seconds_per_epoch": sum(row["seconds"] for row in rows) / max(1, len(rows)),
        "cpu_seconds": cpu,
        "peak_memory_bytes": memory,
    }


def _write(
    paths: RunPaths,
    file: Fields,
    scores: Scores,
    shown: dict[str, Any],
    summary: dict[str, Any],
    unseen: list[dict[str, Any]],
) -> None:
    """Write the summary, the rows of unseen meshes, and what figures show.

    These are examples, series and errors in time. Results of other weights go.
    """
    weights = summary["weights"]
    if read_json(paths.summary).get("weights") not in (None, weights):
        paths.unseen.unlink(missing_ok=True)
        paths.meshes.unlink(missing_ok=True)
    methods, names = scores.methods, file.component_names
    inputs = file.input_names if len(file.times) == 1 else []
    kinds = file.categories
    texts = {
        "component_names": names,
        "component_units": [file.units.get(name, "") for name in names],
        "input_names": inputs,
        "input_units": [file.units.get(name, "") for name in inputs],
        # A category has the meanings of its numbers, as JSON.
        "input_kinds": [json.dumps(kinds[n]) if n in kinds else "" for n in inputs],
        "axis_units": [file.units.get(axis, "") for axis in file.space],
        "time_unit": file.time_unit,
    }
    arrays: dict[str, Any] = {
        **shown,
        **file.domain.to_dict(),
        **{
            key: methods[name].by_time_step
            for name, key in BY_TIME_STEP.items()
            if name in methods
        },
        "mae_by_sample": scores.mae.numpy(),
        "weights": np.array(weights),
        **{name: np.array(text) for name, text in texts.items() if any(text)},
    }
    write_arrays(paths.evaluation, arrays)
    if unseen:
        write_rows(paths.unseen, COLUMNS, unseen)
    write_json(paths.summary, summary)


def _examples(scored: ScoredModel, scores: Scores) -> dict[str, Any]:
    """Predict a few windows again, for pictures: by their errors, and the first one.

    Returns:
        ``rank`` of each window ``[S]``: ``"best"``, ``"median"``, ``"worst"`` or
        ``""``; ``sample [S]``, ``times [S, T]``, ``pos``, ``x``, ``truth`` and
        ``prediction [S, n, ...]``, and ``triangles [S, m, 3]`` where there are any.
        ``mesh_pos [S, k, 2]`` are their points, where those are not ``pos``. Meshes of
        fewer points or triangles than others are filled up with NaN and -1.
    """
    windows, file, mae = scores.windows, scored.used.file, scores.mae
    order = mae.argsort(stable=True)[: int((~mae.isnan()).sum())].tolist()
    last = len(order) - 1
    places = {last // 2: "median", 0: "best", last: "worst"} if last > 0 else {}
    ranks = {order[place]: rank for place, rank in sorted(places.items())}
    chosen = [*ranks, *[0] * (0 not in ranks)]
    meshes, mesh_pos = list[Tensor](), list[Tensor]()
    some: Any = Subset(windows, chosen)
    parts, samples = list[tuple[Tensor, ...]](), list[int]()
    for batch, u in predictions(scored.forecaster, some, 1):
        samples.append(int(batch.sample))
        pos, triangles = batch.pos.cpu().numpy(), file.triangles(samples[-1])
        mesh = file.coordinates(samples[-1]).astype(pos.dtype)
        # It may be observed at all points of its mesh, in the order of the file.
        if triangles is None or np.array_equal(pos, mesh):
            mesh = mesh[:0]
        triangles = np.empty((0, 3), int) if triangles is None else triangles
        meshes.append(torch.tensor(triangles))
        mesh_pos.append(torch.tensor(mesh))
        parts.append((batch.pos, batch.x, batch.y, u))
    names, stacks = ("pos", "x", "truth", "prediction"), zip(*parts, strict=True)
    arrays = {
        name: pad_sequence([*stack], True, torch.nan).cpu().numpy()
        for name, stack in zip(names, stacks, strict=True)
    }
    if any(map(len, meshes)):
        arrays["triangles"] = pad_sequence(meshes, True, -1).numpy()
    if any(map(len, mesh_pos)):
        arrays["mesh_pos"] = pad_sequence(mesh_pos, True, torch.nan).numpy()
    arrays["times"] = np.stack([windows[window].times for window in chosen])
    arrays["rank"] = np.array([ranks.get(window, "") for window in chosen])
    return {**arrays, "sample": np.array(samples)}


def _station_series(scored: ScoredModel) -> dict[str, NDArray[Any]]:
    """Predict the end of the test series at the stations with most values there.

    Predictions follow each other, each from the time steps before it, so that every
    time step is predicted once. Points without names, or without time, have none.

    Returns:
        ``station``: names ``[K]``; ``station_times`` ``[T]``; ``station_truth`` and
        ``station_prediction`` ``[K, T, C]``.
    """
    forecaster, used = scored.forecaster, scored.used
    file, mesh, data = used.file, used.mesh, used.config.data
    names, n_in, n_out = file.stations(), data.n_in, data.n_out or 1
    if not (names and n_in and isinstance(mesh, Mesh)) or mesh.index is None:
        return {}
    stride = n_out * data.time_stride
    windows = scored.windows(noise=0.0, stride=stride, max_samples=1)
    last = range(len(windows))[-max(1, TIME_STEPS // n_out) :]
    starts = used.starts("test", n_in + n_out, stride)[last.start :]
    steps = starts[:, None] + data.time_stride * np.arange(n_in, n_in + n_out)
    whole = slice(int(steps.max()) + 1)
    truth = file.read(windows.samples[0], whole, mesh.index)[:, steps.ravel()]
    chosen = np.argsort(np.isnan(truth).sum((1, 2)), kind="stable")[:STATIONS]
    predicted = np.full_like(truth[chosen], np.nan)
    some: Any = Subset(windows, last)
    for window, (batch, u) in enumerate(predictions(forecaster, some, 1)):
        # Windows may lack points.
        station, point = np.nonzero(chosen[:, None] == batch.point.cpu().numpy())
        predicted[station, window * n_out : (window + 1) * n_out] = u.cpu()[point]
    stations, times = np.array(names)[mesh.index[chosen]], file.times[steps.ravel()]
    arrays = stations, times, truth[chosen], predicted
    return dict(zip(SERIES, arrays, strict=True))
