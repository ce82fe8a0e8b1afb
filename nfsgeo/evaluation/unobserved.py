"""Errors of a run at the points of its file that are not observed."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch_geometric.loader import DataLoader

from nfsgeo.data import FieldFile
from nfsgeo.data.meshes import Mesh, with_queries
from nfsgeo.models import MODELS
from nfsgeo.training import FieldErrors, Forecaster
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation, mesh_of

__all__ = ["unobserved_errors"]

# Points of a sample that are predicted; more tell nothing new.
MOST = 4096


@torch.no_grad()
def unobserved_errors(
    forecaster: Forecaster,
    config: RunConfig,
    file: FieldFile,
    mesh: Observation,
    part: str = "test",
) -> dict[str, Any]:
    """Errors at unobserved query points, of samples that are observed elsewhere.

    Args:
        forecaster: On the device to compute on.
        config: Of the run.
        file: The data.
        mesh: Where the samples are observed.
        part: ``"train"``, ``"valid"`` or ``"test"``.

    Returns:
        ``{"unobserved": {"num_points", "mae", "rmse", "rel_l2"}}``, in the units of the
        data; nothing for a model that predicts at observed points alone, and where the
        file has no other points.
    """
    if not MODELS[config.model.name].query_points:
        return {}
    samples = windows(config.data, file, partial(_queried, file, mesh), part)
    errors = FieldErrors().to(forecaster.device)
    most = 0
    for batch in DataLoader(
        samples, batch_size=config.data.batch_size, follow_batch=["query_pos"]
    ):
        batch = batch.to(forecaster.device)
        most = max(most, int(batch.query_pos_ptr.diff().max()))
        prediction = forecaster(
            batch.x,
            batch.pos,
            batch.batch,
            query_pos=batch.query_pos,
            query_batch=batch.query_pos_batch,
        )
        errors.update(prediction, batch.query_y, batch.query_pos_batch)
    return {"unobserved": {"num_points": most} | errors.compute()} if most else {}


def _queried(file: FieldFile, mesh: Observation, sample: int) -> Mesh:
    return with_queries(mesh_of(mesh, sample), file, MOST, 0, sample)
