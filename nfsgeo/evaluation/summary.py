"""Sizes, cost and errors of a run."""

from __future__ import annotations

import json
from typing import Any

from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.models import num_parameters
from nfsgeo.training import Forecaster, RunConfig, RunPaths
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history
from nfsgeo.training.run import is_finished

__all__ = ["POOLED", "describe_run", "read_summary"]

SCORED = ("part", "samples", "of_samples", "points", "of_points", "trained_on", "tied")
POOLED = (
    "Pooled errors are means over the components: of MAE and RMSE divided by the "
    "component's standard deviation in the training data, and of relative L2 "
    "and L1 with the component's mean removed from the fields."
)


def read_summary(paths: RunPaths) -> dict[str, Any]:
    """The content of ``summary.json``, empty where there is none.

    Raises:
        UserError: It is damaged.
    """
    if not paths.summary.exists():
        return {}
    try:
        content = json.loads(paths.summary.read_text())
        if "test" in content:
            str.lower(content["model"])
            tables = [content, *_components(content)]
            for table in tables:
                errors = table["test"] if table is content else table
                for each in (errors, *table["baselines"].values()):
                    for name in ("mae", "rmse", "rel_l2"):
                        # None of a component without any value in the test part.
                        each[name] is None or float(each[name])
            if "scored" in content:
                [content["scored"][name] for name in SCORED]
        return dict(content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UserError(
            f"{paths.summary}", "a whole summary of a run", "evaluate it again"
        ) from None


def _components(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Errors of each of several components; their texts are checked first."""
    found = content.get("components", {})
    if found:
        str.lower(content["pooled"])
    for errors in found.values():
        str.lower(errors["unit"] or "")
    return list(found.values())


def describe_run(
    paths: RunPaths, config: RunConfig, forecaster: Forecaster, file: Fields
) -> dict[str, Any]:
    """Sizes and cost of a run, with which ``summary.json`` begins.

    ``seconds_per_epoch`` is the mean over the epochs trained, validation included;
    ``peak_memory_bytes`` is that of the CUDA device, or of the process on the CPU, and
    None where the last checkpoint is missing. ``stopped_early`` is true where training
    ran out of ``trainer.patience`` before its last epoch.
    """
    problem = forecaster.description["problem"]
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
        "n_s": problem["num_points"],
        "n_t": problem["n_in"],
        "n_t_out": config.data.n_out or problem["n_out"],
        "epochs": len(rows),
        "stopped_early": early,
        "parameters": num_parameters(forecaster.model),
        "seconds_per_epoch": sum(row["seconds"] for row in rows) / max(1, len(rows)),
        "peak_memory_bytes": memory,
    }
