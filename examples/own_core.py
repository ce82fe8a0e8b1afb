"""NFS layers around a core of one's own.

The field lies on scattered points, other points in every sample. One layer carries it
to a regular grid, an ordinary convolutional network works there, a second layer
carries the result back. Learned is the heat equation: from the temperature now to the
temperature later. The data are made on the spot.

    python examples/own_core.py
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader

from nfsgeo.geometry import Domain, radius_for
from nfsgeo.geometry.transforms import (
    GRID_TO_POINT,
    POINT_TO_GRID,
    PointsAndGrid,
    graph_between,
)
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation

DOMAIN = Domain.unit(2)  # The unit torus.
SHAPE = (16, 16)
RADIUS = radius_for(math.prod(SHAPE), DOMAIN, c=2.0)
CHANNELS = 16
DIFFUSED = 0.004  # Diffusivity times time.


def heat_sample(random: torch.Generator) -> Data:
    """A random temperature ``x`` at 200 to 300 points; ``y``, what becomes of it."""
    num_points = int(torch.randint(200, 301, (1,), generator=random))
    pos = torch.rand(num_points, 2, generator=random)
    waves = torch.randint(-3, 4, (6, 2), generator=random).float()
    size, phase = torch.randn(2, 6, generator=random)
    decay = torch.exp(-DIFFUSED * (2 * math.pi * waves).square().sum(1))
    modes = size * torch.sin(2 * math.pi * pos @ waves.T + phase)
    return Data(pos=pos, x=modes.sum(1, keepdim=True), y=(modes @ decay)[:, None])


class HeatSolver(nn.Module):
    """To the grid, any network that maps ``[B, C, 16, 16]`` to the same, and back."""

    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.lift = nn.Linear(1, CHANNELS)
        self.to_grid = self._interpolation()
        self.core = core
        self.to_points = self._interpolation()
        self.project = nn.Linear(CHANNELS, 1)

    def forward(self, data: HeteroData) -> Tensor:
        """Temperatures later, ``[N, 1]``."""
        x = self.lift(data["point"].x).unsqueeze(1)  # [N, 1, C]: one time step
        graph = graph_between(data, POINT_TO_GRID)
        x = self.to_grid(x, data["point"].pos, graph)  # [B m, 1, C]
        x = x.squeeze(1).unflatten(0, (-1, *SHAPE)).movedim(-1, 1)  # [B, C, 16, 16]
        x = self.core(x)
        x = x.movedim(1, -1).flatten(0, 2).unsqueeze(1)  # [B m, 1, C]
        graph = graph_between(data, GRID_TO_POINT)
        x = self.to_points(x, data["grid"].pos, graph)  # [N, 1, C]
        return self.project(x.squeeze(1))

    @staticmethod
    def _interpolation() -> KernelInterpolation:
        network = EdgeNetwork(2, 0, 32, scale=RADIUS, absolute_position=False)
        return KernelInterpolation(ChannelKernel(CHANNELS, network, groups=4))


def convolutions() -> nn.Module:
    """A core that knows nothing of points: convolutions on the torus."""
    layers = []
    for _ in range(3):
        conv = nn.Conv2d(CHANNELS, CHANNELS, 5, padding=2, padding_mode="circular")
        layers += [conv, nn.GELU()]
    return nn.Sequential(*layers, nn.Conv2d(CHANNELS, CHANNELS, 1))


def error(model: nn.Module, batches: DataLoader) -> float:
    """Root mean square error of a model's temperatures."""
    with torch.no_grad():
        wrong = [model(data) - data["point"].y for data in batches]
    return float(torch.cat(wrong).square().mean().sqrt())


def main() -> None:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    transform = PointsAndGrid(DOMAIN, SHAPE, RADIUS, interpolation="linear")
    samples = [transform(heat_sample(random)) for _ in range(160)]
    train = DataLoader(samples[:128], batch_size=8, shuffle=True)
    test = DataLoader(samples[128:], batch_size=8)

    model = HeatSolver(convolutions())
    epochs = 12
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 5e-3, total_steps=epochs * len(train)
    )
    for _ in range(epochs):
        for data in train:
            optimiser.zero_grad()
            nn.functional.mse_loss(model(data), data["point"].y).backward()
            optimiser.step()
            schedule.step()

    before = [data["point"].x - data["point"].y for data in test]
    unchanged = float(torch.cat(before).square().mean().sqrt())
    print(f"error of the model  {error(model, test):.3f}")
    print(f"of no change at all {unchanged:.3f}")


if __name__ == "__main__":
    main()
