"""Errors on other meshes than those that a model was trained on."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    MeshesInTurn,
    disjoint,
    nested,
    points_there,
)
from nfsgeo.data.meshes.on_grids import between
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import Stream, derived_seed, philox, shuffled
from nfsgeo.errors import UserError
from nfsgeo.evaluation.scored_model import ScoredModel, open_run
from nfsgeo.forecast import matched
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.run_data import RunData, open_source
from nfsgeo.training.run_paths import Run, find_run

__all__ = [
    "COLUMNS",
    "MESHES",
    "UnseenAt",
    "evaluate_meshes",
    "evaluate_unseen",
    "mesh_columns",
    "spread",
]

UnseenAt = Literal["off-grid", "file"]

# Draws of a mesh that test samples cycle through: errors on one draw may be a tenth
# larger than on the next, and graphs for every sample take longer than predictions.
DRAWS = 8

ERRORS = ("mae", "rmse", "rel_l2", "rel_l1", "mae_seen", "mae_unseen")
COLUMNS = ("factor", "repeat", "num_points", *ERRORS)

MESH_COLUMNS = ("mesh", "num_points", "mae_observed", "mae_unobserved", "mae")
MESHES = (
    *("seen", "off-grid", "nested-2", "nested-3", "nested-4", "disjoint", "half"),
    *("quarter", "clustered", "own", "noise-1", "noise-10"),
)
NUMBERED = re.compile(r"(nested|noise)-\d+(\.\d+)?")
SHARES = {"disjoint": 1.0, "half": 0.5, "quarter": 0.25}

logger = logging.getLogger(__name__)


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

    Returns a row of :data:`COLUMNS` for each mesh, in which ``mae_seen`` is the error
    at the points of the training mesh, ``mae_unseen`` at the others; then where these
    lie, ``at``, and of the ``points`` of a test sample how many any point set of
    training contains, ``trained``.
    """
    config, file, mesh = scored.config, scored.file, scored.mesh
    able = [name for name, model in MODELS.items() if model.any_mesh]
    if config.model.name not in able or not min(factors) > 1:
        raise UserError(
            f"{min(factors):g} times as many points with model {config.model.name}",
            "a model that takes any points, and more of them",
            f"ask for 2, of one of {', '.join(able)}",
        )
    limited = at != "file" and is_band_limited(file, _looked_at(file))
    if at == "off-grid" and not limited:
        raise UserError(
            f"unseen points off the grid of {file.path}",
            "fields on a grid equispaced along a periodic axis that resolves them",
            "give --unseen-at file",
        )
    trained, rows = RunData(config, file).trained_points, []
    for factor in factors:
        for repeat in range(repeats):
            seed = derived_seed(config.seed, round(1000 * factor), repeat)

            def draw(sample: int, factor: float = factor, seed: int = seed) -> Mesh:
                seen = mesh(sample)
                # Without numbers in the file, others lie between the file's points.
                seen = Mesh(seen.pos, None) if limited else seen
                known = None if limited else trained(sample)
                num = round(factor * len(seen))
                return nested(seen, file, num, seed, sample, trained=known)

            # Samples with meshes of their own have draws of their own.
            larger = _in_turn(draw, DRAWS if isinstance(mesh, Mesh) else None)
            test = scored.windows(mesh=larger)
            errors, at_seen, at_others = scored.errors_in_parts(
                test, lambda sample: len(mesh(sample))
            )
            size = len(larger(test.samples[0]))
            row = {"factor": factor, "repeat": repeat, "num_points": size, **errors}
            row |= {"mae_seen": at_seen["mae"], "mae_unseen": at_others["mae"]}
            rows.append(row)
            progress("unseen meshes", len(rows), len(factors) * repeats)
    first = int(_looked_at(file)[0])
    where = {"at": "off-grid" if limited else "file", "points": file.num_points(first)}
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


