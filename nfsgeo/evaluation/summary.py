"""What a run was, in a few numbers."""

from __future__ import annotations

from typing import Any

from nfsgeo.data import FieldFile
from nfsgeo.models import num_parameters
from nfsgeo.training import Forecaster, RunConfig, RunPaths
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history

__all__ = ["describe_run"]


def describe_run(
    paths: RunPaths, config: RunConfig, forecaster: Forecaster, file: FieldFile
) -> dict[str, Any]:
    """Sizes and cost of a run, as ``summary.json`` begins.

    ``seconds_per_epoch`` is the mean over the epochs trained, validation included;
    ``peak_memory_bytes`` is that of the CUDA device, or of the process on the CPU.
    """
    problem = forecaster.description["problem"]
    rows = read_history(paths.metrics)
    memory = read_checkpoint(paths.last)["callbacks"]["History"]["peak_memory_bytes"]
    return {
        "model": config.model.name,
        "data": str(file.path),
        "equation": file.equation,
        "provenance": file.provenance,
        "seed": config.seed,
        "n_s": problem["num_points"],
        "n_t": problem["n_in"],
        "n_t_out": problem["n_out"],
        "epochs": len(rows),
        "parameters": num_parameters(forecaster.model),
        "seconds_per_epoch": sum(row["seconds"] for row in rows) / max(1, len(rows)),
        "peak_memory_bytes": memory,
    }
