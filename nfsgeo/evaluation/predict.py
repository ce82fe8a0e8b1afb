"""Predictions for new data, at the observed points or anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import nfsgeo.data
from nfsgeo.data import FieldFile, PointWriter
from nfsgeo.data.disk import check_room
from nfsgeo.data.meshes import Mesh, every_point
from nfsgeo.data.trigonometric import TrigonometricInterpolation
from nfsgeo.errors import UserError
from nfsgeo.evaluation.pretrained import find_run
from nfsgeo.evaluation.query_points import read_points
from nfsgeo.evaluation.run_evaluation import check_fields, open_run
from nfsgeo.models import MODELS
from nfsgeo.training import Forecaster, RunConfig
from nfsgeo.training.observation import mesh_of, observe

__all__ = ["predict"]


@torch.no_grad()
def predict(
    folder: Path,
    source: Path,
    target: Path,
    *,
    query_points: Path | None = None,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Predicts every sample of a file and writes a native file of point clouds.

    A point cloud is observed at all of its points, a grid at the points of the run,
    or at all of them for a model that comes with nfsgeo.

    Args:
        folder: The run's folder, or the name of a model that comes with nfsgeo.
        source: Fields with at least the run's input records.
        target: The file to make.
        query_points: Where to predict, see :func:`read_points`; None for the observed
            points.
        device: In place of the run's own.
        progress: Called with the number of samples done and in all.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    config, forecaster = open_run(find_run(folder), device)
    with nfsgeo.data.open(source) as file:
        check_fields(forecaster, file)
        mesh_at = _observation(config, file)
        points = (
            None if query_points is None else read_points(query_points, file.domain)
        )
        _check_room(target, config, file, points)
        writer = PointWriter(
            target,
            equation=file.equation,
            domain=file.domain,
            times=_times_ahead(forecaster, config, file),
            component_names=file.component_names,
            provenance={"model": config.model.name, "predicted_from": source.name},
            split=file.split,
        )
        with writer:
            written: tuple[NDArray[np.float64], int] | None = None
            for sample in range(file.num_samples):
                mesh = mesh_at(sample)
                where = mesh.pos if points is None else points
                u = forecaster(
                    _inputs(config, file, sample, mesh).to(forecaster.device),
                    _positions(file, mesh.pos).to(forecaster.device),
                    query_pos=_positions(file, where).to(forecaster.device),
                )
                # A mesh that the last sample had too is stored once.
                if written is None or not np.array_equal(written[0], where):
                    written = where, writer.add_mesh(where)
                writer.write(u.cpu().numpy(), written[1])
                if progress is not None:
                    progress(sample + 1, file.num_samples)
    return target


def _check_room(
    target: Path,
    config: RunConfig,
    file: FieldFile,
    points: NDArray[np.float64] | None,
) -> None:
    """Makes sure that the disk can hold the result.

    Raises:
        UserError: It cannot, or only compressed.
    """
    most = max(map(file.num_points, range(file.num_samples)))
    num = config.data.points or most if points is None else len(points)
    each = num * (4 * (config.data.n_out or 1) * file.components + 8 * file.domain.dim)
    check_room(target, file.num_samples * each)


def _observation(config: RunConfig, file: FieldFile) -> Callable[[int], Mesh]:
    """Where each sample is observed; a model that needs a grid refuses a cloud."""
    if file.shape is None and MODELS[config.model.name].points:
        return partial(every_point, file)
    return partial(mesh_of, observe(config.data, file, config.seed))


def _inputs(config: RunConfig, file: FieldFile, sample: int, mesh: Mesh) -> Tensor:
    """What a window of the sample would hold as ``x``, without the records after it.

    Raises:
        UserError: A value is not finite.
    """
    data, n_in = config.data, config.data.n_in or 0
    fields = []
    if n_in:
        fields.append(file.read(sample, data.records(n_in), mesh.index))
    if file.static_role == "coefficient":
        a = file.read_static(sample, mesh.index)[:, None]
        fields.append(np.repeat(a, max(1, n_in), axis=1))
    x = np.concatenate(fields, axis=-1)
    if mesh.index is None:
        x = TrigonometricInterpolation(file, mesh.pos)(x)
    if not np.isfinite(x).all():
        raise UserError(
            f"sample {sample} of {file.path} with values that are not finite",
            "finite values",
            "leave the sample out or repair the file",
        )
    return torch.from_numpy(x)


def _positions(file: FieldFile, pos: NDArray[np.float64]) -> Tensor:
    # Rounding may put a point on the far end of a periodic axis.
    return file.domain.wrap(torch.from_numpy(pos).float())


def _times_ahead(
    forecaster: Forecaster, config: RunConfig, file: FieldFile
) -> NDArray[np.float64]:
    """Times of the predicted records: as far from the last input as in training.

    Raises:
        UserError: The file has fewer input records, or their spacing is another.
    """
    trained = np.array(forecaster.description["times"])
    n_in = config.data.n_in or 0
    if not n_in:
        return trained
    records = config.data.records(n_in)
    times = file.times[records]
    if len(times) < n_in:
        raise UserError(
            f"{file.path} with {len(file.times)} records",
            f"at least the {records.stop} that end the input",
            "use a longer file",
        )
    spacing, usual = np.diff(times), np.diff(trained[:n_in])
    if not np.allclose(spacing, usual, rtol=1e-3, atol=0):
        raise UserError(
            f"{file.path} with records {spacing.mean():g} apart",
            f"records {usual.mean():g} apart, as in training",
            "use records of the same spacing",
        )
    return times[-1] + trained[n_in:] - trained[n_in - 1]
