"""Errors of a run on meshes of every kind, at observed and at other points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    disjoint,
    nested,
    points_there,
)
from nfsgeo.data.meshes.on_grids import between
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import Stream, philox, shuffled
from nfsgeo.errors import UserError
from nfsgeo.evaluation.fitting import check_fields
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.evaluation.scoring import errors_in_parts, scored_windows
from nfsgeo.evaluation.unseen import DRAWS, in_turn, samples_to_look_at
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.observation import Observation, mesh_of, observe, trained_points
from nfsgeo.training.source import open_source

__all__ = ["COLUMNS", "MESHES", "evaluate_meshes", "mesh_columns"]

COLUMNS = ("mesh", "num_points", "mae_observed", "mae_unobserved", "mae")

MESHES = (
    "seen",
    "off-grid",
    "nested-2",
    "nested-3",
    "nested-4",
    "disjoint",
    "half",
    "quarter",
    "clustered",
    "own",
    "noise-1",
    "noise-10",
)

# Meshes of points that training has not seen, by the ratio of ``n`` to their number.
COARSENING = {"disjoint": 1, "half": 2, "quarter": 4}

logger = logging.getLogger(__name__)


def evaluate_meshes(
    folder: Path,
    names: Sequence[str] = MESHES,
    *,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Observes the test samples on other meshes; scores observed and other points.

    Meshes are drawn from the run's seed, :data:`~nfsgeo.evaluation.unseen.DRAWS` of
    each kind, which samples cycle through. With ``n`` the points of the mesh that the
    run was trained on:

    - ``seen``: that mesh, the first of several; ``equispaced`` where it is a grid, and
      then the only one
    - ``off-grid``: ``n`` between those of the file, along periodic axes, which nothing
      in training has seen; left out where the fields are not known there
      (:func:`~nfsgeo.data.meshes.trigonometric.is_band_limited`)
    - ``nested-k``: the points of ``seen`` and more, ``k n`` in all; these are points of
      the file that no point set of training contains
    - ``disjoint``, ``half``, ``quarter``: ``n``, ``n / 2``, ``n / 4`` points of the
      file that no point set of training contains
    - ``clustered``: ``n`` of the file, ten times as dense in one place as in another
    - ``own``: ``n`` of the file for each sample, its own
    - ``noise-p``: ``seen`` with noise on the inputs, ``p`` percent of their standard
      deviation

    ``nested-k`` and the next three are left out, with a warning, where training has
    seen too many points of the file. Those of ``clustered`` and ``own`` may be points
    that training samples were observed at.

    Fields are predicted at the observed points and at as many that were neither
    observed nor trained on: points between those of the file where the fields are
    known there, else points of the file, as many as there are.

    Args:
        folder: Folder of the run; ``meshes.csv`` is written there.
        names: The meshes to evaluate on.
        device: In place of the run's own.
        progress: Called with the number of meshes done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_observed`` at the observed points,
        ``mae_unobserved`` at the others (NaN where there are none), ``mae`` at all of
        them.

    Raises:
        UserError: The data have no grid to draw meshes from, or none of the meshes
            can be drawn.
    """
    paths = RunPaths.existing(folder)
    config, forecaster = open_run(paths, device)
    rows = []
    with open_source(config.data) as file:
        if file.shape is None:
            raise UserError(
                f"{file.path}", "fields on a grid", "draw meshes from such a file"
            )
        file = check_fields(forecaster, file)
        seen = observe(config.data, file, config.seed)
        training = _Training(
            file,
            seen,
            trained_points(config.data, file, config.seed),
            is_band_limited(file, samples_to_look_at(file)),
        )
        if config.data.mesh == "grid":
            names = ("equispaced",)
        names = _those_there_are(names, training)
        for number, name in enumerate(names):
            own = name == "own" or not isinstance(seen, Mesh)
            num = None if own else 1 if _is_seen(name) else DRAWS
            inputs = in_turn(partial(_drawn, name, training, config.seed), num)
            where = in_turn(partial(_with_others, training, inputs, config.seed), num)
            test = scored_windows(forecaster, config, file, where)
            if name.startswith("noise-"):
                test.noise = _amount(name) / 100 * forecaster.inputs.std.cpu()
            size = len(mesh_of(inputs, test.samples[0]))
            parts = errors_in_parts(forecaster, test, config.data.batch_size)
            mae, observed, unobserved = (errors["mae"] for errors in parts)
            values = (name, size, observed, unobserved, mae)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
            if progress is not None:
                progress(number + 1, len(names))
    write_rows(paths.meshes, COLUMNS, rows)
    return rows


