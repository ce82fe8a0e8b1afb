"""Inputs that differ by orders of magnitude have their ranks beside them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from torch_geometric.data import Data

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms import (
    ModelInputs,
    Normalise,
    Ranks,
    TransformOptions,
    fitted,
)
from nfsgeo.geometry import Graphs


def window(static: torch.Tensor, n_in: int) -> Data:
    """Fields and static inputs ``[n, k]``, repeated over time."""
    x = static[:, None].expand(-1, max(1, n_in), -1)
    if n_in:
        x = torch.cat([torch.randn(len(static), n_in, 1), x], dim=-1)
    return Data(x=x, y=torch.randn(len(static), 1, 1), times=torch.arange(n_in + 1.0))


@pytest.mark.parametrize("n_in", [0, 2])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_graded_inputs_alone_have_ranks(n_in, offset):
    random = np.random.default_rng(0)
    statistics = Statistics(n_in, 1, False, {n_in > 0: "kind"})
    even = random.random(3000), random.normal(size=3000), random.exponential(size=3000)
    few, wide = random.integers(0, 3, 3000) ** 9, random.lognormal(0, 2, 3000)
    kind = np.where(even[0] < 0.01, 100, 0)
    columns = np.stack([kind, *even, few, offset + wide, np.ones(3000)], axis=1)
    for part in np.split(columns, 100):
        statistics.add(window(torch.from_numpy(part), n_in))
    made = Ranks.fit(statistics, TransformOptions())
    assert made is not None
    assert made.columns == (5 + (n_in > 0),)
    stack = fitted(statistics, TransformOptions(prediction="direct"))
    graphs = Graphs(torch.empty(0), ())
    given = ModelInputs(window(torch.from_numpy(columns), n_in).x, graphs)
    for each in stack[: 1 + stack.index(next(s for s in stack if type(s) is Ranks))]:
        given = each.inputs(given)
    (rank,) = given.features
    assert float(rank.mean()) == pytest.approx(0, abs=0.05)
    assert float(rank.std()) == pytest.approx(1, abs=0.05)
    expected = 3**0.5 * (2 * rankdata(wide) / 3000 - 1)
    np.testing.assert_allclose(rank[:, -1, 0], expected, atol=0.06)


@pytest.mark.parametrize("n_in", [0, 2])
def test_some_inputs_have_ranks_or_none_whatever_their_values(n_in):
    random = np.random.default_rng(0)
    even, wide, one = random.random(999), random.lognormal(0, 2, 999), np.ones(999)
    statistics = Statistics(n_in, 1, False, {})
    columns = np.stack([even, wide, wide, one], axis=1)
    statistics.add(window(torch.from_numpy(columns), n_in))
    made = Ranks.fit(statistics, TransformOptions(ranked={0: True, 1: False, 3: True}))
    assert made is not None
    assert made.columns == ((n_in > 0), 2 + (n_in > 0))  # a constant has none


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-5, 5))
def test_a_rank_increases_with_its_input(seed, shift):
    """Also beyond the training data; values that are shared have one rank."""
    random = np.random.default_rng(seed)
    knots = np.sort(np.round(random.lognormal(0, 2, 64), random.integers(0, 4)))
    ranks = Ranks(columns=[1], knots=[(knots + shift).tolist()])
    x = torch.tensor(np.sort(random.lognormal(0, 3, 50)) + shift)
    x = torch.cat([x, torch.tensor(knots + shift)]).sort()[0]
    graphs = Graphs(torch.empty(0), ())
    given = ModelInputs(torch.stack([-x, x], dim=-1)[:, None], graphs)
    (found,) = ranks.inputs(given).features
    assert bool((found.diff(dim=0) >= -1e-12).all())
    assert float(found.abs().max()) <= 3**0.5 + 1e-12


def test_what_is_not_known_at_a_query_stays_unknown():
    ranks = Ranks(columns=[0], knots=[torch.linspace(0, 1, 64).tolist()])
    queries = torch.tensor([[torch.nan], [0.5]])
    x, graphs = torch.rand(3, 1, 1), Graphs(torch.empty(0), ())
    (found,) = ranks.inputs(ModelInputs(x, graphs, query_x=queries)).query_features
    assert bool(found[0].isnan())
    assert float(found[1]) == pytest.approx(0)
    with_scale = Normalise(mean=[1.0], std=[2.0], out_mean=[0.0], out_std=[1.0])
    assert with_scale.inputs(ModelInputs(x, graphs)).query_x is None
