"""Graphs made beforehand: the same predictions, and steps that compute alone."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nfsgeo.geometry import Domain, Graphs, equispaced_grid, radius_graph
from nfsgeo.models import MODELS, Model, Problem, build_model
from nfsgeo.nn.edge_messages import _EdgeSum, edge_sum_reference
from nfsgeo.nn.neighbour_sums import _NeighbourSum, neighbour_sum_reference

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
    info, shape = MODELS[name], (SIZE, SIZE)
    grid = None if info.points else shape
    problem = Problem(Domain.unit(2), 1, 1, 3, 4, SIZE**2, grid, True)
    # The pushforward trick tosses a coin on the host, where random numbers are.
    small = {"width": 32, "patch": 2, "levels": 1}
    small |= {"window": 2, "depth": 1, "pushforward": False}
    small = {k: v for k, v in small.items() if k in info.Settings.model_fields}
    nodes = equispaced_grid(problem.domain, shape)
    pos = (torch.rand(SIZE**2, 2) if info.points else nodes).repeat(SAMPLES, 1)
    batch = torch.arange(SAMPLES).repeat_interleave(SIZE**2)
    return build_model(name, problem, small), torch.randn(len(pos), 3, 1), pos, batch


def step(model: Model, x: Tensor, pos: Tensor, batch: Tensor, graphs: Graphs) -> None:
    target = x.new_zeros(len(x), 4, 1)
    if model.autoregressive:
        loss = model.training_loss(x, target, graphs, nn.functional.mse_loss)
    else:
        loss = nn.functional.mse_loss(model(x, pos, batch, graphs=graphs), target)
    loss.backward()


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_graphs_made_on_the_spot(name):
    """Making them changes neither the model nor the state of random numbers."""
    model, x, pos, batch = batch_for(name)
    model.eval()
    before = {k: v.nan_to_num().clone() for k, v in model.state_dict().items()}
    random = torch.get_rng_state()
    graphs = model.connect(pos, batch)
    assert torch.equal(torch.get_rng_state(), random)
    after = model.state_dict()
    assert all(torch.equal(v, after[k].nan_to_num()) for k, v in before.items())
    with torch.no_grad():
        assert torch.equal(model(x, pos, batch, graphs=graphs), model(x, pos, batch))
    with pytest.raises(ValueError, match="expected the 108"):
        model(x[:-1], pos, batch, graphs=graphs)


class NothingOnTheHost(TorchDispatchMode):
    """Fails where a tensor is made on the CPU, or one that is there is used."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for each in tree_leaves((args, kwargs, out)):
            if isinstance(each, Tensor):
                assert each.device.type == "meta", (func, each.shape)
        return out


@pytest.mark.parametrize("name", MODELS)
def test_a_warm_step_needs_no_search_and_nothing_of_the_host(name, monkeypatch):
    """The second part is shown on the meta device, as if all were on a GPU."""
    model, x, pos, batch = batch_for(name)
    graphs = model.connect(pos, batch)
    step(model, x, pos, batch, graphs)  # makes what is kept of the edges
    monkeypatch.setattr(radius_graph, "Search", None)
    with NoCopyToTheHost():
        step(model, x, pos, batch, graphs)
    # It has no autocast and no CSR products.
    monkeypatch.setattr(torch, "autocast", lambda *given, **more: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *given: False)
    monkeypatch.setattr(_NeighbourSum, "apply", neighbour_sum_reference)
    monkeypatch.setattr(_EdgeSum, "apply", edge_sum_reference)
    model.zero_grad()
    given = [each.to("meta") for each in (model, x, pos, batch, graphs)]
    with NothingOnTheHost():
        step(*given)