def mesh_columns(names: Sequence[str]) -> list[str]:
    """Column names of the errors on meshes."""
    return [
        f"{column}_{name}"
        for name in (*names, "equispaced")
        for column in ("mae", "mae_unobserved")
    ]


@dataclass(frozen=True)
class _Training:
    """Where training samples were observed, and whether fields are known elsewhere."""

    file: Fields
    first: Observation
    points: Callable[[int], Indices]
    off_grid: bool


def _those_there_are(names: Sequence[str], training: _Training) -> list[str]:
    """The meshes for which the file has enough points."""
    sample = int(samples_to_look_at(training.file)[0])
    first, seen = mesh_of(training.first, sample), training.points(sample)
    if first.index is not None:
        seen = np.union1d(seen, first.index)
    total, trained = len(points_there(training.file, sample)), len(seen)
    found = []
    for name in names:
        num = _num_unseen(name, len(first))
        if num > total - trained:
            logger.warning(
                "%s is left out: of the %d points of %s training has seen %d, and %d "
                "unseen ones are wanted; see off-grid, or train with a smaller "
                "data.point_sets",
                *(name, total, training.file.path, trained, num),
            )
        elif name != "off-grid" or training.off_grid:
            found.append(name)
    if not found:
        raise UserError(
            f"meshes {', '.join(names)} of {training.file.path}, of whose {total} "
            f"points training has seen {trained}",
            "more points that training has not seen, or fields known between them",
            "choose other meshes, or train with a smaller data.point_sets",
        )
    return found


def _num_unseen(name: str, num: int) -> int:
    """How many unseen points of the file a mesh needs."""
    if name.startswith("nested-"):
        return round(_amount(name) * num) - num
    return num // COARSENING[name] if name in COARSENING else 0


def _is_seen(name: str) -> bool:
    """Whether samples are observed where they were in training."""
    return name in ("seen", "equispaced") or name.startswith("noise-")


def _drawn(name: str, training: _Training, seed: int, item: int) -> Mesh:
    """The mesh of this name for a sample, without query points."""
    file, seen = training.file, mesh_of(training.first, item)
    num = len(seen)
    if _is_seen(name):
        return seen
    if name.startswith("nested-") or name in COARSENING:
        draw, more = (disjoint, 0) if name in COARSENING else (nested, num)
        size, trained = more + _num_unseen(name, num), training.points(item)
        return draw(seen, file, size, seed, item, trained=trained)
    kind = MESH_KINDS.get("random-subset" if name == "own" else name)
    if kind is None or not kind.drawn or kind.size != "points":
        raise UserError(
            f"mesh {name!r}", f"one of {', '.join(MESHES)}", "choose one of these"
        )
    # The training mesh may be drawn by the same sampler from the same seed.
    return kind.sampler(file, num, seed + 1_000_003, item)


def _amount(name: str) -> float:
    """The number at the end of a name."""
    try:
        return float(name.split("-", 1)[1])
    except ValueError:
        raise UserError(
            f"mesh {name!r}", "a number at its end", "for example nested-2 or noise-1"
        ) from None


def _with_others(
    training: _Training, inputs: Observation, seed: int, item: int
) -> Mesh:
    """A mesh with as many query points, neither observed nor trained on."""
    file, mesh = training.file, mesh_of(inputs, item)
    rng = philox(seed, Stream.UNSEEN_POINTS, item)
    if training.off_grid:
        return replace(mesh, queries=Mesh(between(file, len(mesh), rng), None))
    known = training.points(item)
    if mesh.index is not None:
        known = np.union1d(known, mesh.index)
    rest = np.setdiff1d(points_there(file, item), known)
    chosen = rest[shuffled(len(rest), rng)[: len(mesh)]]
    return replace(mesh, queries=Mesh(file.coordinates(item)[chosen], chosen))
