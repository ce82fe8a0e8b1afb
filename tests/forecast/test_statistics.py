"""Statistics of one pass over windows against NumPy on all of them at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from nfsgeo.forecast import Statistics
from nfsgeo.forecast.statistics import Moments


@settings(max_examples=40, deadline=None)
@given(
    n_in=st.integers(0, 4),
    n_out=st.integers(1, 4),
    beyond=st.integers(0, 2),
    share=st.sampled_from([0.0, 0.3]),
    any_time=st.booleans(),
    seed=st.integers(0, 99),
)
def test_they_are_those_of_all_windows_at_once(
    n_in, n_out, beyond, share, any_time, seed
):
    random = np.random.default_rng(seed)
    steps, statistics = n_in + n_out + beyond, Statistics(n_in, n_out, any_time)
    xs, fields, changes, rates, known, longest = [], [], [], [], [], 0.0
    for num in (7, 12, 9):
        u = random.normal(1e4, [1.0, 1e-2], size=(num, steps, 2))
        u[random.random(u.shape) < share] = np.nan
        a, f = random.normal(size=(num, 1, 1)), random.normal(size=(num, steps, 3))
        times = random.uniform(0.5, 2, size=steps).cumsum()
        x = np.concatenate([u[:, :n_in], a.repeat(n_in, 1)], -1) if n_in else a
        window = Data(x=torch.tensor(x), y=torch.tensor(u[:, n_in:]))
        window.times, window.forcing = torch.tensor(times), torch.tensor(f)
        window.forcing = window.forcing if n_in else None
        if any_time:  # which sees as many time steps as it predicts
            window.y, window.times = window.y[:, :n_out], window.times[: n_in + n_out]
            window.forcing = None
        statistics.add(window)
        xs.append(x)
        fields.append(u[:, : n_in + window.y.size(1)])
        if n_in:
            lead = times - times[n_in - 1]
            change = u[:, n_in : n_in + n_out] - u[:, n_in - 1 : n_in]
            changes.append(change)
            rates.append(change / lead[n_in : n_in + n_out, None])
            last = n_in + window.y.size(1)
            longest = max(longest, lead[last - 1])
            time = np.broadcast_to(lead[:last, None], (num, last, 1))
            known.append(time if any_time else f)
    every = [(statistics.inputs, xs), (statistics.fields, fields)]
    if n_in:
        every += [(statistics.changes, changes), (statistics.forcings, known)]
    if n_in and any_time:
        every.append((statistics.rates, rates))
    for found, wanted in every:
        values = np.concatenate([each.reshape(-1, each.shape[-1]) for each in wanted])
        np.testing.assert_allclose(found.mean, np.nanmean(values, 0), rtol=1e-9)
        np.testing.assert_allclose(found.std, np.nanstd(values, 0), rtol=1e-6)
    assert statistics.longest_lead == pytest.approx(longest)
    assert len(statistics.trend) == (2 if n_in else 0)


def test_the_trend_is_the_least_squares_factor_between_changes():
    random, statistics = np.random.default_rng(0), Statistics(3, 3)
    pairs: list[np.ndarray] = []
    for _ in range(5):
        u = random.normal(size=(8, 6, 1)).cumsum(1).cumsum(1)
        u[random.random(u.shape) < 0.2] = np.nan
        u = torch.tensor(u)
        statistics.add(Data(x=u[:, :3], y=u[:, 3:], times=torch.arange(6.0)))
        change = np.diff(u[..., 0], axis=1)
        both = np.stack([change[:, :-1], change[:, 1:]], -1).reshape(-1, 2)
        pairs.append(both[~np.isnan(both).any(1)])
    earlier, later = np.concatenate(pairs).T
    (expected,), *_ = np.linalg.lstsq(earlier[:, None], later, rcond=None)
    assert statistics.trend == pytest.approx([np.clip(expected, 0, 1)])
    assert 0.3 < statistics.trend[0] < 1


def test_neither_order_nor_pieces_matter():
    random = torch.Generator().manual_seed(0)
    values = 1e8 + torch.randn(60, 4, 2, dtype=torch.float64, generator=random)
    values[torch.rand(values.shape, generator=random) < 0.3] = torch.nan
    values[:20, :, 1] = torch.nan  # whole pieces without a value
    whole, pieces = Moments(), Moments()
    whole.add(values)
    for each in reversed(values.split(20)):
        pieces.add(each)
    torch.testing.assert_close(pieces.mean, whole.mean, rtol=1e-15, atol=0)
    torch.testing.assert_close(pieces.std, whole.std, rtol=1e-9, atol=0)


def test_what_is_constant_depends_on_the_precision():
    wave = torch.sin(torch.arange(800.0, dtype=torch.float64))[:, None]

    def moments(values: torch.Tensor) -> Moments:
        found = Moments()
        found.add(values)
        return found

    for offset, size in ((1e5, 0.0), (3e9, 10.0), (0.0, 0.0)):
        found = moments(offset + size * wave)
        assert float(found.mean) == pytest.approx(offset + size * float(wave.mean()))
        assert float(found.std) == pytest.approx(size * float(wave.std(unbiased=False)))
    single = moments((1e5 + 1e-3 * wave).float())
    assert float(single.std) == 0 and float(single.scale) == 1
    with pytest.raises(ValueError, match="at least one value"):
        _ = moments(torch.full((3, 1), torch.nan)).std
