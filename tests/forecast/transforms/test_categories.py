"""Categories are indicators of their values, whatever numbers these have."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from nfsgeo.errors import UserError
from nfsgeo.forecast import Statistics
from nfsgeo.forecast.transforms import (
    Categories,
    Normalise,
    TransformOptions,
    described,
    fitted,
    restored,
)


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.integers(-9, 900), min_size=1, max_size=6, unique=True),
    n_in=st.integers(0, 3),
    column=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_an_indicator_of_every_value(
    forecaster_of, network_inputs, values, n_in, column, seed
):
    """Between other static inputs, which are normalised; without noise."""
    random, steps = np.random.default_rng(seed), max(1, n_in)
    at = column + bool(n_in)
    statistics = Statistics(n_in, 2, False, {at: "node_type"})
    windows = []
    for _ in range(4):
        kinds = torch.tensor(random.choice(values, 7))
        x = torch.randn(7, 1, bool(n_in) + 3).repeat(1, steps, 1)
        x[..., at] = kinds[:, None].float()
        windows.append(Data(x=x, y=torch.randn(7, 2, 1), pos=torch.rand(7, 2)))
        windows[-1].times = torch.arange(n_in + 2.0)
        statistics.add(windows[-1])
    seen = sorted(statistics.values[at])
    options = TransformOptions(training_noise=0.5, prediction="direct")
    stack = fitted(statistics, options)
    stack = [each for each in stack if type(each) in (Normalise, Categories)]
    names = ["a", "b"]
    names.insert(column, "node_type")
    module = forecaster_of(lambda x, graphs: x, *stack, static=names, n_in=n_in)
    inputs = bool(n_in) + 2 + len(seen)
    assert module.model.problem.in_components == inputs
    assert stack[0].observed[at] == 0
    for window in windows:
        found = network_inputs(module, window.x, window.pos)
        marks = found[:, :, -len(seen) :]
        assert found.shape == (7, steps, inputs) and (marks.sum(-1) == 1).all()
        read = torch.tensor(seen)[marks.argmax(-1)]
        assert torch.equal(read.float(), window.x[..., at])
        others = [n for n in range(window.x.size(-1)) if n != at]
        scaled = stack[0].fields.normalise(window.x)[..., others].float()
        torch.testing.assert_close(found[..., : -len(seen)], scaled)


@pytest.mark.parametrize("n_in", [0, 2])
def test_the_network_knows_which_inputs_are_node_types(forecaster_of, n_in):
    first = bool(n_in)
    kinds = Categories(
        columns=[first, first + 2],
        names=["zone", "node_type"],
        values=[[1, 2], [0, 4, 6]],
        node_type="node_type",
    )
    static = ("zone", "a", "node_type", "b")
    module = forecaster_of(lambda x, graphs: x, kinds, static=static, n_in=n_in)
    problem = module.model.problem
    assert problem.in_components == first + 7
    assert problem.node_types == tuple(range(first + 4, first + 7))
    assert len(problem.type_features) == 3 * problem.n_in
    again = restored(described([kinds]))[0]
    assert again.settings == kinds.settings


def test_a_value_that_training_has_not_seen(forecaster_of):
    kinds = Categories(columns=[1], names=["node_type"], values=[[0, 4, 6]])
    first = lambda x, graphs: x[..., :1].expand(-1, 2, -1)  # noqa: E731
    module = forecaster_of(first, kinds, static=("node_type",))
    x = torch.zeros(5, 1, 2)
    x[3:, 0, 1] = torch.tensor([5.0, 7.0])
    with pytest.raises(UserError) as caught:
        module(x, torch.rand(5, 2))
    message = str(caught.value)
    assert "node_type of 5, 7, which training" in message and "\n" not in message
    assert "one of 0, 4, 6" in message
    x[3:, 0, 1] = 4.0
    assert module(x, torch.rand(5, 2)).shape == (5, 2, 1)
