"""Errors of a run on meshes of every kind, at observed and at other points."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import MESH_KINDS, Mesh, disjoint, nested, points_there
from nfsgeo.data.meshes.on_grids import between
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import Stream, philox, shuffled
from nfsgeo.errors import UserError
from nfsgeo.evaluation.evaluate import errors_in_parts, scored_windows
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.evaluation.unseen import DRAWS, in_turn, samples_to_look_at
from nfsgeo.forecast import matched
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.run_data import Observation, RunData, open_source

__all__ = ["COLUMNS", "MESHES", "evaluate_meshes", "mesh_columns"]

COLUMNS = ("mesh", "num_points", "mae_observed", "mae_unobserved", "mae")

MESHES = (
    *("seen", "off-grid", "nested-2", "nested-3", "nested-4", "disjoint", "half"),
    *("quarter", "clustered", "own", "noise-1", "noise-10"),
)
# How a mesh is drawn that has no number in its name, and its size or its noise.
FIXED = {"seen": ("seen", 0.0), "equispaced": ("seen", 0.0)}
FIXED |= {"disjoint": ("disjoint", 1.0), "half": ("disjoint", 0.5)}
FIXED |= {"quarter": ("disjoint", 0.25), "own": ("random-subset", 1.0)}

logger = logging.getLogger(__name__)


def evaluate_meshes(
    folder: Path, names: Sequence[str] = MESHES, *, device: str | None = None
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
    - ``disjoint``, ``half``, ``quarter``: ``n``, ``n / 2``, ``n / 4`` of such points
    - ``clustered``: ``n`` of the file, ten times as dense in one place as in another
    - ``own``: ``n`` of the file for each sample, its own
    - ``noise-p``: ``seen`` with noise on the inputs, ``p`` percent of their standard
      deviation

    Meshes for which training has seen too many points of the file are left out, with a
    warning. Fields are predicted at the observed points and at as many that were
    neither observed nor trained on, or as there are: points between those of the file
    where the fields are known there, else points of the file.

    Args:
        folder: Folder of the run; ``meshes.csv`` is written there.
        names: The meshes to evaluate on.
        device: In place of the run's own.

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
        file = matched(file, forecaster.task)
        used = RunData(config, file)
        seen, known = used.mesh, used.trained_points
        off_grid = is_band_limited(file, samples_to_look_at(file))
        training = _Training(file, seen, known, off_grid)
        if config.data.mesh == "grid":
            names = ("equispaced",)
        for name in _those_there_are(names, training):
            own, (kind, amount) = (
                name == "own" or not isinstance(seen, Mesh),
                _parsed(name),
            )
            num = None if own else 1 if kind == "seen" else DRAWS
            inputs = in_turn(partial(_drawn, name, training, config.seed), num)
            where = in_turn(partial(_with_others, training, inputs, config.seed), num)
            noise = amount or None if kind == "seen" else None  # None: as in training
            test = scored_windows(forecaster, config, file, where, noise=noise)
            size = len(inputs(test.samples[0]))
            parts = errors_in_parts(forecaster, test, config.data.batch_size)
            mae, observed, unobserved = (errors["mae"] for errors in parts)
            values = (name, size, observed, unobserved, mae)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    write_rows(paths.meshes, COLUMNS, rows)
    return rows


def mesh_columns(names: Sequence[str]) -> list[str]:
    """Column names of the errors on meshes."""
    meshes, errors = (*names, "equispaced"), ("mae", "mae_unobserved")
    return [f"{column}_{name}" for name in meshes for column in errors]


@dataclass(frozen=True)
class _Training:
    """Where training samples were observed, and whether fields are known elsewhere."""

    file: Fields
    first: Observation
    points: Callable[[int], Indices]
    off_grid: bool

    def seen(self, mesh: Mesh, sample: int) -> Indices:
        """Points of the file that training has seen, or that a mesh has."""
        known = self.points(sample)
        return known if mesh.index is None else np.union1d(known, mesh.index)


def _those_there_are(names: Sequence[str], training: _Training) -> list[str]:
    """The meshes for which the file has enough points."""
    sample = int(samples_to_look_at(training.file)[0])
    first = training.first(sample)
    total = len(points_there(training.file, sample))
    trained, found = len(training.seen(first, sample)), []
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


def _parsed(name: str) -> tuple[str, float]:
    """How a mesh is drawn, and its size in that of training or its noise in std."""
    kind, _, number = name.rpartition("-")
    with contextlib.suppress(ValueError):
        if kind == "nested":
            return kind, float(number)
        if kind == "noise":
            return "seen", float(number) / 100
    if name in FIXED:
        return FIXED[name]
    known = MESH_KINDS.get(name)
    if known is None or not known.drawn or known.size != "points":
        raise UserError(
            f"mesh {name!r}",
            f"one of {', '.join(MESHES)}, or with another number at its end",
            "choose one of these",
        )
    return name, 1.0


def _num_unseen(name: str, num: int) -> int:
    """How many unseen points of the file a mesh needs."""
    kind, size = _parsed(name)
    if kind == "nested":
        return round(size * num) - num
    return int(size * num) if kind == "disjoint" else 0


def _drawn(name: str, training: _Training, seed: int, sample: int) -> Mesh:
    """The mesh of this name for a sample, without query points."""
    file, seen = training.file, training.first(sample)
    kind, num = _parsed(name)[0], len(seen)
    if kind == "seen":
        return seen
    if kind in ("nested", "disjoint"):
        draw, old = (nested, num) if kind == "nested" else (disjoint, 0)
        size, known = old + _num_unseen(name, num), training.points(sample)
        return draw(seen, file, size, seed, sample, trained=known)
    # The training mesh may be drawn by the same sampler from the same seed.
    return MESH_KINDS[kind].sampler(file, num, seed + 1_000_003, sample)


def _with_others(
    training: _Training, inputs: Observation, seed: int, sample: int
) -> Mesh:
    """A mesh with as many query points, neither observed nor trained on."""
    file, mesh = training.file, inputs(sample)
    rng = philox(seed, Stream.UNSEEN_POINTS, sample)
    if training.off_grid:
        return replace(mesh, queries=Mesh(between(file, len(mesh), rng), None))
    rest = np.setdiff1d(points_there(file, sample), training.seen(mesh, sample))
    chosen = rest[shuffled(len(rest), rng)[: len(mesh)]]
    return replace(mesh, queries=Mesh(file.coordinates(sample)[chosen], chosen))
