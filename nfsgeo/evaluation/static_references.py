"""Predictions without a network for problems without time, point by point."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.windows import WindowDataset

__all__ = ["StaticReferences"]

# Number of training points among which neighbours are searched, and to which the trees
# of all targets together are fitted. More change errors by a few percent.
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
        rows, random = list[tuple[Doubles, Doubles]](), np.random.default_rng(0)
        share = -(-POINTS // len(train))
        for item in range(len(train)):
            sample = train[item]
            some = random.permutation(len(sample.pos))[:share]
            features = self._features(sample.x[some], sample.pos[some])
            rows.append((features, sample.y[some].flatten(1).double().numpy()))
        x, y = (np.concatenate(part) for part in zip(*rows, strict=True))
        order = random.permutation(len(x))
        x, y = x[order], y[order]
        self.mean, spread = x.mean(0), x.std(0)
        # A constant input tells nothing, whatever its value in the test data is.
        varies = spread > ROUNDING * np.abs(self.mean)
        self.scale = np.divide(1, spread, out=0 * spread, where=varies)
        x = self._standardised(x)
        self.neighbours: list[tuple[cKDTree, Doubles]] = []
        self.trees: list[Any] = []
        for target in y.T:
            observed = np.flatnonzero(~np.isnan(target))
            some = observed[:POINTS]
            self.neighbours.append((cKDTree(x[some]), target[some]))
            if find_spec("sklearn"):
                some = observed[: max(1, POINTS // y.shape[1])]
                self.trees.append(_trees(x[some], target[some]))

    def predictors(self, *, queries: bool = False) -> dict[str, Any]:
        """Return each reference by its name, for batches with ``x`` and ``pos``.

        At the ``queries`` of a batch of one sample, inputs are taken to be those of the
        nearest observed point.
        """
        names = ["nearest_neighbours", *["boosted_trees"] * bool(self.trees)]
        return {
            name: partial(self._predict_batch, name, queries=queries) for name in names
        }

    def _predict_batch(self, name: str, batch: Batch, *, queries: bool) -> Tensor:
        x, pos = batch.x.cpu(), batch.pos.cpu()
        if queries:
            near = cKDTree(self._places(pos)).query(self._places(batch.query_pos.cpu()))
            x, pos = x[torch.from_numpy(near[1])], batch.query_pos.cpu()
        return self._predicted(name, x, pos).to(batch.y)

    def _predicted(self, name: str, x: Tensor, pos: Tensor) -> Tensor:
        inputs = self._standardised(self._features(x, pos))
        # A component without any value in the training data stays NaN.
        values = np.full((len(inputs), len(self.neighbours)), np.nan)
        for column, (tree, targets) in enumerate(self.neighbours):
            num = min(NEIGHBOURS, len(targets))
            if name == "nearest_neighbours" and num:
                near = tree.query(inputs, range(1, num + 1), eps=SLACK)[1]
                values[:, column] = targets[near].mean(1)
            elif name == "boosted_trees" and self.trees[column] is not None:
                values[:, column] = self.trees[column].predict(inputs)
        return torch.from_numpy(values).unflatten(1, self.shape)

    def _features(self, x: Tensor, pos: Tensor) -> Doubles:
        """Return inputs ``x [n, 1, F]`` and places in one row per point."""
        return torch.cat([x[:, -1].double(), self._places(pos)], dim=1).numpy()

    def _places(self, pos: Tensor) -> Tensor:
        """Return coordinates in which a periodic axis is a circle."""
        places, box = self.domain.normalise(pos, torch.float64), self.domain.normalised
        if self.domain.curved:
            return places
        columns = list[Tensor]()
        for axis, place in enumerate(places.T):
            angle = 2 * torch.pi * place / box.lengths[axis]
            circle = [angle.cos(), angle.sin()]
            columns += circle if box.periodic[axis] else [place]
        return torch.stack(columns, dim=1)

    def _standardised(self, x: Doubles) -> Doubles:
        return np.asarray((x - self.mean) * self.scale)


def _trees(x: Doubles, y: Doubles) -> Any:
    """Fit gradient boosted trees; None to fewer than two points."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return (
        HistGradientBoostingRegressor(random_state=0).fit(x, y) if len(y) > 1 else None
    )
