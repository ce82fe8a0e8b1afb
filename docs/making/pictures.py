"""Draws the pictures of the site:  python docs/making/pictures.py"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nfsgeo.data.pde import Heat
from nfsgeo.geometry import (
    Domain,
    LatentCoordinates,
    bipartite_graph,
    equispaced_grid,
    radius_for,
)
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation, SpectralConv
from nfsgeo.report.style import COLOURS, styled

__all__ = ["draw"]

DOMAIN, SIZE = Domain.unit(2), 16


def draw(folder: Path) -> None:
    """Write every picture into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with styled():
        for make in (neighbourhood, latent, pipeline):
            torch.manual_seed(1)
            make().savefig(folder / f"{make.__name__}.png", dpi=160)


def neighbourhood() -> Figure:
    """The edges of two nodes, one of them at the seam."""
    points, grid = torch.rand(220, 2), equispaced_grid(DOMAIN, (8, 8))
    radius = radius_for(64, DOMAIN, 1.2)
    graph = bipartite_graph(points, grid, radius, DOMAIN)
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.scatter(*points.T, s=7, color=COLOURS["pale"])
    axes.scatter(*grid.T, s=14, marker="s", color=COLOURS["muted"])
    for node, colour in ((8 * 4 + 5, COLOURS["model"]), (8 * 2, COLOURS["second"])):
        for edge in (graph.edge_index[1] == node).nonzero().squeeze(1):
            source = grid[node] - graph.displacement[edge]
            axes.plot(*torch.stack([source, grid[node]]).T, color=colour, lw=0.8)
            axes.scatter(*source, s=9, color=colour)
        circle = torch.linspace(0, 2 * torch.pi, 90)
        ring = grid[node] + radius * torch.stack([circle.cos(), circle.sin()], dim=1)
        axes.plot(*ring.T, color=colour, lw=0.8, ls=":")
        axes.scatter(*grid[node], s=28, marker="s", color=colour)
    # What lies beyond the seam is the other side of the box.
    axes.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color=COLOURS["ink"], lw=0.6)
    axes.set(xlim=(-0.2, 1.05), ylim=(-0.2, 1.05), aspect="equal")
    axes.axis("off")
    return figure


def latent() -> Figure:
    """A mesh of ``heat`` and the lines of a grid, in both coordinates."""
    mesh = Heat().solution([np.random.default_rng(0)], 80, 1, torch.device("cpu")).pos
    domain, points = Heat.domain, torch.as_tensor(mesh[0])
    low, high = domain.lower[0], domain.upper[0]
    coordinates = LatentCoordinates.of(points, domain)
    equispaced = torch.linspace(low, high, 33).double()[:, None].expand(-1, 2)
    figure = Figure(figsize=(7.2, 3.7), layout="constrained")
    panels = figure.subplots(1, 2)
    places = {
        "domain": (points, coordinates.inverse(equispaced)),
        "latent coordinates": (coordinates(points), equispaced),
    }
    for axes, (title, (dots, lines)) in zip(panels, places.items(), strict=True):
        look = {"color": COLOURS["hairline"], "lw": 0.6, "zorder": 0}
        for x, y in lines:
            axes.axvline(x, **look)
            axes.axhline(y, **look)
        axes.scatter(*dots.T, s=2, color=COLOURS["model"])
        axes.set(title=title, aspect="equal", xlim=(low, high), ylim=(low, high))
        axes.set(xticks=[low, 0, high], yticks=[low, 0, high])
    return figure


def pipeline() -> Figure:
    """One field through the layers of an untrained solver."""
    points = torch.rand(500, 2)
    nodes = equispaced_grid(DOMAIN, (SIZE, SIZE))
    queries = equispaced_grid(DOMAIN, (48, 48))
    radius = radius_for(SIZE**2, DOMAIN, 2.3)
    up = bipartite_graph(points, nodes, radius, DOMAIN, interpolation="quadratic")
    down = bipartite_graph(nodes, queries, radius, DOMAIN, interpolation="quadratic")
    observed = field(points)
    with torch.no_grad():
        on_grid = layer(radius)(observed, points, up)
        mixed = low_frequencies(on_grid)
        result = layer(radius)(mixed, nodes, down)
    figure = Figure(figsize=(7.2, 2.1), layout="constrained")
    panels = figure.subplots(1, 4)
    look = {"cmap": "RdBu_r", "vmin": -2.2, "vmax": 2.2}
    panels[0].scatter(*points.T, c=observed.flatten(), s=5, **look)
    for axes, values in zip(panels[1:], (on_grid, mixed, result), strict=True):
        size = round(len(values) ** 0.5)
        image = values.view(size, size).T
        axes.imshow(image, origin="lower", extent=(0, 1, 0, 1), **look)
    titles = ("observed points", "on the grid", "Fourier layer", "at other points")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        axes.set(xlim=(0, 1), ylim=(0, 1))
    return figure


def field(pos: Tensor) -> Tensor:
    """A smooth periodic field with fine detail, ``[n, 1, 1]``."""
    x, y = (2 * torch.pi * pos).T
    values = torch.sin(x + y) + 0.7 * torch.cos(2 * y - x) + 0.5 * torch.sin(5 * x)
    return values[:, None, None]


def layer(radius: float) -> KernelInterpolation:
    """An interpolation whose learned kernel has not learned anything yet."""
    kernel = ChannelKernel(1, EdgeNetwork(2, 0, 4, scale=radius))
    torch.nn.init.zeros_(kernel.mix.weight)
    torch.nn.init.zeros_(kernel.mix.bias)
    return KernelInterpolation(kernel)


def low_frequencies(x: Tensor) -> Tensor:
    """A spectral convolution that keeps what it can represent."""
    conv = SpectralConv(1, 1, (4, 4))
    torch.nn.init.ones_(conv.weight[..., 0])
    torch.nn.init.zeros_(conv.weight[..., 1])
    return conv(x.view(1, 1, SIZE, SIZE)).view(-1, 1, 1)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
