"""Evaluates a run folder and writes what it finds there."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nfsgeo.data
from nfsgeo.data import FieldFile
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import Evaluation, evaluate
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.summary import describe_run
from nfsgeo.evaluation.unseen import (
    COLUMNS,
    UnseenAt,
    evaluate_unseen,
    seen_by_training,
    spread,
)
from nfsgeo.training import Forecaster, RunConfig, RunPaths, read_config, restore
from nfsgeo.training.artifacts import write_bytes, write_json, write_rows
from nfsgeo.training.datamodule import windows
from nfsgeo.training.environment import check_device, device_of
from nfsgeo.training.observation import observe

__all__ = ["check_fields", "evaluate_run", "open_run"]

Progress = Callable[[str, int, int], None]


def evaluate_run(
    folder: Path,
    *,
    data: Path | None = None,
    factors: Sequence[float] = (),
    repeats: int = 5,
    unseen_at: UnseenAt | None = None,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Any]:
    """Errors of a run on the test samples, and on larger meshes if asked for.

    On the run's own data this writes ``summary.json``, ``evaluation.npz`` and, with
    ``factors``, ``unseen.csv``. On other data it writes nothing.

    Args:
        folder: The run's folder, or the name of a model that comes with nfsgeo.
        data: Another file to take the test samples from.
        factors: Also evaluate on meshes with so many times as many points.
        repeats: Meshes to draw for each factor.
        unseen_at: Where their further points lie, as for :func:`evaluate_unseen`. On
            other data, training counts as having seen the points that it would have
            been given of them.
        device: In place of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The summary; where larger meshes were asked for, with their errors as
        ``"unseen"``, and as ``"unseen_points"`` where the further points lie and how
        many of the file's points training has seen.

    Raises:
        UserError: The run has no checkpoint, or the data do not fit it.
    """
    paths = find_run(folder)
    config, forecaster = open_run(paths, device)
    source = data or config.data.file
    if source is None:
        raise UserError(
            f"{folder} without data", "a file to evaluate on", "give --data FILE"
        )
    with nfsgeo.data.open(source) as file:
        check_fields(forecaster, file)
        mesh = observe(config.data, file, config.seed)
        found = evaluate(
            forecaster,
            windows(config.data, file, mesh, "test"),
            windows(config.data, file, mesh, "train"),
            batch_size=config.data.batch_size,
            progress=lambda done, total: progress("test samples", done, total),
        )
        summary = describe_run(paths, config, forecaster, file) | _scores(found)
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
    """The configuration of a run and its best model, on the device to compute on.

    Args:
        paths: The run's folder.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, in place of the run's own.
    """
    config = read_config(paths.config)
    section = config.trainer.model_copy(
        update={"device": device or config.trainer.device, "devices": 1}
    )
    check_device(section)
    return config, restore(paths, config).to(device_of(section))


def check_fields(forecaster: Forecaster, file: FieldFile) -> None:
    """Makes sure that a file holds the kind of fields that a model was trained on.

    Raises:
        UserError: Another domain or other components.
    """
    problem = forecaster.description["problem"]
    coefficients = file.static_components if file.static_role == "coefficient" else 0
    components = coefficients + (file.components if problem["has_time"] else 0)
    found = (file.domain.to_dict(), components)
    if found != (problem["domain"], problem["in_components"]):
        raise UserError(
            f"{file.path} with {components} input components on {file.domain}",
            f"{problem['in_components']} on {problem['domain']}",
            "use data of the kind that the run was trained on",
        )


def _scores(found: Evaluation) -> dict[str, Any]:
    """Errors of the model and of the baselines, as ``summary.json`` ends."""
    baselines = {name: e for name, e in found.errors.items() if name != "model"}
    return {"test": found.errors["model"], "baselines": baselines}


def _write(
    paths: RunPaths,
    file: FieldFile,
    found: Evaluation,
    summary: dict[str, Any],
    rows: Sequence[dict[str, Any]],
) -> None:
    names = {
        "model": "error_by_record",
        "persistence": "persistence_by_record",
        "linear_extrapolation": "linear_by_record",
    }
    by_record = {
        names[name]: errors for name, errors in found.by_record.items() if name in names
    }
    box = {name: np.array(ends) for name, ends in file.domain.to_dict().items()}
    arrays: dict[str, Any] = {**found.examples, **by_record, **box}
    arrays["component_names"] = np.array(file.component_names)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(paths.evaluation, content.getbuffer())
    if rows:
        write_rows(paths.unseen, COLUMNS, rows)
    write_json(paths.summary, summary)
