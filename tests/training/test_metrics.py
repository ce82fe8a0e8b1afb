"""Errors against their closed forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.training import FieldErrors

NAN, MEASURES = float("nan"), ("mae", "rmse", "rel_l2", "rel_l1")


def test_closed_forms():
    truth = torch.tensor([3.0, 4.0]).view(2, 1, 1)
    errors = FieldErrors()
    errors.update(truth + torch.tensor([1.0, -3.0]).view(2, 1, 1), truth)
    expected = (2.0, math.sqrt(5), math.sqrt(10) / 5, 4 / 7)
    assert errors.compute() == pytest.approx(dict(zip(MEASURES, expected, strict=True)))


def of_sample(u: np.ndarray, v: np.ndarray, mean: float, floor: float) -> list[float]:
    """Errors of the values of one sample, of which gaps leave out some."""
    seen = ~np.isnan(v)
    error, v = (u - v)[seen], v[seen] - mean
    if not len(v):
        return [NAN] * 4
    sizes = [np.abs(error).mean(), np.sqrt((error**2).mean())]
    if not np.sqrt((v**2).mean()) > floor:
        return [*sizes, NAN, NAN]
    relative = [np.linalg.norm(error, p) / np.linalg.norm(v, p) for p in (2, 1)]
    return sizes + relative


def mean_of(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else NAN


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    std=st.sampled_from([None, (4.0, 2.0), (4.0, 0.0), (0.0, 0.0)]),
    share=st.sampled_from([0.0, 0.5]),
    cut=st.integers(0, 5),
    seed=st.integers(0, 999),
)
def test_they_are_means_over_samples_of_each_ones_own(sizes, std, share, cut, seed):
    """Of components apart or together, with gaps, without energy, in two batches."""
    random, batch = np.random.default_rng(seed), np.arange(len(sizes)).repeat(sizes)
    mean, scale = np.array([15.0, 1013.0]) * (std is not None), np.array(std or (1, 1))
    waves = random.choice([0, 1e-5, 1], len(sizes))[batch, None, None] * scale
    truth = mean + waves * random.normal(size=(len(batch), 3, 2))
    prediction = truth + random.normal(size=truth.shape)
    truth[random.random(truth.shape) < share] = NAN
    errors = FieldErrors(None if std is None else mean.tolist(), std)
    for rows in (batch < cut, batch >= cut):
        errors.update(*(torch.tensor(x[rows]) for x in (prediction, truth, batch)))
    # A constant component has no energy, and others from 1e-3 deviations on.
    floor = np.where(scale > 0, 1e-3 * scale, np.inf) * (std is not None)
    parts = [slice(None)] if std is None else [slice(c, c + 1) for c in range(2)]
    each = np.array(
        [
            [
                of_sample(prediction[at][..., c], truth[at][..., c], mean[k], floor[k])
                for k, c in enumerate(parts)
            ]
            for at in (batch == sample for sample in range(len(sizes)))
        ]
    )
    apart = np.array([list(map(mean_of, of.T)) for of in each.swapaxes(0, 1)])
    if std is not None:
        for found, expected in zip(errors.by_component(), apart, strict=True):
            assert list(found.values()) == pytest.approx(expected.tolist(), nan_ok=True)
    assert errors.without_energy() == [
        int(n) for n in (np.isnan(each[..., 2]) & ~np.isnan(each[..., 0])).sum(0)
    ]
    if std is not None and any(std):
        apart[:, :2] /= np.where(scale > 0, scale, NAN)[:, None]
    expected = dict(zip(MEASURES, map(mean_of, apart.T), strict=True))
    assert errors.compute() == pytest.approx(expected, nan_ok=True)


def test_a_mean_without_a_standard_deviation_is_refused():
    with pytest.raises(ValueError, match="give both"):
        FieldErrors([0.0, 1.0])


def test_a_prediction_that_is_not_a_number_is_seen():
    truth = torch.randn(6, 2, 2)
    errors = FieldErrors([0.0, 0.0], [1.0, 1.0])
    errors.update(truth * torch.tensor([1.0, math.nan]), truth)
    assert all(math.isnan(value) for value in errors.compute().values())
