"""Errors of a run at the points of its file that are not observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from nfsgeo.data import FieldFile
from nfsgeo.data.connected_batches import batches
from nfsgeo.data.meshes import Mesh, with_queries
from nfsgeo.models import MODELS
from nfsgeo.training import Forecaster
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation

__all__ = ["unobserved_errors"]

# Points of a sample that are predicted; more tell nothing new.
MOST = 4096


@torch.no_grad()
def unobserved_errors(
    forecaster: Forecaster,
    config: RunConfig,
    file: FieldFile,
    mesh: Observation,
    samples: Sequence[int],
) -> dict[str, Any]:
    """Errors at unobserved query points, of samples that are observed elsewhere.

    Args:
        forecaster: On the device to compute on.
        config: Of the run.
        file: The data.
        mesh: Where the samples are observed.
        samples: Their numbers in the file.

    Returns:
        ``{"unobserved": {"num_points", "mae", "rmse", "rel_l2"}}``, in the units of the
        data; nothing for a model that predicts at observed points alone, and where the
        file has no other points.
    """
    if not MODELS[config.model.name].query_points:
        return {}
    # One mesh of all samples has its query points, and so its graphs, once.
    if isinstance(mesh, Mesh):
        queried: Observation = with_queries(mesh, file, MOST, 0)
    else:
        queried = partial(_queried, file, mesh)
    test = windows(config.data, file, queried, "test")
    test.samples = list(samples)
    errors, most = forecaster.new_errors(), 0
    for batch in batches(test, config.data.batch_size, forecaster.connect):
        batch = batch.to(forecaster.device)
        sizes = batch.graphs.sizes, batch.graphs.query_sizes
        pairs = list(zip(*sizes, strict=True))
        most = max(most, *(there - here for here, there in pairs))
        prediction = forecaster(batch.x, batch.pos, graphs=batch.graphs)
        # The observed points of a sample come first.
        unobserved = torch.cat([torch.arange(there) >= here for here, there in pairs])
        unobserved = unobserved.to(forecaster.device)
        errors.update(
            prediction[unobserved],
            batch.query_y[unobserved],
            batch.graphs.query_batch[unobserved] if len(pairs) > 1 else None,
        )
    return {"unobserved": {"num_points": most} | errors.compute()} if most else {}


def _queried(file: FieldFile, mesh: Callable[[int], Mesh], sample: int) -> Mesh:
    return with_queries(mesh(sample), file, MOST, 0, sample)
