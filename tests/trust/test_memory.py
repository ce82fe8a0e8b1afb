"""Memory of long trainings."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model

STEPS, MESHES, POINTS = 10_000, 1000, 12
MEBIBYTE = 2**20


def resident() -> int:
    """Bytes of this process that are in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_memory_is_steady_over_ten_thousand_steps():
    """Each mesh serves ten steps; graphs of a fourth of the meshes are kept."""
    torch.manual_seed(0)
    problem = Problem(
        domain=Domain.unit(1),
        in_components=1,
        out_components=1,
        n_in=2,
        n_out=2,
        num_points=POINTS,
        grid_shape=None,
        has_time=True,
    )
    small = {"width": 4, "modes": 2, "time_modes": 1, "depth": 1, "grid": 8}
    model = build_model("nfs", problem, small)
    optimiser = torch.optim.Adam(model.parameters())
    sizes = []
    for step in range(STEPS):
        if step % (STEPS // MESHES) == 0:
            pos, x = torch.rand(POINTS, 1), torch.randn(POINTS, 2, 1)
        optimiser.zero_grad()
        loss = model(x, pos).square().mean()
        loss.backward()
        optimiser.step()
        if step % 1000 == 999:
            sizes.append(resident())
    # The first third fills the cache of graphs, and the allocator's pools.
    assert max(sizes[3:]) - sizes[2] < 8 * MEBIBYTE, sizes
