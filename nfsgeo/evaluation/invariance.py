"""Errors of a run on meshes of every kind, at observed and at other points."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nfsgeo.data.fields import Indices
from nfsgeo.data.meshes import MESH_KINDS, Mesh, disjoint, nested, points_there
from nfsgeo.data.meshes.on_grids import between
from nfsgeo.data.meshes.trigonometric import is_band_limited
from nfsgeo.data.streams import Stream, philox, shuffled
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.unseen import DRAWS, in_turn, samples_to_look_at
from nfsgeo.forecast import matched
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.observation import mesh_of, observe, trained_points
from nfsgeo.training.run_paths import Run, find_run
from nfsgeo.training.source import open_source

__all__ = ["COLUMNS", "MESHES", "evaluate_meshes", "mesh_columns"]

COLUMNS = ("mesh", "num_points", "mae_observed", "mae_unobserved", "mae")

MESHES = (
    *("seen", "off-grid", "nested-2", "nested-3", "nested-4", "disjoint", "half"),
    *("quarter", "clustered", "own", "noise-1", "noise-10"),
)
NAMED = re.compile(r"(nested|noise)-(\d+(?:\.\d+)?)")
SIZES = {"disjoint": 1.0, "half": 0.5, "quarter": 0.25}
SAMPLERS = {"own": "random-subset", "clustered": "clustered", "off-grid": "off-grid"}

logger = logging.getLogger(__name__)


def evaluate_meshes(
    run: Run, names: Sequence[str] = MESHES, *, device: str | None = None
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
        run: The run, in whose folder ``meshes.csv`` is written.
        names: The meshes to evaluate on.
        device: In place of the run's own.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_observed`` at the observed points,
        ``mae_unobserved`` at the others (NaN where there are none), ``mae`` at all of
        them.

    Raises:
        UserError: A name is none of these, the data have no grid to draw meshes from,
            or none of the meshes can be drawn.
    """
    for name in names:
        if name not in MESHES and not NAMED.fullmatch(name):
            raise UserError(
                f"mesh {name!r}",
                f"one of {', '.join(MESHES)}, or with another number at its end",
                "choose one of these",
            )
    config, forecaster = open_run(run, device)
    rows = []
    with open_source(config.data) as file:
        if file.shape is None:
            raise UserError(
                f"{file.path}", "fields on a grid", "draw meshes from such a file"
            )
        file = matched(file, forecaster.task)
        seen = observe(config.data, file, config.seed)
        scored = ScoredModel(forecaster, config, file, seen)
        trained = trained_points(config.data, file, config.seed)
        off_grid = is_band_limited(file, samples_to_look_at(file))
        for name in ("equispaced",) if config.data.mesh == "grid" else names:
            kind, _, number = name.rpartition("-")
            same = kind == "noise" or name in ("seen", "equispaced")
            num = None if name == "own" or callable(seen) else 1 if same else DRAWS

            def draw(sample: int, name: str = name, same: bool = same) -> Mesh:
                mesh = mesh_of(seen, sample)
                mesh = mesh if same else _drawn(name, mesh, scored, trained, sample)
                return _with_others(mesh, scored, trained, sample, off_grid)

            if name == "off-grid" and not off_grid:
                continue
            try:
                mesh = in_turn(draw, num)
                size = len(mesh_of(mesh, int(samples_to_look_at(file)[0])))
            except UserError as error:
                logger.warning("mesh %s is left out: %s", name, error)
                continue
            noise = float(number) / 100 if kind == "noise" else None
            parts = scored.errors_in_parts(scored.windows(mesh=mesh, noise=noise))
            mae, observed, unobserved = (errors["mae"] for errors in parts)
            values = (name, size, observed, unobserved, mae)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    if not rows:
        raise UserError(
            f"meshes {', '.join(names)} of {config.data.file}",
            "more points that training has not seen, or fields known between them",
            "choose other meshes, or train with a smaller data.point_sets",
        )
    write_rows(find_run(run).meshes, COLUMNS, rows)
    return rows


def mesh_columns(names: Sequence[str]) -> list[str]:
    """Column names of the errors on meshes."""
    meshes, errors = (*names, "equispaced"), ("mae", "mae_unobserved")
    return [f"{column}_{name}" for name in meshes for column in errors]


def _drawn(
    name: str,
    seen: Mesh,
    scored: ScoredModel,
    trained: Callable[[int], Indices],
    sample: int,
) -> Mesh:
    """The mesh of this name for a sample."""
    file, seed, num = scored.file, scored.config.seed, len(seen)
    if name in SAMPLERS:
        # The training mesh may be drawn by the same sampler from the same seed.
        sampler = MESH_KINDS[SAMPLERS[name]].sampler
        return sampler(file, num, seed + 1_000_003, sample)
    known = trained(sample)
    if name in SIZES:
        num = int(SIZES[name] * num)
        return disjoint(seen, file, num, seed, sample, trained=known)
    num = round(float(name.removeprefix("nested-")) * num)
    return nested(seen, file, num, seed, sample, trained=known)


def _with_others(
    mesh: Mesh,
    scored: ScoredModel,
    trained: Callable[[int], Indices],
    sample: int,
    off_grid: bool,
) -> Mesh:
    """A mesh with as many query points, neither observed nor trained on."""
    file = scored.file
    rng = philox(scored.config.seed, Stream.UNSEEN_POINTS, sample)
    if off_grid:
        return replace(mesh, queries=Mesh(between(file, len(mesh), rng), None))
    known = trained(sample)
    taken = known if mesh.index is None else np.union1d(known, mesh.index)
    rest = np.setdiff1d(points_there(file, sample), taken)
    chosen = rest[shuffled(len(rest), rng)[: len(mesh)]]
    return replace(mesh, queries=Mesh(file.coordinates(sample)[chosen], chosen))
