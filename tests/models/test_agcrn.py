"""The model agcrn, which holds for one mesh and learns a dense graph."""

from dataclasses import replace

import torch
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model

PROBLEM = Problem(Domain.unit(2), 1, 1, 3, 7, 20, None, True)


def sample(num_points: int = 20) -> tuple[Tensor, Tensor]:
    return torch.randn(num_points, 3, 1), torch.rand(num_points, 2)


def test_agcrn_knows_its_mesh(refuses):
    x, pos = sample()
    made, again = (build_model("agcrn", PROBLEM, {"width": 8}) for _ in range(2))
    first = made(x, pos)
    again.load_state_dict(made.state_dict())
    torch.testing.assert_close(again(x, pos), first)
    both = made(torch.cat([x, x]), torch.cat([pos, pos]), torch.arange(40) // 20)
    torch.testing.assert_close(both, torch.cat([first, first]))
    for other in (sample(), (x.flip(0), pos.flip(0)), sample(19), sample(40)):
        refuses("agcrn on another mesh.*20 points", again, *other)


def test_agcrn_foresees_its_memory(refuses):
    p = replace(PROBLEM, num_points=16384)
    refuses(r"16384 points.*need 8\.0 GiB.*max_gib = 4", build_model, "agcrn", p)
    with torch.device("meta"):
        build_model("agcrn", p, {"max_gib": 8})
