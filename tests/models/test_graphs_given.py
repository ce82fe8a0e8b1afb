"""Graphs made beforehand: the same predictions, and steps that compute alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nfsgeo.geometry import Domain, equispaced_grid, radius_graph
from nfsgeo.models import MODELS, Model, OwnLoss, Problem, build_model

SAMPLES, SIZE = 3, 6
# Operations whose result depends on values: on a GPU each waits for the device.
READS = ("_local_scalar_dense", "nonzero", "equal", "unique", "is_nonzero", "item")


class NoCopyToTheHost(TorchDispatchMode):
    """Fails where a value is read, or a tensor's size depends on one."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert not any(name.startswith(read) for read in READS), name
        return func(*args, **(kwargs or {}))


def batch_for(name: str) -> tuple[Model, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shape = (SIZE, SIZE)
    grid = None if MODELS[name].points else shape
    problem = Problem(Domain.unit(2), 1, 1, 3, 4, SIZE**2, grid, True)
    fields = MODELS[name].config.model_fields
    small = {"width": 32, "patch": 2, "sampling_decay": 10.0, "levels": 1}
    # The pushforward trick tosses a coin on the host, where random numbers are.
    small |= {"window": 2, "depth": 1, "pushforward": False}
    model = build_model(name, problem, {k: v for k, v in small.items() if k in fields})
    pos = (
        torch.rand(SIZE**2, 2)
        if grid is None
        else equispaced_grid(problem.domain, shape)
    )
    pos = pos.repeat(SAMPLES, 1)
    batch = torch.arange(SAMPLES).repeat_interleave(SIZE**2)
    return model, torch.randn(len(pos), 3, 1), pos, batch


def step(model: Model, x: Tensor, pos: Tensor, batch: Tensor, graphs) -> Tensor:
    target = torch.zeros(len(x), 4, 1)
    if isinstance(model, OwnLoss):
        return model.training_loss(x, target, graphs, nn.functional.mse_loss)
    return nn.functional.mse_loss(model(x, pos, batch, graphs=graphs), target)


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_graphs_made_on_the_spot(name):
    model, x, pos, batch = batch_for(name)
    model.eval()
    graphs = model.connect(pos, batch)
    with torch.no_grad():
        assert torch.equal(model(x, pos, batch, graphs=graphs), model(x, pos, batch))
    with pytest.raises(ValueError, match="expected the 108"):
        model(x[:-1], pos, batch, graphs=graphs)


@pytest.mark.parametrize("name", MODELS)
def test_a_warm_step_searches_nothing_and_copies_nothing_to_the_host(name, monkeypatch):
    model, x, pos, batch = batch_for(name)
    graphs = model.connect(pos, batch)
    step(model, x, pos, batch, graphs).backward()  # makes what is kept of the edges
    monkeypatch.setattr(radius_graph, "radius_edges", None)
    with NoCopyToTheHost():
        step(model, x, pos, batch, graphs).backward()


@pytest.mark.parametrize("name", MODELS)
def test_connecting_leaves_the_model_as_it_is(name):
    """A function of positions: no state, no random number."""
    model, x, pos, batch = batch_for(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    random = torch.get_rng_state()
    model.connect(pos, batch)
    assert torch.equal(torch.get_rng_state(), random)
    after = model.state_dict()
    assert all(
        torch.equal(before[k].nan_to_num(), after[k].nan_to_num()) for k in after
    )
