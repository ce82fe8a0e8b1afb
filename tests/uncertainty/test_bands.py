"""Scales of errors, and what they are told by."""

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import MissingValues, ModelInputs, Normalise
from nfsgeo.uncertainty.band_features import BandFeatures
from nfsgeo.uncertainty.bands import QUANTILES, Bands, Scale, conformal, needed

Make = Callable[..., Forecaster]


def doubled(x: Tensor, graphs: Any) -> Tensor:
    return torch.cat([2 * x[:, -1:, :1], 3 * x[:, -1:, :1]], dim=1)


def forecaster(make: Make, unit: float = 1.0) -> Forecaster:
    own = {"mean": [0.3 * unit], "std": [2 * unit]}
    scale = Normalise(**own, out_mean=own["mean"], out_std=own["std"])
    return make(doubled, scale, MissingValues(trend=[], indicators=0, gaps=False))


def bands(around: BandFeatures, samples: int = 40) -> Bands:
    """With a scale of random weights, and factors that grow with the level."""
    shape, num = around.unit.shape[1:], around.features.size(-1)
    draw = torch.Generator().manual_seed(1)
    weights = 0.1 * torch.randn(num + num * (num + 1) // 2, generator=draw).double()
    weights[num:] /= num
    limits = torch.tensor([-9.0, 9.0, 0.0, 1.0]).double()[:, None].expand(4, num)
    factors = torch.linspace(0, 2, QUANTILES + 1).double().expand(4, *shape, -1)
    shares = torch.tensor([0.5, 1.5]).double()[:, None, None].expand(2, *shape)
    scale = Scale(torch.zeros(shape).double(), weights, limits, shares)
    return Bands(scale, factors, samples, 0.1)


def fields(num: int = 30) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    pos = torch.rand(num, 2, generator=draw).double()
    x = torch.randn(num, 1, 1, generator=draw).double()
    x[3] = torch.nan
    return x, pos


def told(of: Forecaster, x: Tensor, pos: Tensor) -> BandFeatures:
    graphs = of.connect(pos)
    return BandFeatures.of(of, of(x, graphs=graphs), ModelInputs(x, graphs))


def test_bands_have_the_units_of_the_fields(forecaster_of):
    x, pos = fields()
    here, there = (
        told(forecaster(forecaster_of, unit), unit * x, pos) for unit in (1.0, 1e3)
    )
    half = bands(here).ends(here, 0.9)
    assert torch.allclose(1e3 * half, bands(there).ends(there, 0.9), rtol=1e-6)


def test_bands_follow_the_points_in_any_order(forecaster_of):
    x, pos = fields()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))
    of = forecaster(forecaster_of)
    here, there = told(of, x, pos), told(of, x[order], pos[order])
    assert torch.allclose(here.features[order], there.features, atol=1e-6)
    half = bands(here).ends(here, 0.5)
    assert torch.allclose(half[:, order], bands(there).ends(there, 0.5), rtol=1e-5)


def test_gaps_and_distances_are_told(forecaster_of):
    x, pos = fields()
    found = told(forecaster(forecaster_of), x, pos)
    assert found.observed.all()
    assert torch.allclose(found.gaps, torch.full((30,), 1 / 30).double())
    assert (found.features[..., 0].abs() < 1e-6).all()  # each is its nearest point


def test_the_scale_is_found_from_what_follows_it():
    draw = torch.Generator().manual_seed(0)
    f = torch.randn(4000, 2, 1, 2, generator=draw).double()
    beta = torch.tensor([[0.5], [-1.0]]).double()
    sigma = (beta + 0.7 * f[..., 0] - 0.3 * f[..., 0] * f[..., 1]).exp()
    e = -sigma * torch.rand(sigma.shape, generator=draw).double().log()
    e[:100] = torch.nan
    found = Scale.fit(f, e)(f)
    # What is beyond the limits of the features, and the penalty, are felt a little.
    assert (found / sigma).log().abs().mean() < 0.15


def test_sides_leave_out_as_much_below_as_above():
    draw = torch.Generator().manual_seed(0)
    f = torch.randn(8000, 1, 1, 2, generator=draw).double()
    e = torch.randn(8000, 1, 1, generator=draw).double()
    e = torch.where(e < 0, e, 4 * e) * f[..., 0].exp()
    scale = Scale.fit(f, e)
    below, above = scale.sides(f)
    assert float(scale.shares.mean()) == pytest.approx(1)
    assert float(scale.shares[1] / scale.shares[0]) == pytest.approx(4, rel=0.1)
    for factor in (1.0, 2.0):
        out = [(e < -factor * below), (e > factor * above)]
        least, most = sorted(float(each.double().mean()) for each in out)
        assert most - least < 0.02


def test_factors_of_one_value_a_sample_are_the_usual_ones():
    ratio = torch.rand(12, 1, 1, generator=torch.Generator().manual_seed(0)).double()
    found = conformal(ratio, torch.arange(12))[0, 0]
    ordered = ratio.flatten().sort().values
    for level in (0.25, 0.5, 0.75, 0.9):
        found_rank = int((ordered <= found[round(level * QUANTILES)]).sum())
        assert found_rank - math.ceil(level * 13) in (0, 1)


def test_factors_of_independent_values_are_at_the_level_itself():
    ratio = torch.rand(9 * 500, 1, 1, generator=torch.Generator().manual_seed(0))
    ratio[::7] = torch.nan
    found = conformal(ratio.double(), torch.arange(9).repeat_interleave(500))[0, 0]
    assert float(found[180]) == pytest.approx(0.9, abs=0.02)
    nothing = conformal(ratio.double() * torch.nan, torch.arange(9 * 500) // 500)
    assert nothing.isinf().all()


@pytest.mark.parametrize(("level", "num"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_levels_need_samples(level, num, forecaster_of):
    assert needed(level) == num
    around = told(forecaster(forecaster_of), *fields())
    enough = bands(around, num)
    assert torch.allclose(
        enough.factor(around, level), torch.tensor(2 * level).double()
    )
    enough.ends(around, level)
    if num > 1:
        with pytest.raises(UserError, match=f"expected {num}"):
            bands(around, num - 1).ends(around, level)


@pytest.mark.parametrize("level", [-0.5, 1.0, 1.5])
def test_levels_are_between_0_and_1(level, forecaster_of):
    around = told(forecaster(forecaster_of), *fields())
    with pytest.raises(UserError, match=f"level {level:g}: expected more than 0"):
        bands(around).ends(around, level)


def test_a_state_is_plain_and_makes_the_same(forecaster_of):
    around = told(forecaster(forecaster_of), *fields())
    content, of = io.BytesIO(), bands(around)
    torch.save(of.state(), content)
    content.seek(0)
    again = Bands.of_state(torch.load(content, weights_only=True))
    assert torch.equal(again.ends(around, 0.8), of.ends(around, 0.8))