def evaluate_meshes(
    run: Run, names: Sequence[str] = MESHES, *, device: str | None = None
) -> list[dict[str, Any]]:
    """Observes the test samples on other meshes; scores observed and other points.

    Meshes are drawn from the run's seed, :data:`DRAWS` of each kind, which samples
    cycle through. With ``n`` the points of the mesh that the run was trained on,
    ``seen`` is that mesh, the first of several, or ``equispaced`` where it is a grid,
    and then the only one. ``off-grid`` has ``n`` points between those of the file,
    where the fields are known there
    (:func:`~nfsgeo.data.meshes.trigonometric.is_band_limited`), ``nested-k`` those of
    ``seen`` and more, ``k n`` in all, ``disjoint``, ``half`` and ``quarter`` ``n``,
    ``n / 2`` and ``n / 4``, all of them in no point set of training. ``clustered`` has
    ``n`` of the file, ten times as dense in one place as in another, ``own`` ``n`` for
    each sample, and ``noise-p`` is ``seen`` with noise on the inputs, ``p`` percent of
    their standard deviation.

    Meshes for which training has seen too many points of the file are left out, with a
    warning. Fields are predicted at the observed points and at as many that were
    neither observed nor trained on, or as there are: points between those of the file
    where the fields are known there, else points of the file.

    Args:
        run: The run, in whose folder ``meshes.csv`` is written.
        names: The meshes to evaluate on.
        device: In place of the run's own.

    Returns:
        A row of :data:`MESH_COLUMNS` for each mesh; ``mae_observed`` at the observed
        points, ``mae_unobserved`` at the others (NaN where there are none), ``mae`` at
        all of them.

    Raises:
        UserError: A name is none of these, or none of the meshes can be drawn.
    """
    for name in names:
        if name not in MESHES and not NUMBERED.fullmatch(name):
            raise UserError(
                f"mesh {name!r}",
                f"one of {', '.join(MESHES)}, or with another number at its end",
                "choose one of these",
            )
    config, forecaster = open_run(run, device)
    rows, seed = [], config.seed
    with open_source(config.data) as file:
        file = matched(file, forecaster.task)
        seen = RunData(config, file).mesh
        scored = ScoredModel(forecaster, config, file, seen)
        trained = RunData(config, file).trained_points
        limited = is_band_limited(file, _looked_at(file))

        def with_others(mesh: Mesh, sample: int) -> Mesh:
            rng = philox(seed, Stream.UNSEEN_POINTS, sample)
            if limited:
                return replace(mesh, queries=Mesh(between(file, len(mesh), rng), None))
            known = trained(sample)
            taken = known if mesh.index is None else np.union1d(known, mesh.index)
            rest = np.setdiff1d(points_there(file, sample), taken)
            chosen = rest[shuffled(len(rest), rng)[: len(mesh)]]
            return replace(mesh, queries=Mesh(file.coordinates(sample)[chosen], chosen))

        for name in ("equispaced",) if config.data.mesh == "grid" else names:
            kind, _, number = name.rpartition("-")
            same = kind == "noise" or name in ("seen", "equispaced")
            num = None if name == "own" or callable(seen) else 1 if same else DRAWS

            def draw(sample: int, name: str = name, same: bool = same) -> Mesh:
                mesh = seen(sample)
                if not same:
                    mesh = _drawn(name, mesh, file, seed, sample, trained)
                return with_others(mesh, sample)

            if name == "off-grid" and not limited:
                continue
            try:
                mesh = _in_turn(draw, num)
                size = len(mesh(int(_looked_at(file)[0])))
            except UserError as error:
                logger.warning("mesh %s is left out: %s", name, error)
                continue
            noise = float(number) / 100 if kind == "noise" else None
            parts = scored.errors_in_parts(scored.windows(mesh=mesh, noise=noise))
            mae, observed, unobserved = (errors["mae"] for errors in parts)
            values = (name, size, observed, unobserved, mae)
            rows.append(dict(zip(MESH_COLUMNS, values, strict=True)))
    if not rows:
        raise UserError(
            f"meshes {', '.join(names)} of {config.data.file}",
            "more points that training has not seen, or fields known between them",
            "choose other meshes, or train with a smaller data.point_sets",
        )
    write_rows(find_run(run).meshes, MESH_COLUMNS, rows)
    return rows


def mesh_columns(names: Sequence[str]) -> list[str]:
    """Column names of the errors on meshes."""
    meshes, errors = (*names, "equispaced"), ("mae", "mae_unobserved")
    return [f"{column}_{name}" for name in meshes for column in errors]


def _drawn(
    name: str,
    seen: Mesh,
    file: Fields,
    seed: int,
    sample: int,
    trained: Callable[[int], Indices],
) -> Mesh:
    """The mesh of this name for a sample."""
    num = len(seen)
    if name in SHARES:
        num, known = int(SHARES[name] * num), trained(sample)
        return disjoint(seen, file, num, seed, sample, trained=known)
    if name.startswith("nested-"):
        num, known = round(float(name[len("nested-") :]) * num), trained(sample)
        return nested(seen, file, num, seed, sample, trained=known)
    # The training mesh may be drawn by the same sampler from the same seed.
    kind = MESH_KINDS["random-subset" if name == "own" else name]
    return kind.sampler(file, num, seed + 1_000_003, sample)


def _in_turn(mesh: Callable[[int], Mesh], num: int | None) -> Callable[[int], Mesh]:
    """Cycles through the first ``num`` meshes; each sample has its own if None."""
    return mesh if num is None else MeshesInTurn(tuple(map(mesh, range(num))))


def _looked_at(file: Fields) -> Indices:
    """Up to four samples, of the test part where there is one."""
    part = file.split["test"]
    return (part if len(part) else np.arange(file.num_samples))[:4]
