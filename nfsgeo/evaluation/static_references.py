"""Predictions without a network for problems without time, point by point."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.windows import WindowDataset

__all__ = ["StaticReferences"]

# Training points that neighbours are searched among, and that the trees of all targets
# together are fitted to. More of them cost time and change errors by a few percent.
POINTS = 50_000
NEIGHBOURS = 8
# Neighbours may be this much further away, relative to their distance, than the
# nearest: an exact search in nine dimensions takes several times as long.
SLACK = 1.0
# Standard deviation over mean below which an input counts as constant.
ROUNDING = 1e-9


class StaticReferences:
    """Predictions at a point from its inputs and its position, fitted to training data.

    - ``nearest_neighbours``: the mean of the targets of the 8 nearest training points,
      in the space of inputs and positions, each divided by its standard deviation
    - ``boosted_trees``: gradient boosted trees of inputs and positions, where
      scikit-learn is installed

    Neither sees other points of the sample, so that a model which is not better has
    learned nothing from the field as a whole. Of the training points 50,000 at most are
    used, drawn with a fixed seed, as many in each sample; of several components each
    has trees of its own, fitted to its share of the points. Missing targets do not
    count; missing inputs are refused when they are read.

    Args:
        train: Training samples, without input time steps and with equal time steps.
    """

    def __init__(self, train: WindowDataset) -> None:
        self.domain, self.shape = train.file.domain, (train.n_out, -1)
        found, random = list[tuple[Doubles, Doubles]](), np.random.default_rng(0)
        share = -(-POINTS // len(train))
        for item in range(len(train)):
            sample = train[item]
            some = random.permutation(len(sample.pos))[:share]
            features = self._features(sample.x[some], sample.pos[some])
            found.append((features, sample.y[some].flatten(1).double().numpy()))
        x, y = (np.concatenate(each) for each in zip(*found, strict=True))
        order = random.permutation(len(x))
        x, y = x[order], y[order]
        self.mean, spread = x.mean(0), x.std(0)
        # A constant input tells nothing, whatever its value in the test data is.
        varies = spread > ROUNDING * np.abs(self.mean)
        self.scale = np.divide(1, spread, out=0 * spread, where=varies)
        x = self._standardised(x)
        # Training points at which each target is known.
        rows = [np.flatnonzero(~np.isnan(column)) for column in y.T]
        parts = [(x[some[:POINTS]], y[some[:POINTS], c]) for c, some in enumerate(rows)]
        self.neighbours = [(cKDTree(seen), of) for seen, of in parts]
        self.trees: list[Any] = []
        if find_spec("sklearn"):
            from sklearn.ensemble import HistGradientBoostingRegressor as Trees

            most = max(1, POINTS // len(rows))
            for column, some in enumerate(each[:most] for each in rows):
                fitted = None
                if len(some) > 1:
                    fitted = Trees(random_state=0).fit(x[some], y[some, column])
                self.trees.append(fitted)

    def predictors(self) -> dict[str, Any]:
        """Each reference by its name, from a batch with inputs ``x`` and ``pos``."""
        names = ["nearest_neighbours", *["boosted_trees"] * bool(self.trees)]
        return {name: partial(self._of_batch, name) for name in names}

    def at_queries(self, name: str, sample: Data) -> Tensor:
        """The prediction ``[m, n_out, C]`` of a reference at the unobserved points of a
        sample. Their inputs are taken to be those of the nearest observed point.
        """
        pos, num = sample.query_pos, len(sample.pos)
        here, there = self._places(pos).numpy()[:num], self._places(pos).numpy()[num:]
        nearest = torch.from_numpy(cKDTree(here).query(there)[1])
        return self._predicted(name, sample.x[nearest], pos[num:]).to(sample.y)

    def _of_batch(self, name: str, batch: Batch) -> Tensor:
        return self._predicted(name, batch.x.cpu(), batch.pos.cpu()).to(batch.y)

    def _predicted(self, name: str, x: Tensor, pos: Tensor) -> Tensor:
        seen = self._standardised(self._features(x, pos))
        # A component without any value in the training data stays NaN.
        found = np.full((len(seen), len(self.neighbours)), np.nan)
        for column, (points, of) in enumerate(self.neighbours):
            if name == "nearest_neighbours" and (num := min(NEIGHBOURS, len(of))):
                near = points.query(seen, range(1, num + 1), eps=SLACK)[1]
                found[:, column] = of[near].mean(1)
            elif name == "boosted_trees" and self.trees[column] is not None:
                found[:, column] = self.trees[column].predict(seen)
        return torch.from_numpy(found).unflatten(1, self.shape)

    def _features(self, x: Tensor, pos: Tensor) -> Doubles:
        """Inputs ``x [n, 1, F]`` and places ``[n, d]`` in one row per point."""
        return torch.cat([x[:, -1].double(), self._places(pos)], dim=1).numpy()

    def _places(self, pos: Tensor) -> Tensor:
        """Coordinates in which close points are close: on a periodic axis a circle."""
        places = self.domain.normalise(pos, torch.float64)
        if self.domain.curved:
            return places
        found = list[Tensor]()
        box = self.domain.normalised
        for axis, place in enumerate(places.T):
            angle = 2 * torch.pi * place / box.lengths[axis]
            circle = [angle.cos(), angle.sin()]
            found += circle if box.periodic[axis] else [place]
        return torch.stack(found, dim=1)

    def _standardised(self, x: Doubles) -> Doubles:
        return np.asarray((x - self.mean) * self.scale)
