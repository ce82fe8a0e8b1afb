"""The model gino, and the library that it takes its layers from."""

import io
import sys

import torch
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model

SMALL = {"width": 6, "depth": 2, "modes": 2, "grid": 6, "radius": 0.4}
SMALL |= {"in_layers": [10, 8], "out_layers": [12], "norm": "instance_norm"}
SMALL |= {"mlp_factor": 1.0}


def problem(periodic: bool = True) -> Problem:
    domain = Domain((0.0,) * 2, (2.0,) * 2, (periodic,) * 2)
    return Problem(domain, 2, 3, 3, 4, 20, None, True)


def sample(num_points: int) -> tuple[Tensor, Tensor]:
    return torch.randn(num_points, 3, 2), 2 * torch.rand(num_points, 2)


def test_it_is_the_library_s():
    """Where that can do it: one open domain, no empty neighbourhood."""
    from neuralop.models import GINO

    model = build_model("gino", problem(periodic=False), SMALL)
    theirs = GINO(
        in_channels=6,
        out_channels=12,
        fno_in_channels=6,
        fno_norm="instance_norm",
        fno_channel_mlp_expansion=1.0,
        latent_feature_channels=2,
        fno_n_modes=(4, 4),
        fno_hidden_channels=6,
        fno_n_layers=2,
        gno_coord_dim=2,
        gno_use_open3d=False,
        gno_use_torch_scatter=False,
        # On the unit box.
        **{f"{way}_gno_radius": 0.2 for way in ("in", "out")},
        in_gno_channel_mlp_hidden_layers=[10, 8],
        out_gno_channel_mlp_hidden_layers=[12],
    )
    for name in ("gno_in", "lifting", "gno_out", "projection", "fno_blocks"):
        own = getattr(model, name.removeprefix("fno_"))
        getattr(theirs, name).load_state_dict(own.state_dict())
    x, pos = sample(300)
    grid = model.grid.view(1, 6, 6, 2)
    # The positions of the nodes are features of the grid.
    place = pos[None] / 2
    expected = theirs(place, grid, place[:, :50], x.flatten(1)[None], grid)
    found = model(x, pos, query_pos=pos[:50])
    torch.testing.assert_close(
        found, expected[0].unflatten(1, (4, 3)), rtol=1e-4, atol=1e-5
    )


def test_checkpoints_hold_weights_alone():
    model, again = (build_model("gino", problem(), SMALL) for _ in range(2))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again.load_state_dict(torch.load(file, weights_only=True))
    x, pos = sample(20)
    torch.testing.assert_close(again(x, pos), model(x, pos))


def test_without_the_library(monkeypatch, refuses):
    for module in ("neuralop", "neuralop.models"):
        monkeypatch.setitem(sys.modules, module, None)
    refuses(r"pip install 'nfsgeo\[gino\]'", build_model, "gino", problem(), SMALL)
