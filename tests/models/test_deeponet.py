"""DeepONets: inputs on a grid, results anywhere."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import Problem, build_model

NAMES = ("deeponet-u", "deeponet-v")
BOX = Domain((0.0, -1.0), (2.0, 3.0), (True, False))
PROBLEM = Problem(BOX, 1, 2, 3, 4, 96, (8, 12), True)


def make(name: str, problem: Problem = PROBLEM, **changes) -> torch.nn.Module:
    torch.manual_seed(0)
    settings = {"width": 8, "basis": 5, "hidden": 8, **changes}
    return build_model(name, problem, settings).eval()


def batch_of(samples: int, problem: Problem = PROBLEM) -> tuple[Tensor, Tensor, Tensor]:
    pos = equispaced_grid(problem.domain, problem.grid_shape).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(problem.num_points)
    return torch.randn(len(pos), problem.n_in, 1), pos, batch


@pytest.mark.parametrize("name", NAMES)
def test_is_a_sum_of_basis_functions(name):
    model = make(name)
    torch.nn.init.normal_(model.bias)
    x, pos, _ = batch_of(1)
    coefficients = []
    model.coefficients.register_forward_hook(lambda *a: coefficients.append(a[2][0]))
    out = model(x, pos)
    scaled = (pos - torch.tensor([0.0, -1.0])) / torch.tensor([2.0, 4.0])
    basis = model.trunk(scaled, torch.linspace(0, 1, 4))
    for i, b in enumerate(coefficients[0].view(2, 5)):
        expected = (basis * b).sum(-1) + model.bias[i]
        torch.testing.assert_close(out[..., i], expected)


@pytest.mark.parametrize("name", NAMES)
def test_queries_at_any_point(name):
    model = make(name)
    x, pos, batch = batch_of(3)
    at_nodes = model(x, pos, batch)
    # The last three lie on nodes 5, 6 and 7.
    queries = torch.cat([torch.rand(6, 2), pos[5:8]])
    samples = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2])
    out = model(x, pos, batch, query_pos=queries, query_batch=samples)
    one = model(x[:96], pos[:96], query_pos=queries)
    for found, expected in (
        (out[6:], at_nodes[2 * 96 + 5 : 2 * 96 + 8]),
        (one[6:], at_nodes[5:8]),
        (one[:2], out[:2]),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_periodic_branch_does_not_see_where_it_starts():
    """But for the coordinates among its inputs."""
    problem = replace(PROBLEM, domain=Domain.unit(2), num_points=64, grid_shape=(8, 8))
    model = make("deeponet-u", problem, levels=1)
    x, pos, _ = batch_of(1, problem)
    moved = x.view(8, 8, 3, 1).roll((2, -4), (0, 1)).view_as(x)
    with torch.no_grad():
        assert not torch.allclose(model(moved, pos), model(x, pos), atol=1e-5)
        model.branch.top[0].weight[:, -2:] = 0
        torch.testing.assert_close(model(moved, pos), model(x, pos))
