"""References for one series at stations, such as a statistician would fit to it.

They know the climatology of each station, and how anomalies, the differences from it,
go on. At unobserved points, anomalies come from ordinary kriging.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.samples import read_sample
from nfsgeo.data.times import EPOCH
from nfsgeo.evaluation.baselines import Predictor
from nfsgeo.evaluation.ordinary_kriging import fitted_covariance, kriging_weights
from nfsgeo.geometry import Domain
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.training.run_data import RunData

__all__ = ["StationReferences", "climatology", "season"]

# Seconds of a cycle, and how many harmonics of it a climatology has.
CYCLES = {365.25 * 86400: 2, 86400.0: 4}
# Values that a climatology of a station's own needs, for each coefficient.
ENOUGH = 4
# Ridge over the mean square of the lags; windows that the regression of all stations
# counts for in that of one.
RIDGE, COMMON = 1e-3, 50.0
# Values of all windows that regressions are fitted to, at most, or thereabouts.
MOST_VALUES = 2**24
# Points that kriging is from, and fields that it is fitted to.
DONORS, FIELDS = 1500, 200
# Of gradient boosting: rows to fit, and neighbours whose last anomalies it sees.
ROWS, NEIGHBOURS = 100_000, 4
TINY = 1e-30


class StationReferences:
    """Predictions for one series that is split by time, at points that stay.

    - ``climatology``: the mean of the station; of dates also its cycle over the year,
      after two years of training, and over the day
    - ``anomaly_persistence``: the last anomaly stays
    - ``damped_anomaly``: it decays, by one factor for each lead time
    - ``ridge``, ``ridge_each``: regression on all observed anomalies of the station,
      one for all stations, or one for each that tends to that
    - ``boosting``: gradient boosted trees on these, those of neighbours and the season

    A station with hardly any values has the climatology of an unobserved point, which
    is linear in static inputs such as elevation, and the rest by ordinary kriging.

    Args:
        used: Data of the run, resolved.
        mesh: Where the series is observed, with the unobserved points of interest.
        n_out: Time steps to predict.
        boosting: Whether to fit the trees, where scikit-learn is installed.
    """

    def __init__(
        self, used: RunData, mesh: Mesh, n_out: int, *, boosting: bool = False
    ) -> None:
        file, steps, n_in = used.file, used.steps["train"], used.config.data.n_in or 0
        joined, self.num, self.n_in = mesh.with_queries_joined(), len(mesh), n_in
        pos = file.domain.wrap(torch.from_numpy(joined.pos))
        self.tree, domain = cKDTree(pos.numpy()), file.domain
        degrees = file.dataset[file.space[0]].attrs.get("standard_name") == "longitude"
        if degrees and domain.dim == 2:
            domain = Domain.sphere()
        self.donors = np.random.default_rng(0).permutation(self.num)[:DONORS]
        # From all points to those that others are interpolated from.
        self.distance = domain.distance(pos[:, None], pos[None, self.donors]).numpy()
        trend = np.ones((len(pos), 1))
        if joined.index is not None:
            static = file.read_static(0, joined.index).astype(np.float64)
            static = (static - static.mean(0)) / (static.std(0) + TINY)
            trend = np.concatenate([trend, static], axis=1)
        numbers, seen = np.arange(steps.start, steps.stop), replace(mesh, queries=None)
        u = read_sample(file, 0, seen, numbers, volumes=False).u.astype(np.float64)
        times = file.times[numbers]
        self.periods = _periods(times, file.time_unit)
        design = season(times, self.periods)
        own = climatology(design, u)
        enough = (~np.isnan(u)).sum(1).min(1) >= ENOUGH * design.shape[1]
        self.coefficients = own
        if len(pos) > self.num or not enough.all():
            found = self._everywhere(own, trend, enough)
            own = climatology(design, u, found[: self.num])
            self.coefficients = np.concatenate([own, found[self.num :]])
        self.anomalies = u - np.einsum("tk,pkc->ptc", design, own)
        # Points of the last window, and their weights at the others.
        self.known: tuple[Any, Doubles] = None, np.empty((0, 0))
        self.trees: list[list[Any]] = []
        self._fit(used, n_out, boosting)

    @cached_property
    def covariance(self) -> tuple[float, float]:
        """Length and nugget of the anomalies."""
        steps = self.anomalies.shape[1]
        some = np.linspace(0, steps - 1, min(FIELDS, steps)).astype(int)
        scaled = self.anomalies / (np.nanstd(self.anomalies, (0, 1)) + TINY)
        fields = scaled[self.donors][:, some].reshape(len(self.donors), -1)
        return fitted_covariance(self.distance[self.donors], fields)

    def _everywhere(self, own: Doubles, trend: Doubles, enough: Any) -> Doubles:
        """Coefficients at all points, from those of stations with enough values."""
        given = np.flatnonzero(enough[self.donors])
        given = given if len(given) else np.arange(len(self.donors))
        at, away = self.donors[given], self.distance[:, given]
        values = own.reshape(self.num, -1)[at]
        linear = np.linalg.lstsq(trend[at], values, rcond=None)[0]
        rest = values - trend[at] @ linear
        covariance = fitted_covariance(away[at], rest / (rest.std(0) + TINY))
        found = trend @ linear + kriging_weights(away[at], away, covariance) @ rest
        return found.reshape(len(trend), *own.shape[1:])

    def _fit(self, used: RunData, n_out: int, boosting: bool) -> None:
        """Fits regressions to the training windows, as close as they can be."""
        data, num = used.config.data, self.n_in + n_out
        points, _, components = self.anomalies.shape
        every = max(1, self.anomalies.size * num // MOST_VALUES)
        dense = used.config.changed(data=data.changed(window_stride=every))
        starts = RunData(dense, used.file).starts("train", num)
        numbers = starts[:, None] + data.time_stride * np.arange(num)
        windows = self.anomalies[:, numbers - used.steps["train"].start]
        lags, targets = _filled(windows[:, :, : self.n_in]), windows[:, :, self.n_in :]
        last = np.zeros((1, n_out, self.n_in, components))
        last[:, :, -1] = 1
        damped, ridge, each = last.copy(), last.copy(), last.repeat(points, axis=0)
        one = np.eye(self.n_in)
        for t, c in np.ndindex(n_out, components):
            x, y = lags[..., c], targets[:, :, t, c]
            there = (~np.isnan(y)).astype(float)
            gram = np.einsum("pwi,pw,pwj->pij", x, there, x, optimize=True)
            right = np.einsum("pwi,pw->pi", x, np.nan_to_num(y), optimize=True)
            whole, mean = gram.sum(0), np.trace(gram.sum(0)) / self.n_in + TINY
            damped[0, t, -1, c] = right[:, -1].sum() / (whole[-1, -1] + TINY)
            common = np.linalg.solve(whole + RIDGE * mean * one, right.sum(0))
            pull = COMMON * mean / max(1.0, there.sum())
            own = (right + pull * common)[..., None]
            ridge[0, t, :, c] = common
            each[:, t, :, c] = np.linalg.solve(gram + pull * one, own)[..., 0]
        self.weights = {"climatology": 0 * last, "anomaly_persistence": last}
        self.weights |= {"damped_anomaly": damped, "ridge": ridge, "ridge_each": each}
        if boosting and find_spec("sklearn"):
            from sklearn.ensemble import HistGradientBoostingRegressor as Trees

            there = ~np.isnan(targets).any((2, 3))
            some = np.random.default_rng(0).permutation(np.argwhere(there))[:ROWS].T
            seen = self._features(lags, used.file.times[numbers[:, self.n_in]])
            x, y = seen[*some], targets[*some]
            self.trees = [
                [Trees(random_state=0).fit(x, y[:, t, c]) for c in range(components)]
                for t in range(n_out)
            ]

    def _features(self, lags: Doubles, times: Doubles) -> Doubles:
        """What trees see of windows: ``[P, W, F]`` of lags ``[P, W, n_in, C]``."""
        near = np.argsort(self.distance[: self.num], axis=1)[:, 1 : 1 + NEIGHBOURS]
        others = lags[:, :, -1][self.donors[near]].swapaxes(1, 2)
        now, mean = season(times, self.periods)[None], self.coefficients[: self.num, :1]
        each = (lags, others, now + 0 * lags[..., -1, :1], mean + 0 * lags[:, :, -1])
        return np.concatenate([of.reshape(*lags.shape[:2], -1) for of in each], axis=2)

    def predictors(self) -> dict[str, Predictor]:
        """Each reference by its name, from a batch with raw inputs ``given``."""
        names = [*self.weights, *(["boosting"] if self.trees else [])]
        return {name: partial(self._predicted, name) for name in names}

    def _predicted(self, name: str, batch: Batch) -> Tensor:
        rows, expected = self._rows(batch.pos), self._expected(batch.pos, batch)
        given = batch.given[..., : expected.shape[-1]].cpu().double().numpy()
        lags = _filled(given - expected[:, : self.n_in])
        if name == "boosting":
            window, times = batch.batch.cpu().numpy(), self._times(batch)
            windows = np.zeros((self.num, len(times), *lags.shape[1:]))
            windows[rows, window] = lags
            seen = self._features(windows, times[:, self.n_in])[rows, window]
            each = [[tree.predict(seen) for tree in of] for of in self.trees]
            ahead = np.array(each).transpose(2, 0, 1)
        elif len(weights := self.weights[name]) == 1:
            ahead = np.einsum("nic,tic->ntc", lags, weights[0])
        else:
            ahead = np.einsum("nic,ntic->ntc", lags, weights[rows])
        return torch.from_numpy(expected[:, self.n_in :] + ahead).to(batch.y)

    def at_queries(self, batch: Batch, field: Tensor) -> Tensor:
        """A prediction at the observed points of one window, and at its other points.

        Its difference from the climatology is interpolated by ordinary kriging.

        Args:
            batch: One window.
            field: ``[n, n_out, C]``.

        Returns:
            ``[n + m, n_out, C]``, as ``query_y`` of the window.
        """
        num, others = len(batch.pos), batch.query_pos[len(batch.pos) :]
        rows, queries = self._rows(batch.pos), self._rows(others)
        index = np.full(self.num, -1)
        index[rows] = np.arange(num)
        given = np.flatnonzero(index[self.donors] >= 0)
        at, key = self.donors[given], (rows.tobytes(), queries.tobytes())
        if self.known[0] != key:
            between, away = (
                self.distance[at][:, given],
                self.distance[queries][:, given],
            )
            self.known = key, kriging_weights(between, away, self.covariance)
        apart = field.cpu().double().numpy()
        apart = apart - self._expected(batch.pos, batch)[:, self.n_in :]
        found = np.tensordot(self.known[1], apart[index[at]], 1)
        found = found + self._expected(others, batch)[:, self.n_in :]
        return torch.cat([field, torch.from_numpy(found).to(field)])

    def _rows(self, pos: Tensor) -> Indices:
        """Numbers of points by their positions."""
        return np.asarray(self.tree.query(pos.cpu().numpy())[1])

    def _times(self, batch: Batch) -> Doubles:
        """Times of each window ``[W, n_in + n_out]``."""
        return np.asarray(batch.times.view(batch.num_graphs, -1).cpu().numpy())

    def _expected(self, pos: Tensor, batch: Batch) -> Doubles:
        """The climatology at points of the windows ``[n, n_in + n_out, C]``."""
        design, at = season(self._times(batch), self.periods), self._rows(pos)
        of = batch.batch.cpu().numpy() if len(design) > 1 else np.zeros(len(at), int)
        each = design[of], self.coefficients[at]
        return np.asarray(np.einsum("ntk,nkc->ntc", *each, optimize=True))


def season(times: Doubles, periods: Doubles) -> Doubles:
    """What a climatology is a combination of, ``[..., 1 + 2 K]``: 1, cosines, sines.

    Args:
        times: ``[...]``.
        periods: ``[K]``, in the unit of the times.
    """
    phase = 2 * np.pi * np.divide.outer(times, periods)
    one = np.ones((*times.shape, 1))
    return np.concatenate([one, np.cos(phase), np.sin(phase)], axis=-1)


def climatology(design: Doubles, u: Doubles, prior: Doubles | None = None) -> Doubles:
    """Coefficients of each station ``[P, K, C]`` by ridge regression.

    Args:
        design: From :func:`season` ``[T, K]``.
        u: Values ``[P, T, C]``, NaN where there is none.
        prior: Coefficients of stations without values ``[P, K, C]``, which count as
            one value at the others; None for those of all stations together.
    """
    there, values = (~np.isnan(u)).astype(float), np.nan_to_num(u)
    pairs = (design[:, :, None] * design[:, None]).reshape(len(design), -1)
    gram = np.einsum("ptc,tm->pcm", there, pairs, optimize=True)
    gram = gram.reshape(*gram.shape[:2], design.shape[1], -1)
    right = np.einsum("ptc,tk->pck", values, design, optimize=True)[..., None]
    one = np.eye(design.shape[1])
    if prior is None:
        whole = np.linalg.solve(gram.sum(0) + 1e-9 * one, right.sum(0))
    else:
        whole = prior.transpose(0, 2, 1)[..., None]
    found = np.linalg.solve(gram + one, right + whole)[..., 0]
    return np.asarray(found.transpose(0, 2, 1))


def _periods(times: Doubles, unit: str) -> Doubles:
    """Periods of a climatology, none where times are no dates."""
    step, span = float(np.median(np.diff(times))), float(times[-1] - times[0])
    span = 1.01 * (span + step)  # a year of 365 days is one
    cycles = {c: n for c, n in CYCLES.items() if unit == EPOCH and span > 2 * c}
    each = [c / h for c, n in cycles.items() for h in range(1, n + 1)]
    return np.array([period for period in each if period > 2 * step])


def _filled(x: Doubles) -> Doubles:
    """Values ``[..., T, C]`` without gaps: interpolated in time, else 0."""
    flat = torch.from_numpy(x).flatten(0, -3)
    return fill_in_time(flat).nan_to_num(0.0).numpy().reshape(x.shape)
