"""Errors on larger meshes than the one a model was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import Mesh, MeshesInTurn, nested
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import derived_seed
from nfsgeo.errors import UserError
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training.observation import mesh_of, trained_points

__all__ = [
    "COLUMNS",
    "DRAWS",
    "UnseenAt",
    "evaluate_unseen",
    "in_turn",
    "samples_to_look_at",
    "spread",
]

UnseenAt = Literal["off-grid", "file"]

# Draws of a mesh that test samples cycle through: errors on one draw may be a tenth
# larger than on the next, and graphs for every sample take longer than predictions.
DRAWS = 8

ERRORS = ("mae", "rmse", "rel_l2", "rel_l1", "mae_seen", "mae_unseen")
COLUMNS = ("factor", "repeat", "num_points", *ERRORS)


def evaluate_unseen(
    scored: ScoredModel,
    factors: Sequence[float],
    repeats: int,
    *,
    at: UnseenAt | None = None,
    progress: Progress = silent,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Errors of the test samples on meshes around the training mesh.

    The paper's test of mesh invariance: a mesh has ``factor`` times the points, the
    training mesh and others that no point set of training contains. They are drawn from
    the run's seed, the factor and the repeat, :data:`DRAWS` times each, and samples
    cycle through the draws.

    Args:
        scored: The model and the fields.
        factors: How many times as many points, above 1.
        repeats: Meshes to draw for each factor.
        at: Whether additional points lie ``"off-grid"``, between the points of the
            file, or are points of the ``"file"`` as in the paper; None for off the grid
            where the file resolves its fields
            (:func:`~nfsgeo.data.meshes.trigonometric.is_band_limited`).
        progress: Called with what is being done, how much is done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh, in which ``mae_seen`` is the error at
        the points of the training mesh, ``mae_unseen`` at the others. Then where these
        lie, ``at``, and of the ``points`` of a test sample how many any point set of
        training contains, ``trained``.

    Raises:
        UserError: The model is tied to its mesh, training has seen too many points of
            the file, or its fields are not known between them.
    """
    config, file, mesh = scored.config, scored.file, scored.mesh
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
    samples = samples_to_look_at(file)
    between = at != "file" and is_band_limited(file, samples)
    if at == "off-grid" and not between:
        raise UserError(
            f"unseen points off the grid of {file.path}",
            "fields on a grid that is equispaced along a periodic axis and resolves "
            "them",
            "give --unseen-at file",
        )
    trained, rows = trained_points(config.data, file, config.seed), []
    for factor in factors:
        for repeat in range(repeats):
            seed = derived_seed(config.seed, round(1000 * factor), repeat)

            def draw(sample: int, factor: float = factor, seed: int = seed) -> Mesh:
                seen, known = mesh_of(mesh, sample), None
                if between:
                    seen = Mesh(seen.pos, None)
                else:
                    known = trained(sample)
                num = round(factor * len(seen))
                return nested(seen, file, num, seed, sample, trained=known)

            # Samples with meshes of their own have draws of their own.
            larger = in_turn(draw, DRAWS if isinstance(mesh, Mesh) else None)
            test = scored.windows(mesh=larger)
            errors, at_seen, at_others = scored.errors_in_parts(
                test, lambda sample: len(mesh_of(mesh, sample))
            )
            size = len(mesh_of(larger, test.samples[0]))
            row = {"factor": factor, "repeat": repeat, "num_points": size, **errors}
            row |= {"mae_seen": at_seen["mae"], "mae_unseen": at_others["mae"]}
            rows.append(row)
            progress("unseen meshes", len(rows), len(factors) * repeats)
    first = int(samples[0])
    where = {"at": "off-grid" if between else "file", "points": file.num_points(first)}
    return rows, where | {"trained": len(trained(first))}


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
