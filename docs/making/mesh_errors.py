"""Prints errors of the base interpolations on the demonstration's fields.

For docs/mesh-invariance.md: ``python docs/making/mesh_errors.py``.
"""

from __future__ import annotations

import numpy as np
import torch

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.data.meshes import Mesh, clustered, disjoint, random_subset
from nfsgeo.geometry import (
    Interpolation,
    bipartite_graph,
    equispaced_grid,
    radius_for,
)
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.training.source import demo_file

TIME_STEP, SAMPLES, SEEDS = 9, 6, 3
METHODS: tuple[Interpolation, ...] = ("mean", "linear", "quadratic", "spline")
MESHES = {
    "1024": (random_subset, 1024),
    "512": (random_subset, 512),
    "256": (random_subset, 256),
    "1024 clustered": (clustered, 1024),
}


def measured(
    file: Fields,
    fields: torch.Tensor,
    mesh: Mesh,
    others: Mesh,
    method: Interpolation,
) -> tuple[float, float]:
    """MAE at other points, and the amplification of independent noise at nodes."""
    pos = torch.from_numpy(mesh.pos)
    radius = radius_for(len(mesh), file.domain, 2.3)
    nodes = equispaced_grid(file.domain, (32, 32), dtype=torch.float64)
    down, up = (
        bipartite_graph(pos, target, radius, file.domain, interpolation=method)
        for target in (torch.from_numpy(others.pos), nodes)
    )
    found = interpolate_along(fields[mesh.index, None], down)[:, 0]
    squares = torch.zeros(len(nodes)).index_add(0, up.edge_index[1], up.base_weight**2)
    error = (found - fields[others.index]).abs().mean()
    return error.item(), squares.sqrt().mean().item()


def main() -> None:
    with nfsgeo.open(demo_file()) as file:
        step = slice(TIME_STEP, TIME_STEP + 1)
        values = [file.read(s, step) for s in file.split["valid"][:SAMPLES]]
        fields = torch.from_numpy(np.stack(values, axis=-1)[:, 0, 0]).double()
        print(f"standard deviation of the fields {fields.std():.3f}")
        for method in METHODS:
            cells = []
            for draw, size in MESHES.values():
                found = []
                for seed in range(SEEDS):
                    mesh = draw(file, size, seed)
                    others = disjoint(mesh, file, 1000, seed)
                    found.append(measured(file, fields, mesh, others, method))
                error, noise = np.mean(found, axis=0)
                cells.append(f"{error:.1e} ({noise:.2f})")
            print(" | ".join([method, *cells]))


if __name__ == "__main__":
    main()
