"""Errors on larger meshes than the one a model was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import Mesh, MeshesInTurn, nested
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import derived_seed
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import errors_in_parts, scored_windows
from nfsgeo.forecast import Forecaster
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training.config import RunConfig
from nfsgeo.training.run_data import Observation, RunData

__all__ = [
    "COLUMNS",
    "DRAWS",
    "UnseenAt",
    "evaluate_unseen",
    "in_turn",
    "samples_to_look_at",
    "seen_by_training",
    "spread",
]

UnseenAt = Literal["off-grid", "file"]

# Draws of a mesh that test samples cycle through: errors on one draw may be a tenth
# larger than on the next, and graphs for every sample take longer than predictions.
DRAWS = 8

ERRORS = ("mae", "rmse", "rel_l2", "rel_l1", "mae_seen", "mae_unseen")
COLUMNS = ("factor", "repeat", "num_points", *ERRORS)


def evaluate_unseen(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
    *,
    factors: Sequence[float],
    repeats: int,
    at: UnseenAt | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Errors of the test samples on meshes around the training mesh.

    The paper's test of mesh invariance: a mesh has ``factor`` times the points, the
    training mesh and others that no point set of training contains. They are drawn from
    the run's seed, the factor and the repeat, :data:`DRAWS` times each, and samples
    cycle through the draws.

    Args:
        forecaster: On the device to compute on.
        config: Configuration of the run.
        file: The data.
        mesh: The mesh on which test samples are observed, the first of training.
        factors: How many times as many points, above 1.
        repeats: Meshes to draw for each factor.
        at: Whether additional points lie ``"off-grid"``, between the points of the
            file, or are points of the ``"file"`` as in the paper; None for off the grid
            where the file resolves its fields
            (:func:`~nfsgeo.data.meshes.trigonometric.is_band_limited`).
        progress: Called with what is being done, how much is done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_seen`` is the error at the points
        of the training mesh, ``mae_unseen`` at the others.

    Raises:
        UserError: The model is tied to its mesh, training has seen too many points of
            the file, or its fields are not known between them.
    """
    able = [model.name for model in MODELS.values() if model.any_mesh]
    if config.model.name not in able:
        raise UserError(
            f"--unseen with model {config.model.name}",
            "a model that takes any points",
            f"train one of {', '.join(able)}",
        )
    if not min(factors) > 1:
        raise UserError(
            f"--unseen {min(factors):g}",
            "how many times as many points, above 1",
            "for example --unseen 2",
        )
    at_file = _resolved(file, at) == "file"
    known = RunData(config, file).trained_points if at_file else None

    def num_seen(sample: int) -> int:
        return len(mesh(sample))

    rows = []
    for factor in factors:
        for repeat in range(repeats):
            seed = derived_seed(config.seed, round(1000 * factor), repeat)
            draw = partial(_enlarged, file, mesh, factor, seed, known)
            # Samples with meshes of their own have draws of their own.
            larger = in_turn(draw, DRAWS if isinstance(mesh, Mesh) else None)
            test = scored_windows(forecaster, config, file, larger)
            errors, seen, unseen = errors_in_parts(
                forecaster, test, config.data.batch_size, num_first=num_seen
            )
            size = len(larger(test.samples[0]))
            row = {"factor": factor, "repeat": repeat, "num_points": size, **errors}
            rows.append(row | {"mae_seen": seen["mae"], "mae_unseen": unseen["mae"]})
            progress("unseen meshes", len(rows), len(factors) * repeats)
    return rows


def seen_by_training(
    config: RunConfig, file: Fields, at: UnseenAt | None = None
) -> dict[str, Any]:
    """Where unseen points are drawn, ``at``, and how many are not unseen.

    ``points`` is the number of points of a test sample, and ``trained`` how many of
    these any point set of training contains.
    """
    sample = int(samples_to_look_at(file)[0])
    trained = RunData(config, file).trained_points(sample)
    points = file.num_points(sample)
    return {"at": _resolved(file, at), "points": points, "trained": len(trained)}


def spread(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of the errors over the repeats, by factor."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for factor in sorted({row["factor"] for row in rows}):
        of = found[f"{factor:g}"] = {}
        for name in ERRORS:
            errors = [row[name] for row in rows if row["factor"] == factor]
            of[name] = {"mean": float(np.mean(errors)), "std": float(np.std(errors))}
    return found


def in_turn(mesh: Callable[[int], Mesh], num: int | None) -> Callable[[int], Mesh]:
    """Cycles through the first ``num`` meshes; each sample has its own if None."""
    return mesh if num is None else MeshesInTurn(tuple(map(mesh, range(num))))


def samples_to_look_at(file: Fields) -> Indices:
    """Up to four samples, of the test part where there is one."""
    part = file.split["test"]
    return (part if len(part) else np.arange(file.num_samples))[:4]


def _resolved(file: Fields, at: UnseenAt | None) -> UnseenAt:
    """Where additional points lie, see :func:`evaluate_unseen`."""
    if at == "file":
        return at
    if is_band_limited(file, samples_to_look_at(file)):
        return "off-grid"
    if at is None:
        return "file"
    raise UserError(
        f"unseen points off the grid of {file.path}",
        "fields on a grid that is equispaced along a periodic axis and resolves them",
        "give --unseen-at file",
    )


def _enlarged(
    file: Fields,
    mesh: Observation,
    factor: float,
    seed: int,
    trained: Callable[[int], Indices] | None,
    sample: int,
) -> Mesh:
    """The mesh of a sample with ``factor`` times its points."""
    seen, known = mesh(sample), None if trained is None else trained(sample)
    if known is None:
        # Without numbers in the file, additional points lie between those of the file.
        seen = Mesh(seen.pos, None)
    return nested(seen, file, round(factor * len(seen)), seed, sample, trained=known)
