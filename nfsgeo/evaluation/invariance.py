"""Errors of a run on meshes of every kind, at observed and at other points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

import nfsgeo.data
from nfsgeo.data import FieldFile
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.grid_meshes import between, philox
from nfsgeo.data.meshes import (
    Mesh,
    MeshesInTurn,
    clustered,
    disjoint,
    nested,
    off_grid,
    random_subset,
)
from nfsgeo.errors import UserError
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.training import FieldErrors, Forecaster, RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation, mesh_of, observe

__all__ = ["COLUMNS", "DRAWS", "MESHES", "evaluate_meshes", "mesh_columns"]

# Of meshes of a kind: errors on one may be a tenth larger than on the next.
DRAWS = 8

COLUMNS = ("mesh", "num_points", "mae_observed", "mae_unobserved", "mae")

MESHES = (
    "seen",
    "nested-2",
    "nested-3",
    "nested-4",
    "disjoint",
    "half",
    "quarter",
    "clustered",
    "off-grid",
    "own",
    "noise-1",
    "noise-10",
)


def evaluate_meshes(
    folder: Path,
    names: Sequence[str] = MESHES,
    *,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Observes the test samples on other meshes, and predicts there and elsewhere.

    Meshes are drawn from the run's seed, :data:`DRAWS` of each kind, on which samples
    take turns. With ``n`` the points of the mesh that the run was trained on:

    - ``seen``: that mesh, the first of several; ``equispaced`` where it is a grid, and
      then the only one
    - ``nested-k``: its points and more, ``k n`` in all
    - ``disjoint``, ``half``, ``quarter``: none of its points; ``n``, ``n / 2``,
      ``n / 4`` others
    - ``clustered``: ``n``, ten times as dense in one place as in another
    - ``off-grid``: ``n`` between those of the file, along periodic axes; left out
      where there are none
    - ``own``: ``n`` others for each sample
    - ``noise-p``: ``seen`` with noise on the inputs, ``p`` percent of their deviation

    Fields are predicted at the observed points and at as many that were neither
    observed nor trained on: points of the file, or points between them where the
    file has none left.

    Args:
        folder: Of the run; ``meshes.csv`` is written there.
        names: Of the meshes.
        device: In place of the run's own.
        progress: Called with the number of meshes done and in all.

    Returns:
        A row of :data:`COLUMNS` for each mesh; ``mae_observed`` at the observed points,
        ``mae_unobserved`` at the others, ``mae`` at all of them.

    Raises:
        UserError: The data have no grid to draw meshes from, or too few points.
    """
    paths = RunPaths.existing(folder)
    config, forecaster = open_run(paths, device)
    rows = []
    with nfsgeo.data.open(config.data.file or "") as file:
        if file.shape is None:
            raise UserError(
                f"{file.path}", "fields on a grid", "draw meshes from such a file"
            )
        seen = observe(config.data, file, config.seed)
        if config.data.mesh == "grid":
            names = ("equispaced",)
        elif not any(file.domain.periodic):
            names = [name for name in names if name != "off-grid"]
        for number, name in enumerate(names):
            own = name == "own" or not isinstance(seen, Mesh)
            num = None if own else 1 if _is_seen(name) else DRAWS
            inputs = _in_turn(partial(_drawn, name, file, seen, config.seed), num)
            where = _in_turn(
                partial(_with_others, file, seen, inputs, config.seed), num
            )
            test = windows(config.data, file, where, "test")
            size = len(mesh_of(inputs, test.samples[0]))
            noise = _amount(name) / 100 if name.startswith("noise-") else 0.0
            found = _errors(forecaster, test, size, config.data.batch_size, noise)
            rows.append({"mesh": name, "num_points": size} | found)
            if progress is not None:
                progress(number + 1, len(names))
    write_rows(paths.meshes, COLUMNS, rows)
    return rows


def mesh_columns(names: Sequence[str]) -> list[str]:
    """Names of the errors on meshes, one after the other."""
    return [
        f"{column}_{name}"
        for name in (*names, "equispaced")
        for column in ("mae", "mae_unobserved")
    ]


