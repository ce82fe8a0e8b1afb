"""One interpolation layer instead of pooling, in a classifier of point clouds.

Where the usual classifier takes the largest of each feature over all points, this one
interpolates the features to a coarse grid, and an ordinary convolutional network reads
them off. The clouds are outlines of four figures, turned, scaled and noisy, of 40 to
120 points each. On figures as simple as these both ways are about as good.

    python examples/point_cloud_classifier.py
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_max_pool

from nfsgeo.geometry import Domain
from nfsgeo.geometry.transforms import POINT_TO_GRID, PointsAndGrid, graph_between
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation

CORNERS = (3, 4, 5, 60)  # Triangle, square, pentagon, and nearly a circle.
BOX = Domain((-1.5, -1.5), (1.5, 1.5), (False, False))
SHAPE, RADIUS, CHANNELS = (8, 8), 0.6, 16


def outline(random: torch.Generator) -> Data:
    """Points on the outline of a regular polygon; ``y`` tells which."""
    figure = int(torch.randint(len(CORNERS), (1,), generator=random))
    num_points = int(torch.randint(40, 121, (1,), generator=random))
    angle = torch.arange(CORNERS[figure] + 1) * (2 * math.pi / CORNERS[figure])
    turn, scale = torch.rand(2, generator=random)
    angle = angle + 2 * math.pi * turn
    corners = (0.7 + 0.4 * scale) * torch.stack([angle.cos(), angle.sin()], dim=1)
    along = torch.rand(num_points, generator=random) * CORNERS[figure]
    edge, part = along.long(), along.frac().unsqueeze(1)
    pos = (1 - part) * corners[edge] + part * corners[edge + 1]
    pos = pos + 0.03 * torch.randn(num_points, 2, generator=random)
    return Data(pos=pos.clamp(-1.5, 1.5), y=torch.tensor([figure]))


class PoolingClassifier(nn.Module):
    """Features of every point, the largest of each, classes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(2, 64), nn.GELU(), nn.Linear(64, 256))
        self.classes = nn.Sequential(
            nn.Linear(256, 64), nn.GELU(), nn.Linear(64, len(CORNERS))
        )

    def forward(self, data: HeteroData) -> Tensor:
        """Logits of the classes, ``[B, 4]``."""
        point = data["point"]
        return self.classes(global_max_pool(self.features(point.pos), point.batch))


class GridClassifier(nn.Module):
    """Features of every point, interpolated to a grid, convolutions, classes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(2, 32), nn.GELU(), nn.Linear(32, CHANNELS)
        )
        network = EdgeNetwork(2, 0, 32, scale=RADIUS)
        self.to_grid = KernelInterpolation(ChannelKernel(CHANNELS, network))
        self.classes = nn.Sequential(
            nn.Conv2d(CHANNELS, 32, 3, padding=1),
            nn.GELU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(32 * 16, len(CORNERS)),
        )

    def forward(self, data: HeteroData) -> Tensor:
        """Logits of the classes, ``[B, 4]``."""
        pos, graph = data["point"].pos, graph_between(data, POINT_TO_GRID)
        x = self.to_grid(self.features(pos).unsqueeze(1), pos, graph)
        return self.classes(x.squeeze(1).unflatten(0, (-1, *SHAPE)).movedim(-1, 1))


def train(model: nn.Module, batches: DataLoader, epochs: int) -> None:
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 5e-3, total_steps=epochs * len(batches)
    )
    for _ in range(epochs):
        for data in batches:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(data), data.y).backward()
            optimiser.step()
            schedule.step()


def accuracy(model: nn.Module, batches: DataLoader) -> float:
    with torch.no_grad():
        right = [model(data).argmax(1) == data.y for data in batches]
    return float(torch.cat(right).float().mean())


def main() -> None:
    random = torch.Generator().manual_seed(0)
    transform = PointsAndGrid(BOX, SHAPE, RADIUS)
    clouds = [transform(outline(random)) for _ in range(1200)]
    for name, kind in {"pooling": PoolingClassifier, "grid": GridClassifier}.items():
        torch.manual_seed(0)
        model = kind()
        train(model, DataLoader(clouds[:960], batch_size=32, shuffle=True), epochs=10)
        found = accuracy(model, DataLoader(clouds[960:], batch_size=32))
        print(f"{name:<8} {found:.1%} of the test clouds right")


if __name__ == "__main__":
    main()
