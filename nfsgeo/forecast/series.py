"""What is fitted to one long series before a network: climatology and forecast."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nfsgeo.nn.kriging import StationaryCovariance

__all__ = ["LinearForecast", "SeriesFit", "harmonics"]


def harmonics(times: Tensor, periods: tuple[float, ...]) -> Tensor:
    r"""The constant, and cosine and sine of each period: ``[..., 1 + 2 P]``.

    .. math:: (1, \cos 2\pi t / p_1, \sin 2\pi t / p_1, \cos 2\pi t / p_2, \dots)

    Args:
        times: any shape, float64.
        periods: in the unit of the times.
    """
    found = [torch.ones_like(times)]
    for period in periods:
        phase = 2 * torch.pi * (times / period).frac()
        found += [phase.cos(), phase.sin()]
    return torch.stack(found, dim=-1)


@dataclass(frozen=True)
class LinearForecast:
    r"""A linear map from the past of a point, and of all points, to its future.

    .. math:: \hat a_t(x) = \sum_k w_{tk} \, a_k(x) + v_{tk} \, \bar a_k

    of each component's anomalies :math:`a`, with their mean :math:`\bar a` over the
    observed points of the sample.

    Attributes:
        own: :math:`w`, ``[n_out, n_in, C]``.
        regional: :math:`v`, likewise.
        std: root mean square of what it leaves of the training targets, ``[C]``.
    """

    own: Tensor
    regional: Tensor
    std: Tensor


@dataclass(frozen=True)
class SeriesFit:
    """Climatology and linear forecast of a series.

    Attributes:
        pos: points of the file ``[S, d]``, in the normalised domain.
        periods: of the climatology, in the unit of the times; none for a mean.
        coefficients: of :func:`harmonics` at each point, ``[S, 1 + 2 P, C]``.
        std: standard deviation of the anomalies from the climatology, ``[C]``.
        linear: forecast of the anomalies.
        covariance: of the anomalies; None where a spline is as good.
        level: whether fields return to the climatology in the long run.
    """

    pos: Tensor
    periods: tuple[float, ...]
    coefficients: Tensor
    std: Tensor
    linear: LinearForecast
    covariance: StationaryCovariance | None
    level: bool

    @property
    def noisy(self) -> bool:
        """Whether a linear forecast leaves half of the anomalies or more."""
        return float((self.linear.std / self.std).mean()) > 0.5
