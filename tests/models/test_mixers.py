"""The models fno and nfs."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import Problem, build_model

SMALL = {"width": 8, "modes": 3, "hidden": 8}


def problem(dim: int = 2, **changes) -> Problem:
    return replace(Problem(Domain.unit(dim), 1, 1, 3, 4, 60, None, True), **changes)


def test_interpolation_commutes_with_translations_by_the_grid():
    """Up to the lift, which sees positions: without them, so does the network."""
    p = problem()
    settings = {**SMALL, "grid": 8, "absolute_position": False, "norm": "channel"}
    model = build_model("nfs", p, settings)
    torch.nn.init.zeros_(model.lift.space.weight[:, -2:])
    x, pos = torch.randn(60, 3, 1), torch.rand(60, 2)
    moved = p.domain.wrap(pos + torch.tensor([3 / 8, 5 / 8]))
    torch.testing.assert_close(model(x, moved), model(x, pos), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [64, 128])
def test_fno_changes_resolution(size):
    """A band-limited input gives the same field at every resolution."""
    p = problem(grid_shape=(32, 32), n_in=1)
    model = build_model("fno", p, {"width": 8, "modes": 4, "depth": 1}).double()
    # The lift's absolute position is no band-limited field.
    torch.nn.init.zeros_(model.lift.space.weight[:, -2:])

    def run(n: int) -> Tensor:
        pos = equispaced_grid(p.domain, (n, n), dtype=torch.float64)
        x, y = 2 * math.pi * pos.T
        out = model((x.sin() * (2 * y).cos())[:, None, None], pos)
        return out.view(n, n, -1)[:: n // 32, :: n // 32]

    torch.testing.assert_close(run(size), run(32))
