"""Evaluates a run folder and writes the results into it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import (
    Evaluation,
    evaluate,
    unobserved_errors,
)
from nfsgeo.evaluation.fitting import (
    Part,
    check_fields,
    check_times,
    choose_part,
    describe_scored,
    for_named_file,
)
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.scoring import scored_windows
from nfsgeo.evaluation.summary import POOLED, describe_run
from nfsgeo.evaluation.unseen import (
    COLUMNS,
    UnseenAt,
    evaluate_unseen,
    seen_by_training,
    spread,
)
from nfsgeo.progress import Progress, silent
from nfsgeo.training import Forecaster, RunConfig, RunPaths, read_config, restore
from nfsgeo.training.artifacts import write_bytes, write_json, write_rows
from nfsgeo.training.environment import check_device, device_of
from nfsgeo.training.experiment import check_observed
from nfsgeo.training.observation import Observation, observe
from nfsgeo.training.source import open_source
from nfsgeo.training.window_starts import part_samples

__all__ = ["evaluate_run", "open_run"]

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
        factors: Also evaluate on meshes with this many times as many points.
        repeats: Meshes to draw for each factor.
        unseen_at: Where their additional points lie, as for :func:`evaluate_unseen`.
            On other data, training counts as having seen the points that it would have
            drawn from them.
        steps: Also evaluate so many time steps ahead, by an autoregressive rollout.
        device: In place of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The summary; ``"scored"`` says how many samples and points the errors are over.
        Where larger meshes were asked for, their errors are ``"unseen"``, and
        ``"unseen_points"`` says where the additional points lie and how many of the
        file's points training has seen. With ``steps``, ``"rollout"`` holds ``times``
        after the last input, the errors over all of these time steps by method,
        ``mae_by_step``, and ``rel_l1_last_by_sample``, the relative L1 at the last of
        them with the mean removed.

    Raises:
        UserError: The run has no checkpoint, or the data do not fit it.
    """
    paths = find_run(folder)
    config, forecaster = open_run(paths, device)
    if data is None and config.data.file is None:
        raise UserError(
            f"{folder} without data", "a file to evaluate on", "give --data FILE"
        )
    opened = nfsgeo.data.open(data) if data else open_source(config.data)
    with opened as file:
        file = check_fields(forecaster, file)
        known = forecaster.description.get("data")
        if data is None and known not in (None, file.fingerprint()):
            raise UserError(
                f"{file.path}, which has changed since training",
                "the data that the run was trained on",
                "put them back, or score the file as another one: --data FILE",
            )
        part, file = choose_part(part, file, data, config)
        trained = config
        if data is not None:
            num_points = forecaster.description["problem"]["num_points"]
            config = for_named_file(
                config, file, num_points, part=part, around=bool(factors)
            )
        mesh = observe(config.data, file, config.seed)
        test = scored_windows(forecaster, config, file, mesh)
        check_times(forecaster, test)
        check_observed("test", test)
        few = not len(part_samples(config.data, file, "train"))
        reference = "test" if few else "train"
        found = evaluate(
            forecaster,
            test,
            scored_windows(forecaster, config, file, mesh, reference),
            batch_size=config.data.batch_size,
            progress=lambda done, total: progress("test samples", done, total),
        )
        summary = describe_run(paths, config, forecaster, file)
        summary |= {"scored": describe_scored(trained, test, part, found.points)}
        summary |= _scores(found, forecaster, file)
        summary |= unobserved_errors(forecaster, config, file, mesh)
        if steps is not None:
            summary |= _rollout_errors(forecaster, config, file, mesh, steps, progress)
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
                progress=lambda done, total: progress("unseen meshes", done, total),
            )
            summary |= {"unseen": spread(rows), "unseen_points": points}
        if data is None:
            _write(paths, file, found, summary, rows)
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
    return config, restore(paths, config).to(device_of(section))


def _rollout_errors(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
    steps: int,
    progress: Progress,
) -> dict[str, Any]:
    few = not len(part_samples(config.data, file, "train"))
    parts = ("test", "test" if few else "train")
    test, train = (
        scored_windows(forecaster, config, file, mesh, part, n_out=steps)
        for part in parts
    )
    found = evaluate(
        forecaster,
        test,
        train,
        batch_size=config.data.batch_size,
        steps=steps,
        progress=lambda done, total: progress("rollouts", done, total),
    )
    times = test.times - test.times[test.n_in - 1]
    return {
        "rollout": {
            "times": times[test.n_in :].tolist(),
            "errors": found.errors,
            "mae_by_step": {n: e.tolist() for n, e in found.by_time_step.items()},
            "rel_l1_last_by_sample": {
                n: torch.from_numpy(e).nanmean(-1).tolist()
                for n, e in found.last_by_sample.items()
            },
        }
    }


def _scores(found: Evaluation, forecaster: Forecaster, file: Fields) -> dict[str, Any]:
    """Errors of the model and of the baselines, with which ``summary.json`` ends."""
    baselines = {name: e for name, e in found.errors.items() if name != "model"}
    scores: dict[str, Any] = {"test": found.errors["model"], "baselines": baselines}
    units = [file.units.get(name) for name in file.component_names]
    each = zip(file.component_names, found.without_energy, strict=False)
    if left := {name: num for name, num in each if num}:
        scores["left_out"] = left
    if not found.components["model"]:
        return scores | ({"units": units[0]} if units[0] else {})
    std = forecaster.description["statistics"]["std"]
    flat = [n for n, s in zip(file.component_names, std, strict=True) if not s]
    constant = f" They are without {', '.join(flat)}, constant in the training data."
    return scores | {
        "pooled": POOLED + constant * bool(flat),
        "components": {
            name: {"unit": units[c], "std": std[c]}
            | found.components["model"][c]
            | {"baselines": {each: found.components[each][c] for each in baselines}}
            for c, name in enumerate(file.component_names)
        },
    }


def _write(
    paths: RunPaths,
    file: Fields,
    found: Evaluation,
    summary: dict[str, Any],
    rows: Sequence[dict[str, Any]],
) -> None:
    box = {name: np.array(ends) for name, ends in file.domain.to_dict().items()}
    arrays: dict[str, Any] = {**found.examples, **box}
    for name, errors in found.by_time_step.items():
        if name in BY_TIME_STEP:
            arrays[BY_TIME_STEP[name]] = errors
    arrays["component_names"] = np.array(file.component_names)
    units = [file.units.get(name, "") for name in file.component_names]
    if any(units):
        arrays["component_units"] = np.array(units)
    if len(file.times) == 1:
        arrays["input_names"] = np.array(file.static_names)
    if any(file.axis_units):
        arrays["axis_units"] = np.array(file.axis_units)
    if file.time_unit:
        arrays["time_unit"] = np.array(file.time_unit)
    sample = int(found.examples["sample"][0])
    triangles = file.triangles(sample)
    # Where a sample is observed at all points of its mesh, in the order of the file.
    if triangles is not None and np.array_equal(
        found.examples["pos"],
        file.coordinates(sample).astype(found.examples["pos"].dtype),
    ):
        arrays["triangles"] = triangles
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(paths.evaluation, content.getbuffer())
    if rows:
        write_rows(paths.unseen, COLUMNS, rows)
    write_json(paths.summary, summary)
