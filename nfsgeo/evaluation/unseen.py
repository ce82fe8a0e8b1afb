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
from nfsgeo.evaluation.scoring import errors_in_parts
from nfsgeo.models import MODELS
from nfsgeo.training import Forecaster
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation, mesh_of, trained_points

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

COLUMNS = (
    "factor",
    "repeat",
    "num_points",
    "mae",
    "rmse",
    "rel_l2",
    "rel_l1",
    "mae_seen",
    "mae_unseen",
)


def evaluate_unseen(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
    *,
    factors: Sequence[float],
    repeats: int,
    at: UnseenAt | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Observes and predicts the test samples on meshes around the training mesh.

    The paper's test of mesh invariance: a mesh has ``factor`` times the points, the
    training mesh among them. No point set of training contains any of the additional
    points. They are drawn from the run's seed, the factor and the repeat,
    :data:`DRAWS` times each, and samples cycle through the draws.

    Args:
        forecaster: On the device to compute on.
        config: Configuration of the run.
        file: The data.
        mesh: The mesh on which test samples are observed, the first of training.
        factors: How many times as many points, above 1.
        repeats: Meshes to draw for each factor.
        at: Whether additional points lie ``"off-grid"``, between the points of the
            file, or are points of the ``"file"`` as in the paper; None as in
            :func:`seen_by_training`.
        progress: Called with the number of meshes done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_seen`` is the error at the points
        of the training mesh, ``mae_unseen`` at the others.

    Raises:
        UserError: The model is tied to its mesh, training has seen too many points of
            the file, or its fields are not known between them.
    """
    _check(config, factors)
    at = _where(file, at)
    trained = trained_points(config.data, file, config.seed) if at == "file" else None
    rows = []
    for factor in factors:
        for repeat in range(repeats):
            seed = _seed(config, factor, repeat)
            draw = partial(_enlarged, file, mesh, factor, seed, trained)
            # Samples with meshes of their own have draws of their own.
            larger = in_turn(draw, DRAWS if isinstance(mesh, Mesh) else None)
            test = windows(config.data, file, larger, "test", inputs=forecaster.inputs)
            errors, seen, unseen = errors_in_parts(
                forecaster,
                test,
                config.data.batch_size,
                num_first=lambda sample: len(mesh_of(mesh, sample)),
            )
            size = len(mesh_of(larger, test.samples[0]))
            row = {"factor": factor, "repeat": repeat, "num_points": size, **errors}
            rows.append(row | {"mae_seen": seen["mae"], "mae_unseen": unseen["mae"]})
            if progress is not None:
                progress(len(rows), len(factors) * repeats)
    return rows


def seen_by_training(
    config: RunConfig, file: Fields, at: UnseenAt | None = None
) -> dict[str, Any]:
    """How many points of a file training has seen, and where unseen ones are drawn.

    Args:
        config: Configuration of the run.
        file: The data.
        at: As for :func:`evaluate_unseen`. None chooses off-grid points where the file
            resolves its fields
            (:func:`~nfsgeo.data.meshes.trigonometric.is_band_limited`), else points of
            the file.

    Returns:
        ``at``, resolved; ``points``, the number of points of a test sample; and
        ``trained``, how many of these any point set of training contains.

    Raises:
        UserError: The fields of the file are not known between its points.
    """
    sample = int(samples_to_look_at(file)[0])
    trained = trained_points(config.data, file, config.seed)(sample)
    return {
        "at": _where(file, at),
        "points": file.num_points(sample),
        "trained": len(trained),
    }


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


def in_turn(mesh: Callable[[int], Mesh], num: int | None) -> Callable[[int], Mesh]:
    """Cycles through the first ``num`` meshes; each sample has its own if None."""
    if num is None:
        return mesh
    return MeshesInTurn(tuple(mesh(number) for number in range(num)))


def samples_to_look_at(file: Fields) -> Indices:
    """Up to four samples, of the test part where there is one."""
    part = file.split["test"]
    return (part if len(part) else np.arange(file.num_samples))[:4]


def _check(config: RunConfig, factors: Sequence[float]) -> None:
    able = [m.name for m in MODELS.values() if m.any_mesh]
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


def _where(file: Fields, at: UnseenAt | None) -> UnseenAt:
    """``at``, resolved, see :func:`seen_by_training`."""
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
    seen = mesh_of(mesh, sample)
    num = round(factor * len(seen))
    if trained is None:
        # Without numbers in the file, additional points lie between those of the file.
        return nested(Mesh(seen.pos, None), file, num, seed, sample)
    return nested(seen, file, num, seed, sample, trained=trained(sample))


def _seed(config: RunConfig, factor: float, repeat: int) -> int:
    return derived_seed(config.seed, round(1000 * factor), repeat)
