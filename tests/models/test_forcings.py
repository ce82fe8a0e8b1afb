"""Forcings reach every model, each at the time step where it acts."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MODELS, Model, Problem, build_model

N_IN, N_OUT = 4, 6


def problem_of(n_in: int, n_out: int, forcings: int, static: int) -> Problem:
    sizes = 2 + static, 2, n_in, n_out, 64, (8, 8)
    return Problem(Domain.unit(2), *sizes, True, forcings)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 3), st.integers(0, 2))
def test_the_forcing_joins_the_fields_at_all_its_time_steps(
    n_in, n_out, forcings, static
):
    problem = problem_of(n_in, n_out, forcings, static)
    x = torch.randn(5, n_in, 2 + static)
    forcing = torch.randn(5, n_in + n_out, forcings)
    joined = problem.with_forcing(x, forcing) if forcings else x
    assert joined.numel() == 5 * problem.num_features
    fields, known, rest = joined.split([2, joined.size(-1) - 2 - static, static], -1)
    assert torch.equal(fields, x[..., :2]) and torch.equal(rest, x[..., 2:])
    for step in range(n_in + n_out if forcings else 0):
        first = forcings * (step // n_in)
        there = known[:, step % n_in, first : first + forcings]
        assert torch.equal(there, forcing[:, step])


def small(name: str, **changes: Any) -> tuple[Model, Problem]:
    chosen = {"width": 32, "depth": 1, "window": 3, "grid": 8, "patch": 2} | changes
    chosen |= {"time_patch": 1, "residual": False}
    fields, problem = MODELS[name].Settings.model_fields, problem_of(N_IN, N_OUT, 2, 1)
    chosen = {key: value for key, value in chosen.items() if key in fields}
    return build_model(name, problem, chosen).eval(), problem


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_depends_on_the_forcing_at_every_time_step(name):
    if name in ("gino", "neuralop-fno"):
        pytest.importorskip("neuralop")
    model, problem = small(name)
    pos, x = equispaced_grid(problem.domain, (8, 8)), torch.randn(64, N_IN, 3)
    forcing = torch.randn(64, N_IN + N_OUT, 2, requires_grad=True)
    result = model(x, pos, forcing=forcing)
    assert result.shape == (64, N_OUT, 2)
    result.square().sum().backward()
    reached = forcing.grad.abs().amax(dim=0)
    if name == "mppde":  # sees a window of three before the result
        assert (reached[0] == 0).all()
        reached = reached[1:]
    assert (reached > 0).all()


@pytest.mark.parametrize("name", ["gcgru", "dcrnn", "agcrn", "mppde"])
def test_time_steps_do_not_depend_on_later_forcings(name):
    """Of models that step through time; ``mppde`` by windows of three."""
    model, problem = small(name)
    pos, x = torch.rand(64, 2), torch.randn(64, N_IN, 3)
    forcing = torch.randn(64, N_IN + N_OUT, 2)
    graphs = model.connect(pos)
    first = model(x, pos, graphs=graphs, forcing=forcing)
    forcing[:, N_IN + 3] += 1
    later = model(x, pos, graphs=graphs, forcing=forcing)
    assert torch.equal(first[:, :3], later[:, :3])
    assert not torch.isclose(first[:, 3], later[:, 3]).all()


def test_windows_of_mppde_in_training_have_their_own_forcing():
    """Its loss is zero for sums of the forcing, and these in place of the network."""
    model, problem = small("mppde", pushforward=False)
    forcing = torch.randn(64, N_IN + N_OUT, 2)
    true = forcing.cumsum(1)

    def sums(u: Any, variables: Any, *_: Any) -> torch.Tensor:
        known = variables[:, -12:].unflatten(1, (6, 2))
        return known[:, 3:].cumsum(1) / (torch.arange(1, 4)[:, None] / 3)

    vars(model)["network"] = sums
    x = torch.cat([true[:, :N_IN], torch.zeros(64, N_IN, 1)], dim=-1)
    pos = torch.rand(64, 2)
    graphs = model.connect(pos)
    found = model(x, pos, graphs=graphs, forcing=forcing)
    torch.testing.assert_close(found, true[:, N_IN:])
    assert model.steps_beyond == 0
    for _ in range(8):
        loss = model.training_loss(x, true[:, N_IN:], graphs, torch.dist, forcing)
        assert loss < 1e-5
