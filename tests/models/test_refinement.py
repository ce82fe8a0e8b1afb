"""Whole networks as points and grid are refined, and moved around the torus."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import Problem, build_model

# Features at points see the local spacing, which is even on a grid alone.
CASES = [
    ("nfs", 2, "moved", {}),
    ("fno-spline", 2, "jittered", {}),
    ("nfs", 1, "jittered", {"kernel": "none"}),
]


def field(pos: Tensor) -> Tensor:
    turns = 2 * math.pi * pos
    return turns[:, 0].sin() * turns[:, -1].cos() + (2 * turns[:, -1]).sin()


def predicted(case: tuple, num: int, shift: Tensor | float = 0.0) -> Tensor:
    """At fixed query points, from as many nodes as points on every axis.

    Without positions as inputs, which jump where the torus is cut.
    """
    name, dim, points, chosen = case
    domain, random = Domain.unit(dim), torch.Generator().manual_seed(num)
    problem = Problem(domain, 1, 1, 1, 3, num**dim, None, True)
    torch.manual_seed(0)
    queries = torch.rand(50, dim, dtype=torch.float64)
    sizes = {"modes": 3, "depth": 2, "width": 8, "grid": num}
    model = build_model(name, problem, {**sizes, **chosen}).double().eval()
    torch.nn.init.zeros_(model.lift.space.weight[:, -dim:])
    if model.path is not None:
        torch.nn.init.zeros_(model.path.encoder[0].weight[:, 2:])
    pos = equispaced_grid(domain, (num,) * dim, torch.float64)
    jitter = torch.rand(pos.shape, generator=random, dtype=torch.float64) - 0.5
    pos = pos + (0.3 if points == "moved" else 0.6 * jitter) / num
    x = field(pos)[:, None, None]
    with torch.no_grad():
        return model(
            x, domain.wrap(pos + shift), query_pos=domain.wrap(queries + shift)
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_fall_with_the_order_of_the_splines(case):
    coarse, fine, finest = (predicted(case, num) for num in (12, 24, 48))
    errors = [(found - finest).norm() / finest.norm() for found in (coarse, fine)]
    assert errors[1] < 6e-3
    assert math.log2(errors[0] / errors[1]) > 2.5


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=5, deadline=None)
@given(shift=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_no_place_of_the_torus_is_its_seam(case, shift):
    """Up to the error of the interpolation, for grids that do not move."""
    moved = predicted(case, 24, torch.tensor(shift[: case[1]]))
    plain = predicted(case, 24)
    assert (moved - plain).norm() / plain.norm() < 1.5e-2
