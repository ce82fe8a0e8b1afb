"""Errors on other meshes than those that a model was trained on."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.conventions import Indices
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    MeshBySample,
    MeshesInTurn,
    disjoint,
    nested,
    off_grid,
    points_there,
)
from nfsgeo.data.meshes.interpolation import is_band_limited
from nfsgeo.data.streams import Stream, derived_seed, philox, shuffled
from nfsgeo.errors import UserError, option
from nfsgeo.evaluation.scored_model import ScoredModel, open_run
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training import Experiment
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.run_data import RunData
from nfsgeo.training.run_paths import Run, find_run

__all__ = [
    "COLUMNS",
    "MESHES",
    "UnseenAt",
    "evaluate_meshes",
    "evaluate_unseen",
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
SAME = re.compile(r"seen|equispaced|noise-")  # meshes of training
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
    """Compute errors of the test samples on meshes around the training mesh.

    The paper's test of mesh invariance: a mesh has ``factor`` times the points, the
    training mesh and others that no point set of training contains. They are drawn from
    the run's seed, the factor and the repeat, :data:`DRAWS` times each, and samples
    cycle through the draws.

    Args:
        scored: The model and its data.
        factors: Numbers of points of the meshes over that of the training mesh.
        repeats: Number of meshes for each factor.
        at: Where the further points lie: between those of the file, or among them; None
            for between them where the fields are known there.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh, in which ``mae_seen`` is the error at
        the points of the training mesh, ``mae_unseen`` at the others; then where these
        lie, ``at``, and of the ``points`` of a test sample how many any point set of
        training contains, ``trained``.

    Raises:
        UserError: The model does not take other points, a factor is not above 1, the
            fields are not known between the points of the file, or all points of
            meshes that differ from sample to sample are observed.
    """
    used, rows = scored.used, []
    name, file, mesh = used.config.model.name, used.file, used.mesh
    if not min(factors) > 1:
        given, todo = f"{min(factors):g} times as many points", "ask for 2"
        raise UserError(given, "more points than the model observes", todo)
    if not MODELS[name].any_mesh:
        able = ", ".join(name for name, model in MODELS.items() if model.any_mesh)
        raise UserError(
            f"{min(factors):g} times as many points with model {name}",
            "a model that takes any points",
            f"train one of {able}",
        )
    first = _first_samples(file)
    limited = at != "file" and is_band_limited(file, first)
    if at == "off-grid" and not limited:
        raise UserError(
            f"unseen points off the grid of {file.path}",
            "fields on a grid equispaced along a periodic axis that resolves them",
            "give --unseen-at file, or --data with a file of other meshes",
        )

    if not isinstance(mesh, Mesh) and all(
        len(mesh(s)) == len(points_there(file, s)) for s in map(int, first)
    ):
        raise UserError(
            f"unseen points of {file.path}, whose meshes differ from sample to sample "
            "and are observed at all points",
            "points that are not observed",
            "take the test errors, on the meshes of the test samples, or train "
            f"on some of the points, {option('points', 'N')}",
        )

    fewer = _fewer(used)

    def larger(sample: int, factor: float, seed: int) -> Mesh:
        seen = mesh(sample)
        trained = None if limited else used.trained_points(sample)
        # Without numbers in the file, others lie between the file's points.
        inner = Mesh(seen.pos, None) if limited else seen
        num = round(factor * len(seen))
        return nested(inner, file, num, seed, sample, trained=trained, fewer=fewer)

    for factor, repeat in product(factors, range(repeats)):
        seed = derived_seed(used.config.seed, round(1000 * factor), repeat)
        draw = partial(larger, factor=factor, seed=seed)
        # Samples with meshes of their own have draws of their own.
        draws = isinstance(mesh, Mesh) and tuple(map(draw, range(DRAWS)))
        drawn = MeshesInTurn(draws) if draws else MeshBySample(draw)
        test = scored.windows(mesh=drawn)
        parts = scored.errors_in_parts(test, lambda sample: len(mesh(sample)))
        row = {"factor": factor, "repeat": repeat, **parts[0]}
        row |= {"num_points": len(drawn(test.samples[0]))}
        rows.append(row | {"mae_seen": parts[1]["mae"], "mae_unseen": parts[2]["mae"]})
        progress("unseen meshes", len(rows), len(factors) * repeats)
    sample = int(first[0])
    where = {"at": "off-grid" if limited else "file", "points": file.num_points(sample)}
    return rows, where | {"trained": len(used.trained_points(sample))}


def spread(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation of the errors over the repeats, by factor.

    Args:
        rows: The rows that :func:`evaluate_unseen` returns.
    """
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for factor in sorted({row["factor"] for row in rows}):
        here = [row for row in rows if row["factor"] == factor]
        columns = {name: [row[name] for row in here] for name in ERRORS}
        scores[f"{factor:g}"] = {
            name: {"mean": float(np.mean(errors)), "std": float(np.std(errors))}
            for name, errors in columns.items()
        }
    return scores


