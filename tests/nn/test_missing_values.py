"""Missing values filled in: exact cases, and what is observed untouched."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.nn.missing_values import (
    fill_in_space,
    fill_in_time,
    neighbour_graph,
)

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
def test_filled_in_time_as_one_value_after_the_other(
    seed: int, share: float, num: int, trend: float | None
) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = spoiled(torch.randn(4, num, 2, generator=generator).double(), share, seed)
    filled = fill_in_time(x, None if trend is None else torch.full((2,), trend))
    for point in range(4):
        for c in range(2):
            row = x[point, :, c].tolist()
            known = [t for t, value in enumerate(row) if value == value]
            for t in range(num):
                found = float(filled[point, t, c])
                before = [k for k in known if k <= t]
                after = [k for k in known if k >= t]
                if not known:
                    assert found != found
                    continue
                if t in known:
                    expected = row[t]
                elif before and after:
                    a, b = before[-1], after[0]
                    expected = row[a] + (row[b] - row[a]) * (t - a) / (b - a)
                elif after:
                    expected = row[after[0]]
                else:
                    expected, last = row[before[-1]], before[-1]
                    if len(before) > 1 and trend:
                        slope = (row[last] - row[before[-2]]) / (last - before[-2])
                        expected += slope * sum(
                            trend**k for k in range(1, t - last + 1)
                        )
                assert abs(found - expected) < 1e-5


def test_what_is_observed_stays_bit_for_bit() -> None:
    x = torch.randn(30, 6, 2)
    graph = neighbour_graph(torch.rand(30, 2), Domain.unit(2))
    trend = torch.ones(2)
    assert torch.equal(fill_in_time(x, trend), x)
    assert torch.equal(fill_in_space(x, graph), x)
    gaps = spoiled(x, 0.4, 0)
    filled = fill_in_space(fill_in_time(gaps, trend), graph)
    there = ~gaps.isnan()
    assert torch.equal(filled[there], x[there]) and filled.isfinite().all()


def test_weights_are_renormalised_over_the_observed() -> None:
    torch.manual_seed(0)
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


def test_where_no_neighbour_is_observed_the_mean_stands_in() -> None:
    pos = torch.rand(10, 2)
    for graph in (
        neighbour_graph(pos, Domain.unit(2)),
        neighbour_graph(pos[:1], Domain.unit(2)),
    ):
        x = torch.full((graph.num_target, 2, 1), NAN)
        assert fill_in_space(x, graph).eq(0).all()


def test_points_at_one_place_stand_in_for_each_other() -> None:
    pos = torch.rand(20, 2)
    pos[1] = pos[0]
    x = torch.randn(20, 1, 1)
    known = x[1].clone()
    x[0] = NAN
    filled = fill_in_space(x, neighbour_graph(pos, Domain.unit(2)))
    torch.testing.assert_close(filled[0], known, rtol=1e-4, atol=1e-4)
