"""What was observed and what is predicted at a few stations over time, for a report."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.scored_model import ScoredModel, predictions
from nfsgeo.training.run_data import RunData

__all__ = ["SERIES", "station_series"]

SERIES = ("station", "station_times", "station_truth", "station_prediction")

STATIONS, TIME_STEPS = 4, 120  # as many as can be told apart


def station_series(scored: ScoredModel) -> dict[str, NDArray[Any]]:
    """The end of the test series at the stations with most values there.

    Predictions follow each other, each from the time steps before it, so that every
    time step is predicted once.

    Args:
        scored: The model and the fields; nothing is returned where their points have no
            names, or there is no time.

    Returns:
        ``station``: names ``[K]``; ``station_times`` ``[T]``; ``station_truth`` and
        ``station_prediction`` ``[K, T, C]``.
    """
    forecaster, used = scored.forecaster, scored.used
    file, mesh, data = used.file, used.mesh, used.config.data
    names, n_in, n_out = file.stations(), data.n_in, data.n_out or 1
    if not (names and n_in and isinstance(mesh, Mesh)) or mesh.index is None:
        return {}
    apart = data.changed(evaluation_stride=n_out * data.time_stride)
    used = RunData(used.config.changed(data=apart), file)
    starts = used.starts("test", n_in + n_out)[-max(1, TIME_STEPS // n_out) :]
    samples = np.repeat(used.samples("test")[:1], len(starts))
    steps = data.time_stride * np.arange(n_in + n_out)
    absent = forecaster.drops_absent
    look: dict[str, Any] = {"first_step": starts, "numbers": steps}
    windows = WindowDataset(
        file, samples, n_in, n_out, mesh, drop_absent=absent, **look
    )
    at = (starts[:, None] + steps[n_in:]).ravel()
    truth = file.read(int(samples[0]), slice(int(at[-1]) + 1), mesh.index)[:, at]
    chosen = np.argsort(np.isnan(truth).sum((1, 2)), kind="stable")[:STATIONS]
    found = np.full_like(truth[chosen], np.nan)
    places = torch.from_numpy(mesh.pos[chosen])[:, None]
    for window, (batch, u) in enumerate(predictions(forecaster, windows, 1)):
        # Windows may lack points.
        station, point = (batch.pos.cpu() == places).all(-1).nonzero(as_tuple=True)
        found[station, window * n_out : (window + 1) * n_out] = u.cpu()[point]
    arrays = (np.array(names)[mesh.index[chosen]], file.times[at], truth[chosen], found)
    return dict(zip(SERIES, arrays, strict=True))
