r"""Inputs unlike those of training, by the Mahalanobis distance of their statistics:
:math:`\sqrt{z^\top R^{-1} z / K}`, in standard deviations and with correlations.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile
from operator import sub
from typing import Any

import torch
from torch import Tensor

from nfsgeo.data.windows import WindowDataset, batches
from nfsgeo.forecast.transforms import Given, MissingValues
from nfsgeo.geometry import Graphs
from nfsgeo.geometry.search import Search

__all__ = ["TrainingInputs", "input_statistics", "unlike"]

POINTS, NEAREST = 512, (1, 5, 17, 65)  # most points, and how many a mean is of
# Training on one mesh shows no deviation of some statistics.
LEAST_STD, SHRINKAGE, QUANTILE, MARGIN = 0.1, 0.02, 0.99, 1.1
TEXT = "%(samples)d of %(of)d samples are unlike those of training; "
TEXT += "at worst, the %(statistic)s is %(off).3g standard deviations off"


@dataclass(frozen=True)
class TrainingInputs:
    """Statistics ``[K]`` of training windows, and the limit of the distance."""

    names: list[str]
    mean: Tensor
    std: Tensor
    inverse: Tensor  # of their correlations
    limit: float = 1.0

    @classmethod
    def fit(cls, names: list[str], values: Tensor, folds: int = 10) -> TrainingInputs:
        """From ``values [S, K]`` of windows in a row, parts of which set the limit."""
        mean, std = values.mean(0), values.std(0).clamp_min(LEAST_STD)
        z = (values - mean) / std
        r = (1 - SHRINKAGE) * z.T @ z / len(z) + SHRINKAGE * torch.eye(len(std))
        made = cls(names, mean, std, r.inverse())
        if not folds:
            return made
        fold = torch.arange(len(z)) * folds // len(z)
        parts = ((values[fold != k], values[fold == k]) for k in range(folds))
        far = [cls.fit(names, rest, 0).distance(own) for rest, own in parts]
        level = min(1.0, QUANTILE * (1 + 1 / len(z)))
        return replace(made, limit=MARGIN * float(torch.cat(far).quantile(level)))

    def distance(self, values: Tensor) -> Tensor:
        """Of samples with statistics ``[S, K]``, over the limit ``[S]``."""
        z = (values - self.mean) / self.std
        return ((z @ self.inverse) * z).mean(1).sqrt() / self.limit


def unlike(forecaster: Any, windows: WindowDataset) -> list[dict[str, Any]]:
    """Of a run that knows: a summary, also logged, and the distances of samples."""
    if (known := forecaster.trained_on) is None:
        return [{}, {}]
    values = input_statistics(forecaster, windows)[1]
    distance = known.distance(values)
    off = ((values[distance.argmax()] - known.mean) / known.std).abs()
    found = {"samples": int((distance > 1).sum()), "of": len(values)}
    worst = {"statistic": known.names[int(off.argmax())], "off": float(off.max())}
    if found["samples"]:
        logging.getLogger(__name__).warning(TEXT, found | worst)
    return [{"unlike": found | worst}, {"unlike": distance.numpy()}]


def input_statistics(
    forecaster: Any, windows: WindowDataset, gaps: float = 0.0
) -> tuple[list[str], Tensor]:
    """Names and values ``[S, K]``; of every other window with a share of ``gaps``."""
    task, mesh, rows, draw = forecaster.task, None, [], torch.Generator().manual_seed(0)
    before = [*takewhile(lambda t: not isinstance(t, MissingValues), forecaster.stack)]

    def connect(pos: Tensor, **_: Any) -> Graphs:
        graphs = Graphs(task.domain.normalise(pos, torch.float64), (len(pos),))
        return reduce(lambda made, transform: transform.connect(made), before, graphs)

    for number, batch in enumerate(batches(windows, 1, connect)):
        lost = torch.rand(batch.x.shape[:2], generator=draw) < gaps * (number % 2)
        batch.x[..., : len(task.components) * task.has_time][lost] = torch.nan
        pos, batch = batch.pos, batch.to(forecaster.device)
        if batch.mesh != mesh:
            order = torch.randperm(len(pos), generator=torch.Generator().manual_seed(0))
            mesh, some = batch.mesh, order[: min(POINTS, task.num_points)]
            near = Search(pos[some], pos[some], task.domain).nearest(NEAREST[-1])
            near = some[near.where(near >= 0, torch.arange(len(some))[:, None])]
        known = forecaster.known_ahead(batch).values()
        given = Given(batch.x.double(), batch.graphs, *known)
        x = reduce(lambda made, transform: transform.inputs(made), before, given).x
        rows.append(_of_sample(x.cpu(), pos, near, task))
    return [*rows[0]], torch.stack([torch.stack([*row.values()]) for row in rows])


def _of_sample(x: Tensor, pos: Tensor, near: Tensor, task: Any) -> dict[str, Tensor]:
    moving, found = task.components if task.has_time else (), dict[str, Tensor]()
    fields = dict(zip([*moving, *task.static], x[:, 0].T, strict=False))
    for name, u in zip(moving, x.movedim(-1, 0), strict=False):
        fields[f"last {name}"] = u[:, -1]
        fields[f"last change of {name}"] = u[:, -1] - u[:, -2:][:, 0]
        fields[f"change of {name}"] = u[:, -1] - u[:, 0]
    for name, u in fields.items():
        means = [u[near[:, :num]].nanmean(1) for num in NEAREST]
        for num, off in zip(NEAREST, map(sub, means, [*means[1:], 0]), strict=True):
            std = (off - off.nanmean()).square().nanmean().sqrt().nan_to_num()
            found[f"variation of {name} over {num} points"] = (std + 1e-4).log()
        found[f"mean of {name}"] = u.nanmean().nan_to_num()
        found[f"largest {name}"] = (u.nan_to_num().abs().max() + 1e-4).log()
    away = task.domain.distance(pos[near[:, 0]], pos[near[:, :17][:, -1]])
    found["spacing of points"] = away.clamp_min(1e-12).log().mean()
    found["share of gaps"] = x.isnan().double().mean()
    for k, u in enumerate(task.domain.normalise(pos, torch.float64).T):
        found |= {f"lowest {'xyz'[k]}": u.min(), f"highest {'xyz'[k]}": u.max()}
    return found
