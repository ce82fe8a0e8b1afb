"""A step of training, which most benchmarks time."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import mse_loss

from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.optimiser import make_optimiser


def step(
    network: nn.Module, predict: Callable[[], Tensor], target: Tensor
) -> Callable[[], float]:
    """Forwards, backwards, and Adam's update; gives the mean squared error before it.

    Args:
        network: What learns.
        predict: Its prediction.
        target: What that is compared with.
    """
    optimiser = make_optimiser(network.parameters(), OptimiserSection(lr=1e-3))

    def run() -> float:
        optimiser.zero_grad()
        loss = mse_loss(predict(), target)
        loss.backward()
        optimiser.step()
        return loss.item()

    return run
