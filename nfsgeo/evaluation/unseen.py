"""Errors on larger meshes than the one a model was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch_geometric.loader import DataLoader

from nfsgeo.data import FieldFile
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.meshes import Mesh, nested
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.training import FieldErrors, Forecaster
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation, mesh_of

__all__ = ["COLUMNS", "evaluate_unseen", "spread"]

COLUMNS = (
    "factor",
    "repeat",
    "num_points",
    "mae",
    "rmse",
    "rel_l2",
    "mae_seen",
    "mae_unseen",
)


def evaluate_unseen(
    forecaster: Forecaster,
    config: RunConfig,
    file: FieldFile,
    mesh: Observation,
    *,
    factors: Sequence[float],
    repeats: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Observes and predicts the test samples on meshes around the training mesh.

    The paper's test of mesh invariance: a mesh has ``factor`` times the points, the
    training mesh among them. Further points are drawn anew for each repeat, from the
    run's seed, the factor and the repeat.

    Args:
        forecaster: On the device to compute on.
        config: Of the run.
        file: The data.
        mesh: The training mesh.
        factors: How many times as many points, above 1.
        repeats: Meshes to draw for each factor.
        progress: Called with the number of meshes done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_seen`` is the error at the points
        of the training mesh, ``mae_unseen`` at the others.

    Raises:
        UserError: The model is tied to its mesh, or the file has too few points.
    """
    _check(config, factors)
    rows = []
    for factor in factors:
        for repeat in range(repeats):
            larger = partial(
                _enlarged, file, mesh, factor, _seed(config, factor, repeat)
            )
            test = windows(config.data, file, larger, "test")
            seen = {s: len(mesh_of(mesh, s)) for s in test.samples}
            measured = _errors(forecaster, test, seen, config.data.batch_size)
            size = len(larger(test.samples[0]))
            rows.append(
                {"factor": factor, "repeat": repeat, "num_points": size} | measured
            )
            if progress is not None:
                progress(len(rows), len(factors) * repeats)
    return rows


def spread(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of the errors over the repeats, by factor."""
    found: dict[str, Any] = {}
    for factor in sorted({row["factor"] for row in rows}):
        here = [row for row in rows if row["factor"] == factor]
        found[f"{factor:g}"] = {
            name: {
                "mean": float(np.mean([row[name] for row in here])),
                "std": float(np.std([row[name] for row in here])),
            }
            for name in COLUMNS[3:]
        }
    return found


def _check(config: RunConfig, factors: Sequence[float]) -> None:
    able = [m.name for m in MODELS.values() if m.points and m.unseen_meshes]
    if config.model.name not in able:
        raise UserError(
            f"--unseen with model {config.model.name}",
            "a model that takes any points",
            f"train one of {', '.join(able)}",
        )
    if not all(factor > 1 for factor in factors):
        raise UserError(
            f"--unseen {min(factors):g}",
            "how many times as many points, above 1",
            "for example --unseen 2",
        )


def _enlarged(
    file: FieldFile, mesh: Observation, factor: float, seed: int, sample: int
) -> Mesh:
    seen = mesh_of(mesh, sample)
    return nested(seen, file, round(factor * len(seen)), seed, sample)


def _seed(config: RunConfig, factor: float, repeat: int) -> int:
    words = [config.seed, round(1000 * factor), repeat]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


@torch.no_grad()
def _errors(
    forecaster: Forecaster, test: WindowDataset, seen: dict[int, int], batch_size: int
) -> dict[str, float]:
    everywhere, old, new = (FieldErrors().to(forecaster.device) for _ in range(3))
    for batch in DataLoader(test, batch_size=batch_size):
        batch = batch.to(forecaster.device)
        prediction = forecaster(batch.x, batch.pos, batch.batch)
        everywhere.update(prediction, batch.y, batch.batch)
        sizes = torch.tensor([seen[s] for s in batch.sample.tolist()])
        number = torch.arange(len(batch.batch), device=batch.batch.device)
        number = number - batch.ptr[batch.batch]
        first = number < sizes.to(number.device)[batch.batch]
        for errors, points in ((old, first), (new, ~first)):
            errors.update(prediction[points], batch.y[points], batch.batch[points])
    return everywhere.compute() | {
        "mae_seen": old.compute()["mae"],
        "mae_unseen": new.compute()["mae"],
    }
