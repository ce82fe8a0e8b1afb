"""What ``summary.json`` of a run holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.scores import Scores
from nfsgeo.models import num_parameters
from nfsgeo.training import RunPaths
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history
from nfsgeo.training.run import is_finished

__all__ = ["describe_errors", "describe_rollout", "describe_run"]

POOLED = (
    "Pooled errors are means over the components: of MAE and RMSE divided by the "
    "component's standard deviation in the training data, and of relative L2 "
    "and L1 with the component's mean removed from the fields."
)


def describe_run(paths: RunPaths, scored: ScoredModel) -> dict[str, Any]:
    """Sizes and cost of a run, with which ``summary.json`` begins.

    ``seconds_per_epoch`` is the mean over the epochs trained, validation included;
    ``peak_memory_bytes`` is that of the CUDA device, or of the process on the CPU, and
    None where there is no last checkpoint. ``stopped_early`` is true where training
    ran out of ``trainer.patience`` before its last epoch.
    """
    config, file, forecaster = scored.config, scored.file, scored.forecaster
    rows, task = read_history(paths.metrics), forecaster.task
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
        "n_s": task.num_points,
        "n_t": max(1, task.n_in),
        "n_t_out": task.n_out,
        "epochs": len(rows),
        "stopped_early": early,
        "parameters": num_parameters(forecaster.model),
        "seconds_per_epoch": sum(row["seconds"] for row in rows) / max(1, len(rows)),
        "peak_memory_bytes": memory,
    }


def describe_errors(found: Scores, std: Sequence[float]) -> dict[str, Any]:
    """Errors of the model and of the baselines, with which ``summary.json`` ends."""
    file, scores = found.windows.file, found.pooled()
    names = file.component_names
    units = [file.units.get(name) for name in names]
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


def describe_rollout(found: Scores) -> dict[str, Any]:
    """Errors of a rollout, and when they are."""
    windows, by_step, last = found.windows, found.by_time_step, found.last
    times = windows.times[windows.n_in :] - windows.times[windows.n_in - 1]
    return {
        "times": times.tolist(),
        "errors": found.pooled(),
        "mae_by_step": {name: each.tolist() for name, each in by_step.items()},
        "rel_l1_last_by_sample": {n: e.nanmean(-1).tolist() for n, e in last.items()},
    }
