"""Forecasts without a network for one series at stations, as references."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.meshes import Mesh
from nfsgeo.evaluation.references import MAX_QUERIES, Predictor, window_times
from nfsgeo.nn.base_interpolation import interpolate_along, spline_graph
from nfsgeo.nn.kriging import kriging_graph
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.stations.climatology import at_times, phases_of
from nfsgeo.stations.seasonal_means import SeriesClimatology, fitted_climatology
from nfsgeo.training.run_data import RunData, queried

__all__ = ["StationReferences", "station_references"]

# Ridge over the mean square of the lags, and the number of windows that the regression
# of all stations weighs as much as in that of one.
RIDGE, COMMON = 1e-3, 50.0
# Values of all windows that regressions are fitted to, approximately at most.
MOST_VALUES = 2**24
# Gradient boosting: windows that it is fitted to, and neighbours whose anomalies it
# sees.
ROWS, NEIGHBOURS = 100_000, 4
TINY = 1e-30


def station_references(
    used: RunData, n_out: int, boosting: bool
) -> StationReferences | None:
    """Fit the references of a series that is split by time; None for other data."""
    mesh = used.mesh
    if not isinstance(mesh, Mesh) or mesh.index is None:
        return None
    if (season := fitted_climatology(used)) is None:
        return None
    mesh = queried(mesh, used.file, MAX_QUERIES, 0)(0)
    return StationReferences(used, season, mesh, n_out, boosting=boosting)


class StationReferences:
    """Predictions for one series that is split by time, at points that stay.

    - ``climatology``: the mean of the station; with dates also its cycles, see
      :class:`~nfsgeo.stations.seasonal_means.SeriesClimatology`
    - ``anomaly_persistence``: the last anomaly stays
    - ``damped_anomaly``: it decays, by one factor for each lead time
    - ``ridge``, ``ridge_each``: regression on all observed anomalies of the station,
      one for all stations, or one for each that is shrunk to the former
    - ``boosting``: gradient boosted trees on these, those of neighbours and the season

    Args:
        used: Data of the run, with a complete configuration.
        season: The climatology of the series.
        mesh: Points of the file where it is observed, with the unobserved ones of
            interest as queries.
        n_out: Time steps to predict.
        boosting: Whether to fit the trees, where scikit-learn is installed.
    """

    def __init__(
        self,
        used: RunData,
        season: SeriesClimatology,
        mesh: Mesh,
        n_out: int,
        *,
        boosting: bool = False,
    ) -> None:
        self.n_in, self.cycles = used.config.data.n_in or 0, season.cycles
        joined, self.num = mesh.with_queries_joined(), len(mesh)
        assert joined.index is not None
        self.domain, self.pos = used.file.domain, season.pos[joined.index]
        self.table = season.table[joined.index]
        self.anomalies = season.anomalies[mesh.index].numpy()
        self.covariance = season.covariance() if len(mesh.queries or ()) else None
        # The last graph from observed to other points, by the points of both.
        self.graph: tuple[Any, Any] = None, None
        self.trees: list[list[Any]] = []
        self._fit(used, n_out, boosting)

    def _fit(self, used: RunData, n_out: int, boosting: bool) -> None:
        """Fit all regressions to the training windows."""
        data, num = used.config.data, self.n_in + n_out
        points, _, components = self.anomalies.shape
        stride = max(1, self.anomalies.size * num // MOST_VALUES)
        starts = used.starts("train", num, stride)
        steps = starts[:, None] + data.time_stride * np.arange(num)
        windows = self.anomalies[:, steps - used.steps["train"].start]
        lags, targets = _filled(windows[:, :, : self.n_in]), windows[:, :, self.n_in :]
        # Weights [1 or points, n_out, n_in, C] of the lags.
        last = np.zeros((1, n_out, self.n_in, components))
        last[:, :, -1] = 1
        damped, common, point_weights = (
            last.copy(),
            last.copy(),
            last.repeat(points, axis=0),
        )
        one = np.eye(self.n_in)
        for t, c in np.ndindex(n_out, components):
            x, y = lags[..., c], targets[:, :, t, c]
            weight = (~np.isnan(y)).astype(float)
            gram = np.einsum("pwi,pw,pwj->pij", x, weight, x, optimize=True)
            right = np.einsum("pwi,pw->pi", x, np.nan_to_num(y), optimize=True)
            whole, mean = gram.sum(0), np.trace(gram.sum(0)) / self.n_in + TINY
            damped[0, t, -1, c] = right[:, -1].sum() / (whole[-1, -1] + TINY)
            ridge = np.linalg.solve(whole + RIDGE * mean * one, right.sum(0))
            pull = COMMON * mean / max(1.0, weight.sum())
            shrunk = np.linalg.solve(
                gram + pull * one, (right + pull * ridge)[..., None]
            )
            common[0, t, :, c], point_weights[:, t, :, c] = ridge, shrunk[..., 0]
        self.weights = {
            "climatology": 0 * last,
            "anomaly_persistence": last,
            "damped_anomaly": damped,
            "ridge": common,
            "ridge_each": point_weights,
        }
        if boosting and find_spec("sklearn"):
            from sklearn.ensemble import HistGradientBoostingRegressor as Trees

            complete = np.argwhere(~np.isnan(targets).any((2, 3)))
            rows = np.random.default_rng(0).permutation(complete)[:ROWS].T
            begin = torch.from_numpy(used.file.times[steps[:, self.n_in]])
            x, y = self._features(lags, begin)[*rows], targets[*rows]
            self.trees = [
                [Trees(random_state=0).fit(x, y[:, t, c]) for c in range(components)]
                for t in range(n_out)
            ]

    def _features(self, lags: Doubles, times: Tensor) -> Doubles:
        """Inputs of the trees ``[P, W, F]`` from lags ``[P, W, n_in, C]``."""
        pos = self.pos[: self.num].numpy()
        near = cKDTree(pos).query(pos, min(1 + NEIGHBOURS, len(pos)))[1][:, 1:]
        others = lags[:, :, -1][near].swapaxes(1, 2)
        phases = [
            low + share
            for low, _, share in (phases_of(times, cycle) for cycle in self.cycles)
        ]
        now = torch.stack(phases, dim=-1)[None].numpy() + 0 * lags[..., -1, :1]
        mean = self.table[: self.num, :1].numpy() + 0 * lags[:, :, -1]
        parts = (
            part.reshape(*lags.shape[:2], -1) for part in (lags, others, now, mean)
        )
        return np.concatenate([*parts], axis=2)

    def predictors(self) -> dict[str, Predictor]:
        """Return each reference by its name, for batches with raw inputs ``given``."""
        names = [*self.weights, *["boosting"] * bool(self.trees)]
        return {name: partial(self._predicted, name) for name in names}

    def _predicted(self, name: str, batch: Batch) -> Tensor:
        rows = batch.point.cpu().numpy()
        expected = self._expected(rows, batch)
        raw = batch.given[..., : expected.shape[-1]].cpu().double().numpy()
        lags = _filled(raw - expected[:, : self.n_in])
        if name == "boosting":
            window, times = batch.batch.cpu().numpy(), window_times(batch)
            windows = np.zeros((self.num, len(times), *lags.shape[1:]))
            windows[rows, window] = lags
            x = self._features(windows, times[:, self.n_in])[rows, window]
            steps = [[tree.predict(x) for tree in trees] for trees in self.trees]
            ahead = np.array(steps).transpose(2, 0, 1)
        elif len(weights := self.weights[name]) == 1:
            ahead = np.einsum("nic,tic->ntc", lags, weights[0])
        else:
            ahead = np.einsum("nic,ntic->ntc", lags, weights[rows])
        return torch.from_numpy(expected[:, self.n_in :] + ahead).to(batch.y)

    def at_queries(self, batch: Batch, field: Tensor) -> Tensor:
        """Extend a prediction ``[n, n_out, C]`` at the observed points of a window to
        its other points: ``[n + m, n_out, C]``, as ``query_y``.

        Its difference from the climatology is interpolated by simple kriging, or by a
        spline where that interpolates the training data as well.
        """
        rows, queries = np.split(batch.query_point.cpu().numpy(), [len(batch.pos)])
        if self.graph[0] != (key := (rows.tobytes(), queries.tobytes())):
            ends = self.pos[rows], self.pos[queries]
            if self.covariance is None:
                self.graph = key, spline_graph(*ends, self.domain.normalised)
            else:
                self.graph = key, kriging_graph(self.covariance, *ends)
        mean = 0 if self.covariance is None else self.covariance.expected
        observed, other = (
            torch.from_numpy(self._expected(at, batch)[:, self.n_in :]) + mean
            for at in (rows, queries)
        )
        anomalies = field.cpu().double() - observed
        return torch.cat(
            [field, (interpolate_along(anomalies, self.graph[1]) + other).to(field)]
        )

    def _expected(self, at: Indices, batch: Batch) -> Doubles:
        """The climatology at points of the windows ``[n, n_in + n_out, C]``."""
        means = at_times(self.table, self.cycles, window_times(batch).double()).numpy()
        window = batch.batch.cpu().numpy() if batch.num_graphs > 1 else 0
        return np.asarray(means[at, window])


def _filled(x: Doubles) -> Doubles:
    """Fill gaps of values ``[..., T, C]``: interpolated in time, else 0."""
    flat = torch.from_numpy(x).flatten(0, -3)
    return fill_in_time(flat).nan_to_num(0.0).numpy().reshape(x.shape)
