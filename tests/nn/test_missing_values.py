"""Missing values filled in: exact cases, and what is observed untouched."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.nn.missing_values import fill_in_space, fill_in_time, neighbour_graph

NAN = float("nan")


def spoiled(x: Tensor, share: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return x.masked_fill(torch.rand(x.shape, generator=generator) < share, NAN)


@given(
    seed=st.integers(0, 999),
    share=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    num=st.integers(1, 9),
    trend=st.sampled_from([None, 0.0, 0.7, 1.0]),
)
def test_filled_in_time_as_one_value_after_the_other(seed, share, num, trend):
    generator = torch.Generator().manual_seed(seed)
    x = spoiled(torch.randn(4, num, 2, generator=generator).double(), share, seed)
    filled = fill_in_time(x, None if trend is None else torch.full((2,), trend))
    for point, c in itertools.product(range(4), range(2)):
        row, found = x[point, :, c], filled[point, :, c]
        known = [t for t in range(num) if not row[t].isnan()]
        if not known:
            assert found.isnan().all()
            continue
        expected = torch.from_numpy(np.interp(range(num), known, row[known]))
        if len(known) > 1 and trend:
            a, b = known[-2:]
            for t in range(b + 1, num):
                steps = sum(trend**k for k in range(1, t - b + 1))
                expected[t] += steps * (row[b] - row[a]) / (b - a)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_what_is_observed_stays_bit_for_bit():
    x = torch.randn(30, 6, 2)
    graph = neighbour_graph(torch.rand(30, 2), Domain.unit(2))
    trend = torch.ones(2)
    assert torch.equal(fill_in_time(x, trend), x)
    assert torch.equal(fill_in_space(x, graph), x)
    gaps = spoiled(x, 0.4, 0)
    filled = fill_in_space(fill_in_time(gaps, trend), graph)
    there = ~gaps.isnan()
    assert torch.equal(filled[there], x[there]) and filled.isfinite().all()


def test_weights_are_renormalised_over_the_observed():
    pos, domain = torch.rand(40, 2), Domain.unit(2)
    graph = neighbour_graph(pos, domain)
    # Constants are exact whatever is missing, as long as a neighbour is not.
    x = spoiled(torch.full((40, 5, 1), 3.5), 0.5, 1)
    torch.testing.assert_close(fill_in_space(x, graph), torch.full((40, 5, 1), 3.5))
    x = spoiled(torch.randn(40, 3, 1), 0.4, 2)
    found = fill_in_space(x, graph)
    for point in x[:, 1, 0].isnan().nonzero()[:, 0].tolist():
        source, target = graph.edge_index
        ends = source[(target == point) & (source != point)]
        away = domain.displacement(pos[ends], pos[point].expand(len(ends), -1))
        weight = away.square().sum(1).reciprocal()
        there = ~x[ends, 1, 0].isnan()
        mean = (weight * x[ends, 1, 0])[there].sum() / weight[there].sum()
        torch.testing.assert_close(found[point, 1, 0], mean)


@pytest.mark.parametrize("num", [10, 1])
def test_where_no_neighbour_is_observed_the_mean_stands_in(num):
    graph = neighbour_graph(torch.rand(num, 2), Domain.unit(2))
    assert fill_in_space(torch.full((num, 2, 1), NAN), graph).eq(0).all()


def test_points_at_one_place_stand_in_for_each_other():
    pos, x = torch.rand(20, 2), torch.randn(20, 1, 1)
    pos[1], x[0] = pos[0], NAN
    filled = fill_in_space(x, neighbour_graph(pos, Domain.unit(2)))
    torch.testing.assert_close(filled[0], x[1], rtol=1e-4, atol=1e-4)
