"""Predictions that need no learning, as baselines for a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from scipy.interpolate import KroghInterpolator
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset

__all__ = ["baselines", "extrapolation", "persistence", "training_mean"]

Predictor = Callable[[Batch], Tensor]

# Polynomials in time through the last observed values, from the first degree on.
DEGREES = ("linear", "quadratic", "cubic")


def baselines(train: WindowDataset) -> dict[str, Predictor]:
    """Every baseline that applies to the problem, by its name in a summary.

    Persistence needs one observed time step, extrapolation by a polynomial one more
    than its degree.

    Args:
        train: Training windows; they have the sizes, and the mean is over them.
    """
    found: dict[str, Predictor] = {}
    components, num_out = train.file.components, train.n_out
    if train.n_in:
        found["persistence"] = lambda batch: persistence(
            batch.x[..., :components], num_out
        )
    for degree, name in enumerate(DEGREES[: max(0, train.n_in - 1)], start=1):
        found[f"{name}_extrapolation"] = partial(_extrapolated, components, degree)
    return found | {"mean": training_mean(train)}


def _extrapolated(components: int, degree: int, batch: Batch) -> Tensor:
    fields = batch.x[..., :components].split(batch.graphs.sizes)
    samples = zip(fields, batch.times.view(batch.num_graphs, -1), strict=True)
    return torch.cat([extrapolation(u, at, degree) for u, at in samples])


def persistence(u: Tensor, num_out: int) -> Tensor:
    """The last time step of ``u [N, n_in, C]``, repeated: ``[N, num_out, C]``."""
    return u[:, -1:].expand(-1, num_out, -1)


def extrapolation(u: Tensor, times: Tensor, degree: int) -> Tensor:
    """The polynomial in time through the last observed values, ``[N, n_out, C]``.

    Args:
        u: Fields at the observed time steps ``[N, n_in, C]``, more than ``degree``.
        times: Times of all time steps ``[n_in + n_out]``, which may be uneven.
        degree: Of the polynomial: 1 for linear extrapolation.
    """
    n_in, at = u.size(1), times.cpu().double().numpy()
    # In double precision: the weights of cubics are large and cancel.
    last = u[:, n_in - degree - 1 :].cpu().double().numpy()
    through = KroghInterpolator(at[n_in - degree - 1 : n_in], last, axis=1)
    return torch.from_numpy(through(at[n_in:])).to(u)


def training_mean(train: WindowDataset) -> Predictor:
    """The mean of the targets of the training samples ``train``.

    It is taken at each point and time step where all samples share one mesh, else at
    each time step over all points. Missing values do not count; where there are no
    others, it is the mean of each component.
    """
    sizes = {len(train[item].pos) for item in range(len(train))}
    shared = isinstance(train.mesh, Mesh) and len(sizes) == 1
    total, count = torch.zeros((), dtype=torch.float64), torch.zeros(())
    for item in range(len(train)):
        y = train[item].y.double()
        y = y if shared else y.nanmean(dim=0, keepdim=True)
        total = total + y.nan_to_num(0.0)
        count = count + (~y.isnan()).double()
    overall = total.sum((0, 1)) / count.sum((0, 1))
    mean = torch.where(count > 0, total / count, overall)

    def predict(batch: Batch) -> Tensor:
        if shared and len(batch.y) == batch.num_graphs * len(mean):
            return mean.to(batch.y).repeat(batch.num_graphs, 1, 1)
        return mean.mean(0, keepdim=True).to(batch.y).expand_as(batch.y)

    return predict
