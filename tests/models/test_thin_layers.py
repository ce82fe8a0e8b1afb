"""Layers of a mesh that float32 cannot tell apart in a large domain."""

import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import NFS, Problem

FAR = Domain((-50.0, -50.0), (50.0, 50.0), (False, False))


def wall_mesh(first: float) -> torch.Tensor:
    """Columns of points above a wall at y = 0, from a first layer on."""
    layers = torch.cumsum(first * 1.3 ** torch.arange(60, dtype=torch.float64), 0)
    y = torch.cat([torch.zeros(1, dtype=torch.float64), layers])
    x = torch.linspace(-0.5, 0.5, 6, dtype=torch.float64)
    return torch.cartesian_prod(x, y[y < 40])


def test_graphs_are_those_of_double_precision():
    """Displacements in the thinnest layers are exact."""
    pos = wall_mesh(1e-6)
    problem = Problem(
        domain=FAR,
        in_components=1,
        out_components=1,
        n_in=1,
        n_out=1,
        num_points=len(pos),
        grid_shape=None,
        has_time=False,
    )
    graphs = NFS(problem, width=8, modes=2).connect(pos)
    near = graphs.edges["near"]
    source, target = pos[near.edge_index[0]], pos[near.edge_index[1]]
    thin = target[:, 1] < 1e-5
    # The normalised domain has length 1.
    displacement = near.displacement[thin].double() * 100
    torch.testing.assert_close(
        displacement, (target - source)[thin], rtol=1e-5, atol=1e-12
    )
    assert graphs.pos.dtype == graphs.latent.dtype == torch.float32
