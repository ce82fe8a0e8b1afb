"""The model gino, and the library that it takes its layers from."""

from __future__ import annotations

import io
import sys

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model

SMALL = {"width": 6, "depth": 2, "modes": 2, "hidden": 10, "grid": 6, "radius": 0.4}


def problem(dim: int = 2, periodic: bool = True, **changes) -> Problem:
    values = {"n_in": 3, "n_out": 4, "has_time": True} | changes
    domain = Domain((0.0,) * dim, (2.0,) * dim, (periodic,) * dim)
    return Problem(domain, 2, 3, num_points=20, grid_shape=None, **values)


def sample(p: Problem, num_points: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(num_points, p.n_in, p.in_components)
    return x, 2 * torch.rand(num_points, p.domain.dim)


def test_it_is_the_library_s():
    """Where that can do it: one open domain, no empty neighbourhood."""
    from neuralop.models import GINO

    p = problem(periodic=False)
    model = build_model("gino", p, SMALL)
    theirs = GINO(
        in_channels=6,
        out_channels=12,
        gno_coord_dim=2,
        # On the unit box.
        in_gno_radius=0.2,
        out_gno_radius=0.2,
        fno_in_channels=6,
        fno_n_modes=(4, 4),
        fno_hidden_channels=6,
        fno_n_layers=2,
        in_gno_channel_mlp_hidden_layers=[10],
        out_gno_channel_mlp_hidden_layers=[10],
        gno_use_open3d=False,
        gno_use_torch_scatter=False,
    )
    for name in ("gno_in", "lifting", "gno_out", "projection"):
        part = getattr(theirs, name)
        part.load_state_dict(getattr(model, name).state_dict())
    theirs.fno_blocks.load_state_dict(model.blocks.state_dict())
    x, pos = sample(p, 300)
    grid = model.grid.view(1, 6, 6, 2)
    expected = theirs(pos[None] / 2, grid, pos[None, :50] / 2, x.flatten(1)[None])
    found = model(x, pos, query_pos=pos[:50])
    torch.testing.assert_close(
        found, expected[0].unflatten(1, (4, 3)), rtol=1e-4, atol=1e-5
    )


def test_checkpoints_hold_weights_alone():
    p = problem()
    model, (x, pos) = build_model("gino", p, SMALL), sample(p, 20)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = build_model("gino", p, SMALL)
    again.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(again(x, pos), model(x, pos))


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "neuralop", None)
    monkeypatch.setitem(sys.modules, "neuralop.models", None)
    with pytest.raises(UserError, match=r"pip install nfsgeo\[gino\]"):
        build_model("gino", problem(), SMALL)
