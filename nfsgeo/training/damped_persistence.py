"""Damped persistence: the last anomaly times a learned factor."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["DampedPersistence"]

# Adam moves every weight by about the learning rate, and a factor has farther to go.
SPEED = 10.0


class DampedPersistence(nn.Module):
    r"""Damped persistence, to which the output of a network is added.

    .. math:: \bar u_c + \alpha_{tc} \, (u_c(x) - \bar u_c)

    where :math:`u` is the last observed time step, :math:`\bar u` the mean of the
    training fields and :math:`\alpha` a learned damping factor for each predicted time
    step :math:`t` and component :math:`c`. It is 1 before training, which is residual
    prediction; 0 is direct prediction. Noise in the last time step is multiplied by it.

    Args:
        n_out: Number of predicted time steps ``T``.
        components: ``C``.

    Shapes:
        ``last [M, 1, C]`` and ``mean [C]`` to ``[M, T, C]``.
    """

    def __init__(self, n_out: int, components: int) -> None:
        super().__init__()
        self.change = nn.Parameter(torch.zeros(n_out, components))

    @property
    def factor(self) -> Tensor:
        r""":math:`\alpha`, ``[T, C]``."""
        return 1 + SPEED * self.change

    def forward(self, last: Tensor, mean: Tensor) -> Tensor:
        """The damped last time step, in the units of the data."""
        return mean + self.factor.to(last) * (last - mean)

    def extra_repr(self) -> str:
        return "{}, {}".format(*self.change.shape)