def _in_turn(mesh: Callable[[int], Mesh], num: int | None) -> Callable[[int], Mesh]:
    """The first ``num`` meshes, on which samples take turns; each its own when None."""
    if num is None:
        return mesh
    return MeshesInTurn(tuple(mesh(number) for number in range(num)))


def _is_seen(name: str) -> bool:
    """Whether samples are observed where they were in training."""
    return name in ("seen", "equispaced") or name.startswith("noise-")


def _drawn(name: str, file: FieldFile, seen: Observation, seed: int, item: int) -> Mesh:
    """A mesh by name, for a sample."""
    trained = mesh_of(seen, item)
    num = len(trained)
    if _is_seen(name):
        return trained
    if name.startswith("nested-"):
        return nested(trained, file, round(_amount(name) * num), seed, item)
    shares = {"disjoint": 1, "half": 2, "quarter": 4}
    if name in shares:
        return disjoint(trained, file, num // shares[name], seed, item)
    samplers: dict[str, Callable[..., Mesh]] = {
        "clustered": clustered,
        "off-grid": off_grid,
        "own": random_subset,
    }
    if name not in samplers:
        raise UserError(
            f"mesh {name!r}", f"one of {', '.join(MESHES)}", "choose one of these"
        )
    # The training mesh may be drawn by the same sampler from the same seed.
    return samplers[name](file, num, seed + 1_000_003, item)


def _amount(name: str) -> float:
    """The number at the end of a name."""
    try:
        return float(name.split("-", 1)[1])
    except ValueError:
        raise UserError(
            f"mesh {name!r}", "a number at its end", "for example nested-2 or noise-1"
        ) from None


def _with_others(
    file: FieldFile, seen: Observation, inputs: Observation, seed: int, item: int
) -> Mesh:
    """A mesh with as many points after its own, neither observed nor trained on."""
    mesh, rng = mesh_of(inputs, item), philox(seed, 5, item)
    if mesh.index is not None:
        known = mesh.index
        trained = mesh_of(seen, item).index
        if trained is not None:
            known = np.union1d(known, trained)
        rest = np.setdiff1d(np.arange(file.num_points(item)), known)
        if len(rest):
            order = np.argsort(rng.random(len(rest)), kind="stable")
            index = np.concatenate([mesh.index, rest[order[: len(mesh)]]])
            return Mesh(file.coordinates(item)[index], index)
    if not any(file.domain.periodic):
        return Mesh(mesh.pos, mesh.index)
    return Mesh(np.concatenate([mesh.pos, between(file, len(mesh), rng)]), None)


@torch.no_grad()
def _errors(
    forecaster: Forecaster,
    test: WindowDataset,
    size: int,
    batch_size: int,
    noise: float,
) -> dict[str, float]:
    everywhere, observed, others = (
        FieldErrors().to(forecaster.device) for _ in range(3)
    )
    for batch in DataLoader(test, batch_size=batch_size):
        batch = batch.to(forecaster.device)
        number = torch.arange(len(batch.batch), device=batch.batch.device)
        first = number - batch.ptr[batch.batch] < size
        prediction = forecaster(
            batch.x[first] + noise * _noise(forecaster, batch)[first],
            batch.pos[first],
            batch.batch[first],
            query_pos=batch.pos,
            query_batch=batch.batch,
        )
        everywhere.update(prediction, batch.y, batch.batch)
        for errors, points in ((observed, first), (others, ~first)):
            errors.update(prediction[points], batch.y[points], batch.batch[points])
    return {
        "mae_observed": observed.compute()["mae"],
        "mae_unobserved": others.compute()["mae"],
        "mae": everywhere.compute()["mae"],
    }


def _noise(forecaster: Forecaster, batch: Batch) -> Tensor:
    """Normal numbers of the deviation of the inputs, those of a sample its own."""
    drawn = []
    for sample, points in zip(batch.sample.tolist(), batch.ptr.diff(), strict=True):
        generator = torch.Generator().manual_seed(sample)
        drawn.append(torch.randn(points, *batch.x.shape[1:], generator=generator))
    return torch.cat(drawn).to(batch.x) * forecaster.inputs.std.to(batch.x)