def evaluate_meshes(
    run: Run,
    names: Sequence[str] = MESHES,
    *,
    device: str | None = None,
    experiment: Experiment | None = None,
) -> list[dict[str, Any]]:
    """Score predictions from other meshes, at observed and at other points.

    Meshes are drawn from the run's seed, for each sample anew. ``seen`` is that of
    training, with ``n`` points, the first of several; it is ``equispaced`` where it is
    a grid, and then the only one. ``off-grid`` has ``n`` points between those of the
    file, where the fields are known there
    (:func:`~nfsgeo.data.meshes.interpolation.is_band_limited`), ``nested-k`` those of
    ``seen`` and more, ``k n`` in all, ``disjoint``, ``half`` and ``quarter`` ``n``,
    ``n / 2`` and ``n / 4`` in no point set of training. ``clustered`` has ``n`` of the
    file, ten times as dense in one place as in another, ``own`` ``n`` at random, and
    ``noise-p`` is ``seen`` with noise on the inputs, ``p`` percent of their standard
    deviation. A mesh of more points than training has left is left out, with a warning.

    Fields are predicted at the observed points and at as many that were neither
    observed nor trained on, or as there are: between those of the file where the fields
    are known there, else points of the file.

    Args:
        run: The run, in whose folder ``meshes.csv`` is written.
        names: The meshes to evaluate on.
        device: In place of the run's own.
        experiment: The experiment that trained the run, whose data need not be read
            again.

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
    loaded = open_run(run, device)
    config, forecaster = loaded.config, loaded.forecaster
    used = loaded.data() if experiment is None else experiment.used
    scored, first = ScoredModel(forecaster, used), _first_samples(used.file)
    limited = is_band_limited(used.file, first)

    def draw(sample: int, name: str) -> Mesh:
        mesh, stream = _drawn(name, used, sample), Stream.UNSEEN_POINTS
        if limited:
            others = off_grid(used.file, len(mesh), config.seed, sample, stream)
            return replace(mesh, queries=others)
        seen = used.trained_points(sample)
        seen = seen if mesh.index is None else np.union1d(seen, mesh.index)
        rest = np.setdiff1d(points_there(used.file, sample), seen)
        order = shuffled(len(rest), philox(config.seed, stream, sample))
        chosen = rest[order[: len(mesh)]]
        others = Mesh(used.file.coordinates(sample)[chosen], chosen)
        return replace(mesh, queries=others)

    rows: list[dict[str, Any]] = []
    for name in ("equispaced",) if config.data.mesh == "grid" else names:
        if name == "off-grid" and not limited:
            continue
        mesh = MeshBySample(partial(draw, name=name))
        try:
            size = len(mesh(int(first[0])))
        except UserError as error:
            logger.warning("mesh %s is left out: %s", name, error)
            continue
        kind, _, number = name.rpartition("-")
        noise = float(number) / 100 if kind == "noise" else None
        parts = scored.errors_in_parts(scored.windows(mesh=mesh, noise=noise))
        mae, observed, unobserved = (errors["mae"] for errors in parts)
        values = (name, size, observed, unobserved, mae)
        rows.append(dict(zip(MESH_COLUMNS, values, strict=True)))
    if not rows:
        fewer = _fewer(used)
        raise UserError(
            f"meshes {', '.join(names)} of {config.data.file}",
            "more points that training has not seen, or fields known between them",
            "choose other meshes" + f", or train with {', '.join(fewer)}" * bool(fewer),
        )
    write_rows(find_run(run).meshes, MESH_COLUMNS, rows)
    return rows


def _drawn(name: str, used: RunData, sample: int) -> Mesh:
    """The mesh of this name for a sample."""
    seen, file, seed = used.mesh(sample), used.file, used.config.seed
    if SAME.match(name):
        return seen
    kind, _, factor = name.rpartition("-")
    if name in SHARES or kind == "nested":
        trained, fewer = used.trained_points(sample), _fewer(used)
        if kind == "nested":
            num = round(float(factor) * len(seen))
            return nested(seen, file, num, seed, sample, trained=trained, fewer=fewer)
        num = int(SHARES[name] * len(seen))
        return disjoint(seen, file, num, seed, sample, trained=trained, fewer=fewer)
    # The training mesh may be drawn by the same sampler from the same seed.
    sampler = MESH_KINDS["random-subset" if name == "own" else name].sampler
    return sampler(file, len(seen), seed + 1_000_003, sample)


def _fewer(used: RunData) -> list[str]:
    """Return settings by which training would see fewer points of the file."""
    data = used.config.data
    settings = [option("data.point_sets", 1)] * ((data.point_sets or 1) > 1)
    return settings + [option("data.query_points", 0)] * bool(data.query_points)


def _first_samples(file: Fields) -> Indices:
    """Up to four samples, of the test part where there is one."""
    part = file.split["test"]
    return (part if len(part) else np.arange(file.num_samples))[:4]
