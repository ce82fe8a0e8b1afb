"""A recurrent graph cell on a data set of PyTorch Geometric's kind.

Sensors on a graph measure something that spreads along its edges and comes in bursts.
From twelve measurements a ``ChebConvGRU`` forecasts the next three, step by step. The
cell takes any ``edge_index``; graphs of a batch may differ.

    python examples/graph_forecast.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_undirected

from nfsgeo.nn import ChebConvGRU

SEEN, AHEAD = 12, 3


class Sensors(InMemoryDataset):
    """Samples ``x [n, 12]``, ``y [n, 3]`` on one random graph, made on the spot."""

    def __init__(self, num_samples: int, num_nodes: int = 40, seed: int = 0) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        pos = torch.rand(num_nodes, 2, generator=random)
        nearest = torch.cdist(pos, pos).topk(4, largest=False).indices[:, 1:]
        nodes = torch.arange(num_nodes).repeat_interleave(3)
        edge_index = to_undirected(torch.stack([nodes, nearest.flatten()]))
        walk = torch.zeros(num_nodes, num_nodes)
        walk[edge_index[1], edge_index[0]] = 1
        walk = walk / walk.sum(1, keepdim=True)
        samples = []
        for _ in range(num_samples):
            level = torch.randn(num_nodes, generator=random)
            speed, steps = torch.zeros(num_nodes), []
            for _ in range(SEEN + AHEAD):
                # A damped wave on the graph.
                speed = 0.95 * speed + 0.5 * (walk @ level - level)
                level = level + speed
                steps.append(level)
            series = torch.stack(steps, dim=1)
            samples.append(
                Data(x=series[:, :SEEN], y=series[:, SEEN:], edge_index=edge_index)
            )
        self.data, self.slices = self.collate(samples)


class Forecast(nn.Module):
    """Reads the observed time steps, then continues with its own predictions."""

    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.cell = ChebConvGRU(1, hidden, order=3)
        self.change = nn.Linear(hidden, 1)

    def forward(self, data: Batch) -> Tensor:
        """Records to come, ``[N, 3]``."""
        laplacian = self.cell.prepared(data.edge_index, data.num_nodes)
        h = data.x.new_zeros(data.num_nodes, self.cell.hidden_channels)
        for step in data.x.unbind(1):
            h = self.cell(step[:, None], h, laplacian)
        predicted = []
        last = data.x[:, -1:]
        for _ in range(AHEAD):
            last = last + self.change(h)
            predicted.append(last)
            h = self.cell(last, h, laplacian)
        return torch.cat(predicted, dim=1)


def main() -> None:
    torch.manual_seed(0)
    data = Sensors(400)
    train = DataLoader(data[:320], batch_size=16, shuffle=True)
    (test,) = DataLoader(data[320:], batch_size=80)
    model, epochs = Forecast(), 15
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 1e-2, total_steps=epochs * len(train)
    )
    for _ in range(epochs):
        for batch in train:
            optimiser.zero_grad()
            nn.functional.mse_loss(model(batch), batch.y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        error = (model(test) - test.y).abs().mean()
    persistence = (test.x[:, -1:] - test.y).abs().mean()
    print(f"error of the cell   {error:.3f}")
    print(f"of the last time step {persistence:.3f}")


if __name__ == "__main__":
    main()
