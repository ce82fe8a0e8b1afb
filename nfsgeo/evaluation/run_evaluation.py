"""Evaluates a run folder and writes the results into it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import (
    Evaluation,
    evaluate,
    scored_windows,
    unobserved_errors,
)
from nfsgeo.evaluation.scope import Part, describe_scored, scoped
from nfsgeo.evaluation.summary import describe_errors, describe_run
from nfsgeo.evaluation.unseen import (
    COLUMNS,
    UnseenAt,
    evaluate_unseen,
    seen_by_training,
    spread,
)
from nfsgeo.forecast import Forecaster, check_times, matched
from nfsgeo.progress import Progress, silent
from nfsgeo.training import RunConfig, RunPaths, read_config, restore
from nfsgeo.training.artifacts import write_bytes, write_json, write_rows
from nfsgeo.training.environment import check_device, device_of
from nfsgeo.training.observation import observe
from nfsgeo.training.reading import check_observed
from nfsgeo.training.run_paths import find_run
from nfsgeo.training.source import open_source
from nfsgeo.training.window_starts import part_samples

__all__ = ["BY_TIME_STEP", "evaluate_run", "open_run"]

# Arrays of evaluation.npz that hold errors at each time step, by method.
BY_TIME_STEP = {
    "model": "error_by_record",
    "persistence": "persistence_by_record",
    "linear_extrapolation": "linear_by_record",
}


def evaluate_run(
    folder: Path,
    *,
    data: Path | None = None,
    part: Part | None = None,
    factors: Sequence[float] = (),
    repeats: int = 5,
    unseen_at: UnseenAt | None = None,
    steps: int | None = None,
    device: str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Errors of a run on the test samples, and on larger meshes if asked for.

    On the run's own data this writes ``summary.json``, ``evaluation.npz`` and, with
    ``factors``, ``unseen.csv``. On another file nothing is written, and the errors are
    over all samples unless ``part`` says otherwise, and at all points unless the model
    is tied to those of training or ``factors`` ask for meshes around them.

    Args:
        folder: The run's folder, or the name of a model that comes with nfsgeo.
        data: Another file to evaluate on.
        part: ``"all"`` samples of that file, or its ``"test"`` part.
        factors: Also evaluate on meshes with so many times as many points.
        repeats: Meshes to draw for each factor.
        steps: Also evaluate so many time steps ahead, by an autoregressive rollout.
        unseen_at: Where additional points lie, as for :func:`evaluate_unseen`. On other
            data, training counts as having seen the points that it would have drawn.
        device: In place of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The summary; ``"scored"`` says how many samples and points the errors are over.
        With ``factors``, ``"unseen"`` holds the errors on larger meshes, and
        ``"unseen_points"`` what :func:`seen_by_training` finds. With ``steps``,
        ``"rollout"`` holds ``times`` after the last input, the ``errors`` over all of
        these by method, ``mae_by_step``, and ``rel_l1_last_by_sample``, the relative L1
        at the last of them with the mean removed.

    Raises:
        UserError: The run has no checkpoint, or the data do not fit it.
    """
    paths = find_run(folder)
    trained, forecaster = open_run(paths, device)
    if data is None and trained.data.file is None:
        raise UserError(
            f"{folder} without data", "a file to evaluate on", "give --data FILE"
        )
    with nfsgeo.data.open(data) if data else open_source(trained.data) as file:
        file, task = matched(file, forecaster.task), forecaster.task
        if data is None and task.fingerprint not in ("", file.fingerprint()):
            raise UserError(
                f"{file.path}, which has changed since training",
                "the data that the run was trained on",
                "put them back, or score the file as another one: --data FILE",
            )
        own = data is None
        config, file, part = scoped(
            trained, file, task.num_points, own=own, part=part, around=bool(factors)
        )
        mesh = observe(config.data, file, config.seed)
        # The mean of the training targets is a baseline; a named file may have none.
        has_train = len(part_samples(config.data, file, "train"))
        reference = "train" if has_train else "test"

        def scored(steps: int | None = None) -> tuple[Any, Evaluation]:
            test, train = (
                scored_windows(forecaster, config, file, mesh, each, n_out=steps)
                for each in ("test", reference)
            )
            if steps is None:
                windows = map(test.__getitem__, range(len(test)))
                check_times(task, file, (window.times.tolist() for window in windows))
                check_observed("test", test)
            size = config.data.batch_size
            return test, evaluate(
                forecaster, test, train, batch_size=size, steps=steps, progress=progress
            )

        test, found = scored()
        summary = describe_run(paths, config, forecaster, file)
        summary |= {"scored": describe_scored(trained, test, part, found.points)}
        summary |= describe_errors(found, forecaster.task.std, file)
        summary |= unobserved_errors(forecaster, config, file, mesh)
        if steps is not None:
            ahead, further = scored(steps)
            times = (ahead.times - ahead.times[ahead.n_in - 1])[ahead.n_in :]
            summary |= {"rollout": {"times": times.tolist(), **_ahead(further)}}
        rows = []
        if factors:
            points = seen_by_training(config, file, unseen_at)
            rows = evaluate_unseen(
                forecaster,
                config,
                file,
                mesh,
                factors=factors,
                repeats=repeats,
                at=points["at"],
                progress=progress,
            )
            summary |= {"unseen": spread(rows), "unseen_points": points}
        if own:
            _write(paths, file, found)
            if rows:
                write_rows(paths.unseen, COLUMNS, rows)
            write_json(paths.summary, summary)
    return summary


def open_run(
    paths: RunPaths, device: str | None = None
) -> tuple[RunConfig, Forecaster]:
    """The configuration of a run and its best model, on ``device`` or the run's own."""
    config = read_config(paths.config)
    section = config.trainer.model_copy(
        update={"device": device or config.trainer.device, "devices": 1}
    )
    check_device(section)
    return config, restore(paths.best, config).eval().to(device_of(section))


def _ahead(found: Evaluation) -> dict[str, Any]:
    """Errors of a rollout, as the summary has them."""
    by_step, last = found.by_time_step, found.last
    return {
        "errors": found.scores(),
        "mae_by_step": {name: each.tolist() for name, each in by_step.items()},
        "rel_l1_last_by_sample": {n: e.nanmean(-1).tolist() for n, e in last.items()},
    }


def _write(paths: RunPaths, file: Fields, found: Evaluation) -> None:
    """Writes the examples and the errors in time, with what their figures need."""
    errors, names = found.by_time_step, file.component_names
    texts = {
        "component_names": names,
        "component_units": [file.units.get(name, "") for name in names],
        "input_names": file.static_names if len(file.times) == 1 else [],
        "axis_units": [file.units.get(axis, "") for axis in file.space],
    }
    arrays: dict[str, Any] = {
        **found.examples,
        **file.domain.to_dict(),
        **{key: errors[name] for name, key in BY_TIME_STEP.items() if name in errors},
        **{name: np.array(each) for name, each in texts.items() if any(each)},
    }
    if file.time_unit:
        arrays["time_unit"] = np.array(file.time_unit)
    sample, pos = int(found.examples["sample"][0]), found.examples["pos"]
    triangles = file.triangles(sample)
    # Where a sample is observed at all points of its mesh, in the order of the file.
    everywhere = file.coordinates(sample).astype(pos.dtype)
    if triangles is not None and np.array_equal(pos, everywhere):
        arrays["triangles"] = triangles
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(paths.evaluation, content.getbuffer())
