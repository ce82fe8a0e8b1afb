"""Sizes, cost and errors of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import Evaluation
from nfsgeo.forecast import Forecaster
from nfsgeo.models import num_parameters
from nfsgeo.training import RunConfig, RunPaths
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history
from nfsgeo.training.run import is_finished

__all__ = ["describe_errors", "describe_run", "read_summary"]

SCORED = ("part", "samples", "of_samples", "points", "of_points", "trained_on", "tied")
POOLED = (
    "Pooled errors are means over the components: of MAE and RMSE divided by the "
    "component's standard deviation in the training data, and of relative L2 "
    "and L1 with the component's mean removed from the fields."
)


class _Errors(BaseModel):
    # None of a component without any value in the test part.
    mae: float | None
    rmse: float | None
    rel_l2: float | None


class _Component(_Errors):
    unit: str | None
    baselines: dict[str, _Errors]


class _Summary(BaseModel):
    """What is read of a summary; it holds more."""

    model: str
    test: _Errors
    baselines: dict[str, _Errors]
    components: dict[str, _Component] = {}


def read_summary(paths: RunPaths) -> dict[str, Any]:
    """The content of ``summary.json``, empty where there is none.

    Raises:
        UserError: It is damaged.
    """
    if not paths.summary.exists():
        return {}
    try:
        content = dict(json.loads(paths.summary.read_text()))
        if "test" in content:
            read = _Summary.model_validate(content)
            [content["scored"][name] for name in SCORED if "scored" in content]
            if read.components:
                str.lower(content["pooled"])
        return content
    except (ValidationError, ValueError, TypeError, KeyError, RecursionError):
        raise UserError(
            f"{paths.summary}", "a whole summary of a run", "evaluate it again"
        ) from None


def describe_run(
    paths: RunPaths, config: RunConfig, forecaster: Forecaster, file: Fields
) -> dict[str, Any]:
    """Sizes and cost of a run, with which ``summary.json`` begins.

    ``seconds_per_epoch`` is the mean over the epochs trained, validation included;
    ``peak_memory_bytes`` is that of the CUDA device, or of the process on the CPU, and
    None where there is no last checkpoint. ``stopped_early`` is true where training
    ran out of ``trainer.patience`` before its last epoch.
    """
    rows = read_history(paths.metrics)
    memory, early = None, False
    if paths.last.exists():
        checkpoint = read_checkpoint(paths.last)
        memory = checkpoint["callbacks"]["History"]["peak_memory_bytes"]
        early = len(rows) < config.trainer.epochs and is_finished(checkpoint, config)
    return {
        "model": config.model.name,
        "data": str(file.path),
        "equation": file.equation,
        "provenance": file.provenance,
        "seed": config.seed,
        "n_s": forecaster.task.num_points,
        "n_t": max(1, forecaster.task.n_in),
        "n_t_out": forecaster.task.n_out,
        "epochs": len(rows),
        "stopped_early": early,
        "parameters": num_parameters(forecaster.model),
        "seconds_per_epoch": sum(row["seconds"] for row in rows) / max(1, len(rows)),
        "peak_memory_bytes": memory,
    }


def describe_errors(
    found: Evaluation, std: Sequence[float], file: Fields
) -> dict[str, Any]:
    """Errors of the model and of the baselines, with which ``summary.json`` ends."""
    names = file.component_names
    units, scores = [file.units.get(name) for name in names], found.scores()
    summary: dict[str, Any] = {"test": scores.pop("model"), "baselines": scores}
    each = zip(names, found.errors["model"].without_energy(), strict=False)
    if left := {name: num for name, num in each if num}:
        summary["left_out"] = left
    parts = {name: metric.by_component() for name, metric in found.errors.items()}
    model = parts.pop("model")
    if not model:
        return summary | ({"units": units[0]} if units[0] else {})
    flat = [name for name, s in zip(names, std, strict=True) if not s]
    constant = f" They are without {', '.join(flat)}, constant in the training data."
    return summary | {
        "pooled": POOLED + constant * bool(flat),
        "components": {
            name: {"unit": units[c], "std": std[c]}
            | model[c]
            | {"baselines": {each: errors[c] for each, errors in parts.items()}}
            for c, name in enumerate(names)
        },
    }
