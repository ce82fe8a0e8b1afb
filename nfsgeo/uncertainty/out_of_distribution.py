r"""The distance of inputs from those of training.

It is the Mahalanobis distance of their statistics, :math:`\sqrt{z^\top R^{-1} z / K}`,
with differences :math:`z` in standard deviations and their correlations :math:`R`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.windows import WindowDataset, batches
from nfsgeo.forecast.forecaster import Forecaster
from nfsgeo.forecast.transforms import Categories, MissingValues
from nfsgeo.geometry import Graphs
from nfsgeo.geometry.search import Search

__all__ = ["InputStatistics", "TrainingInputs"]

# Number of points of a sample at most, and numbers of neighbours that means are over.
POINTS, NEAREST = 512, (1, 5, 17, 65)
# The scale of a mean over some points less that over the next number, and of the last.
SCALES = [f"within {num} neighbouring points" for num in NEAREST[1:]]
SCALES += [f"beyond {NEAREST[-1]} neighbouring points"]
# Some statistics never vary in training, such as the spacing of one mesh.
LEAST_STD, SHRINKAGE, QUANTILE, MARGIN = 0.1, 0.02, 0.99, 1.1
TEXT = "%(samples)d of %(total)d samples are unlike those of training, at up to "
TEXT += (
    "%(distance).3g times the limit (docs/how-far-to-trust.md). Expect larger errors; "
)
TEXT += "most unusual: %(statistic)s"
# Numbers of points are alike up to this factor.
ALIKE = 1.5
OTHER_MESHES = "samples have %s points, those of training %s; expect larger errors, "
OTHER_MESHES += "and error bands that may not hold (docs/mesh-invariance.md)"


@dataclass(frozen=True)
class TrainingInputs:
    """Statistics of the inputs of training windows, and the limit of the distance.

    Attributes:
        names: Names of the statistics.
        mean: Their mean over windows ``[K]``.
        std: Their standard deviation ``[K]``.
        inverse: Inverse of their correlations ``[K, K]``.
        limit: The distance above which a sample is unlike those of training.
        points: The smallest and the largest number of points of a sample, if samples
            have meshes of their own.
    """

    names: list[str]
    mean: Tensor
    std: Tensor
    inverse: Tensor
    limit: float = 1.0
    points: tuple[int, int] | None = None

    @classmethod
    def fit(cls, names: list[str], values: Tensor, folds: int = 10) -> TrainingInputs:
        """Fit the distance to windows that follow each other.

        Args:
            names: Names of the statistics.
            values: Their values ``[S, K]``.
            folds: Parts whose distances from the other parts set the limit; 0 for none.
        """
        mean, std = values.mean(0), values.std(0).clamp_min(LEAST_STD)
        z = (values - mean) / std
        r = (1 - SHRINKAGE) * z.T @ z / len(z) + SHRINKAGE * torch.eye(len(std))
        made = cls(names, mean, std, r.inverse())
        if not folds:
            return made
        fold = torch.arange(len(z)) * folds // len(z)
        parts = ((values[fold != k], values[fold == k]) for k in range(folds))
        far = [cls.fit(names, rest, 0).distance(left_out) for rest, left_out in parts]
        level = min(1.0, QUANTILE * (1 + 1 / len(z)))
        return replace(made, limit=MARGIN * float(torch.cat(far).quantile(level)))

    def distance(self, values: Tensor) -> Tensor:
        """Return the distance over the limit ``[S]`` of statistics ``[S, K]``."""
        z = (values - self.mean) / self.std
        return ((z @ self.inverse) * z).mean(1).sqrt() / self.limit


class InputStatistics:
    """Statistics of the inputs of a forecaster, collected batch by batch."""

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster, self.task = forecaster, forecaster.task
        self.before = forecaster.transforms.before(Categories, MissingValues)
        self.rows: list[dict[str, Tensor]] = []
        self.sizes: list[int] = []
        self.pos = torch.empty(0)

    @classmethod
    def of(
        cls, forecaster: Forecaster, windows: WindowDataset, gaps: float = 0.0
    ) -> Self:
        """Return statistics of all windows; half of them have gaps, half fewer points.

        Samples that share a mesh would not tell otherwise how much the statistics
        depend on the choice of points, such as which stations are held out.

        Args:
            forecaster: The model whose inputs they are.
            windows: The windows.
            gaps: The fraction of values, or of points, that is removed there.
        """
        task, draw = forecaster.task, torch.Generator().manual_seed(0)
        made = cls(forecaster)
        for number, batch in enumerate(batches(windows, 1, made.connect)):
            lost = torch.rand(batch.x.shape[:2], generator=draw) < gaps * (number % 2)
            batch.x[..., : len(task.components) * task.has_time][lost] = torch.nan
            order = torch.randperm(len(batch.x), generator=draw)
            thinned = gaps * (number // 2 % 2)  # independent of the gaps
            some = order[round(thinned * len(order)) :].sort().values
            made.add(batch.to(forecaster.device), some)
        return made

    def connect(self, pos: Tensor, numbers: Tensor | None = None, **_: Any) -> Graphs:
        """Return the graphs of one sample that the inputs need, without the model's.

        Args:
            pos: Positions ``[N, d]``.
            numbers: Numbers of the points in their file ``[N]``.
        """
        pos = self.task.domain.normalise(pos, torch.float64)
        return self.before.connect(Graphs(pos, (len(pos),), numbers=numbers))

    def add(self, batch: Batch, some: Tensor | None = None) -> None:
        """Add the samples of a batch with ``graphs``.

        Args:
            batch: The batch.
            some: Numbers of the points of a single sample that count; None for all.
        """
        *_, inputs = self.before.inputs(self.forecaster.inputs_of(batch))
        x, pos, sizes = inputs.x.cpu(), batch.pos.cpu(), batch.graphs.sizes
        self.sizes += sizes
        if some is not None:
            x, pos, sizes = x[some], pos[some], [len(some)]
        parts = zip(x.split(sizes), pos.split(sizes), strict=True)
        self.rows += [self._sample_statistics(*part) for part in parts]

    def table(self, names: list[str] | None = None) -> tuple[list[str], Tensor]:
        """Return the names of the statistics, and their values ``[S, K]``.

        Args:
            names: Those of training; None for all scales that its points resolve.
        """
        num = min(POINTS, self.task.num_points)
        coarse = tuple(SCALES[sum(n <= num for n in NEAREST[1:]) :])
        coarse = coarse if num <= NEAREST[-1] else ()
        names = names or [n for n in self.rows[0] if not n.endswith(coarse)]
        rows = [torch.stack([row[name] for name in names]) for row in self.rows]
        return names, torch.stack(rows)

    @property
    def points(self) -> tuple[int, int]:
        """Return the smallest and the largest number of points of a sample."""
        return min(self.sizes), max(self.sizes)

    def out_of_distribution(
        self, training: TrainingInputs
    ) -> tuple[dict[str, Any], NDArray[Any]]:
        """Compare the samples with those of training, and warn if any is unlike them.

        Args:
            training: Statistics of the training inputs.

        Returns:
            Numbers of samples that are unlike and in all, the largest distance, and the
            statistic that is furthest off in that sample; all distances ``[S]``.
        """
        distance = training.distance(values := self.table(training.names)[1])
        off = ((values[distance.argmax()] - training.mean) / training.std).abs()
        summary: dict[str, Any] = {
            "samples": int((distance > 1).sum()),
            "total": len(values),
            "distance": float(distance.max()),
            "statistic": training.names[int(off.argmax())],
            "z_score": float(off.max()),
        }
        logger = logging.getLogger(__name__)
        if summary["samples"]:
            logger.warning(TEXT, summary)
        if training.points is not None:
            (fewest, most), here = training.points, self.points
            if here[1] > ALIKE * most or here[0] < fewest / ALIKE:
                logger.warning(OTHER_MESHES, *map(_range, (here, training.points)))
        return summary, distance.numpy()

    def _sample_statistics(self, x: Tensor, pos: Tensor) -> dict[str, Tensor]:
        self._search(pos)
        task, statistics = self.task, dict[str, Tensor]()
        moving = task.components if task.has_time else ()
        fields = dict(zip([*moving, *task.static], x[:, 0].T, strict=False))
        for name, u in zip(moving, x.movedim(-1, 0), strict=False):
            fields[f"{name} at the last time step"] = u[:, -1]
            fields[f"change of {name} in the last step"] = u[:, -1] - u[:, -2:][:, 0]
            fields[f"change of {name} over all time steps"] = u[:, -1] - u[:, 0]
        # There is no column where all inputs are scalars.
        columns = [u[:, None] for u in fields.values()]
        values = torch.cat([x.new_empty(len(x), 0), *columns], dim=1)
        parts = values.nan_to_num(), (~values.isnan()).double()
        sums, nums = (self.means @ part.numpy() for part in parts)
        means = torch.from_numpy(np.where(nums > 0, sums, np.nan) / nums.clip(1e-9))
        means = means.view(len(NEAREST), len(means) // len(NEAREST), len(fields))
        off = torch.cat([means[:-1] - means[1:], means[-1:]])
        square = (off - off.nanmean(1, keepdim=True)).square().nanmean(1)
        for k, (name, u) in enumerate(fields.items()):
            stds = square[:, k].sqrt().nan_to_num()
            for scale, std in zip(SCALES, stds, strict=True):
                statistics[f"variation of {name} {scale}"] = (std + 1e-4).log()
            statistics[f"mean of {name}"] = u.nanmean().nan_to_num()
            statistics[f"largest {name}"] = (u.nan_to_num().abs().max() + 1e-4).log()
        statistics["spacing of points"] = self.spacing
        statistics["share of gaps"] = x.isnan().double().mean()
        return statistics | self.box

    def _search(self, pos: Tensor) -> None:
        """Find the neighbours among points, unless they are those of the last sample.

        ``means [4 P, n]`` takes the mean over the nearest of each of some points.
        """
        if torch.equal(pos, self.pos):
            return
        domain, self.pos = self.task.domain, pos
        order = torch.randperm(len(pos), generator=torch.Generator().manual_seed(0))
        # The distance does not depend on the order of the points.
        order = torch.from_numpy(np.lexsort(pos.T.numpy()))[order]
        some = order[: min(POINTS, self.task.num_points)]
        near = Search(pos[some], pos[some], domain).nearest(NEAREST[-1])
        near = some[near.where(near >= 0, torch.arange(len(some))[:, None])]
        columns = torch.cat([near[:, :num].ravel() for num in NEAREST])
        nums = np.repeat(NEAREST, len(some)).clip(max=near.size(1))
        rows = np.arange(len(nums)).repeat(nums)
        shape = len(nums), len(pos)
        self.means = csr_matrix(((1 / nums).repeat(nums), (rows, columns)), shape)
        away = domain.distance(pos[near[:, 0]], pos[near[:, :17][:, -1]])
        self.spacing = away.clamp_min(1e-12).log().mean()
        self.box: dict[str, Tensor] = {}
        for k, u in enumerate(domain.normalise(pos, torch.float64).T):
            self.box |= {f"lowest {'xyz'[k]}": u.min(), f"highest {'xyz'[k]}": u.max()}


def _range(ends: tuple[int, int]) -> str:
    return " to ".join(map(str, dict.fromkeys(ends)))
