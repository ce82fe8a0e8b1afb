"""Error bands of runs: fitted, stored, scored, predicted with and calibrated."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.report import write_report
from nfsgeo.training import RunPaths
from nfsgeo.uncertainty.band_features import BandFeatures
from nfsgeo.uncertainty.bands import Scale
from nfsgeo.uncertainty.fitting import CONDITIONS, Errors, crps, interval_score


def errors(num: int, points: int, seed: int) -> Errors:
    """Of samples whose points have errors of one size, unlike those of others."""
    draw = torch.Generator().manual_seed(seed)
    size = torch.randn(num, 1, generator=draw).double().exp()
    e = (size * torch.randn(num, points, generator=draw)).view(-1, 1, 1)
    ones, zeros = torch.ones_like(e), torch.zeros(len(e))
    around = BandFeatures(e[..., None], ones, zeros, zeros == 0)
    window = torch.arange(num).repeat_interleave(points)
    return Errors(around, {"model": e}, window, zeros)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.sampled_from([9, 12, 30]), st.sampled_from([1, 7]))
def test_bands_cover_exchangeable_samples(num, points):
    scale, covered = Scale.constant(torch.Size([1, 1])), []
    for seed in range(300):
        known, new = errors(num, points, seed), errors(1, points, seed + 1000)
        below, above = known.bands("model", scale, 1.0).ends(new.features, 0.9)
        inside = (-below <= new.get("model")) & (new.get("model") <= above)
        covered.append(inside.double().mean())
    share, spread = np.mean(covered), np.std(covered) / math.sqrt(300)
    assert 0.9 - 3 * spread <= share <= 0.9 + 1 / (num + 1) + 3 * spread


def test_a_constant_band_is_of_one_width():
    of, growth = errors(40, 50, 0), torch.tensor([1.0, 3.0])[:, None].double()
    features, unit, *others = vars(of.features).values()
    around = BandFeatures(
        features.expand(-1, 2, -1, -1), unit.expand(-1, 2, -1), *others
    )
    grown = of._replace(features=around, errors={"model": of.get("model") * growth})
    scale = Scale.constant(torch.Size([2, 1]))
    one, each = (grown.bands(k, scale, 1.0).factors for k in ("constant", "model"))
    assert torch.equal(one[:, 0], one[:, 1])
    assert (3 * each[:, 0, :, 180] == each[:, 1, :, 180]).all()
    assert (each[:, 0, :, 180] < one[:, 0, :, 180]).all()


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_crps_of_a_normal_distribution(error, sigma):
    levels = [(k + 0.5) / 2000 for k in range(2000)]
    normal = torch.distributions.Normal(0.0, 1.0)
    quantiles = (sigma * normal.icdf(torch.tensor((1 + of) / 2)) for of in levels)
    ends = [torch.stack([each, each]) for each in quantiles]
    z = torch.tensor(error / sigma)
    density = normal.log_prob(z).exp()
    exact = sigma * (z * (2 * normal.cdf(z) - 1) + 2 * density - math.pi**-0.5)
    found = crps(torch.tensor(error), ends, levels)
    assert float(found) == pytest.approx(float(exact), rel=2e-3, abs=1e-3)


def test_the_interval_score_is_least_at_the_quantile():
    e = torch.randn(20_000, generator=torch.Generator().manual_seed(0)).exp()
    widths = torch.linspace(0, 8, 401)
    zeros = torch.zeros_like(widths)
    for ends, least in (((-widths, zeros), -1.645), ((zeros, widths), 1.645)):
        pairs = torch.stack(ends).T[..., None]
        scores = torch.stack([interval_score(e, pair, 0.9).mean() for pair in pairs])
        found = float(widths[scores.argmin()])
        assert found == pytest.approx(math.exp(least), rel=0.06)
    ends = torch.tensor([[1.0], [2.0]])
    assert float(interval_score(torch.tensor([3.0]), ends, 0.9)) == pytest.approx(23)
    assert float(interval_score(torch.tensor([-3.0]), ends, 0.9)) == pytest.approx(43)


@pytest.fixture(scope="module")
def banded(waves: Path, tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = tiny | {"trainer.epochs": 2, "data.split": [5, 10, 5], "model.bands": True}
    out = tmp_path_factory.mktemp("banded") / "run"
    return nfsgeo.fit(nfsgeo.prepare(waves, chosen), out).root


@pytest.mark.slow
def test_scores_stand_beside_those_of_references(banded):
    found = nfsgeo.evaluate(banded)["bands"]
    assert (found["level"], found["samples"]) == (0.9, 10)
    assert len(found["by_time_step"]) == 10
    of_unobserved = {"unobserved", "unobserved with gaps"}
    assert found["by_condition"].keys() == {*CONDITIONS}
    best = min(name for name in found["references"] if name != "constant")
    assert set(found["references"][best]["by_condition"]).isdisjoint(of_unobserved)
    for of in (found, *found["references"].values()):
        assert 0 <= of["coverage"] <= 1
        assert of["coverage"] == of["by_condition"]["observed"]["coverage"]
        assert of["interval_score"] >= of["width"] > of["crps"] > 0
    shares = found["reliability"]["coverage"]
    assert shares == sorted(shares)
    write_report(banded)
    assert (RunPaths(banded).figures / "bands.png").is_file()


@pytest.mark.slow
def test_predictions_have_bands_of_a_level(banded, trained, waves, refuses):
    plain = nfsgeo.predict(banded, waves, "plain.nc", level=0)
    assert plain.component_names == ["u"]
    narrow, wide = (
        nfsgeo.predict(banded, waves, f"{level}.nc", level=level)
        for level in (0.5, 0.9)
    )
    assert wide.component_names == ["u", "u_lower", "u_upper"]
    assert wide.dataset["u_upper"].attrs["level"] == 0.9
    u, (n, w) = (
        plain.read(1, slice(None)),
        (f.read(1, slice(None)) for f in (narrow, wide)),
    )
    assert np.array_equal(u[..., 0], w[..., 0])
    assert (w[..., 1] < n[..., 1]).all() and (n[..., 2] < w[..., 2]).all()
    below, above = (np.abs(w[..., k] - w[..., 0]) for k in (1, 2))
    shares = below / (below + above)
    assert np.allclose(shares, shares[:1], atol=1e-4)  # alike at all points
    np.save("q.npy", wide.coordinates(1)[5:9])
    at = nfsgeo.predict(banded, waves, "at.csv", query_pos="q.npy")
    assert at.component_names == ["u", "u_lower", "u_upper"]
    assert np.allclose(at.read(1, slice(None)), w[5:9], rtol=1e-4, atol=1e-4)
    further = nfsgeo.predict(banded, waves, "ahead.nc", steps=12)
    assert further.component_names == ["u"]
    refuses("level 0.95", nfsgeo.predict, banded, waves, "few.nc", level=0.95)
    for run, more in ((trained, {}), (banded, {"steps": 12})):
        with pytest.raises(UserError, match=r"level 0\.9 .* without error bands"):
            nfsgeo.predict(run, waves, "none.nc", level=0.9, **more)


@pytest.mark.slow
def test_samples_of_ones_own_calibrate(banded, run, waves, tmp_path, refuses):
    before = RunPaths(banded).bands.read_bytes()
    with nfsgeo.open(waves) as file:
        u = [file.read(k, slice(None)) for k in range(20)]
        place = file.coordinates(), file.times
        loud = nfsgeo.from_arrays([9 * each for each in u], *place, domain=file.domain)
        few = nfsgeo.from_arrays(u[:8], *place, domain=file.domain)
        here = nfsgeo.evaluate(banded, data=loud)["bands"]
        there = nfsgeo.evaluate(banded, data=loud, calibrate=True)["bands"]
        assert (there["samples"], there["by_time_step"] != here["by_time_step"]) == (
            20,
            True,
        )
        assert 0.9 <= there["coverage"] <= 1
        refuses("9 samples", nfsgeo.evaluate, banded, data=few, calibrate=True)
    refuses("--bands", nfsgeo.evaluate, run, data=waves, calibrate=True)
    RunPaths(banded).bands.write_bytes(before)


@pytest.mark.slow
def test_a_grid_calibrates_where_it_is_predicted_from(banded, waves):
    before = RunPaths(banded).bands.read_bytes()
    found = nfsgeo.evaluate(banded, data=waves, part="all", calibrate=True)
    ahead = nfsgeo.predict(banded, waves, "ahead.nc", first=0)
    RunPaths(banded).bands.write_bytes(before)
    assert found["scored"]["points"] == found["n_s"] == ahead.num_points()
    inside = []
    with nfsgeo.open(waves) as file:
        there = np.searchsorted(file.times, ahead.times - 1e-9)
        for k in range(file.num_samples):
            away = ahead.coordinates(k)[:, None] - file.coordinates(k)
            truth = file.read(k, slice(None))[np.abs(away).sum(-1).argmin(1)]
            _, below, above = ahead.read(k, slice(None)).transpose(2, 0, 1)
            truth = truth[:, there, 0]
            inside.append((below <= truth) & (truth <= above))
    assert np.mean(inside) >= 0.85  # factors are also of an unseen mesh


def test_too_few_samples_are_refused_before_training(waves, refuses):
    refuses("2 validation windows", nfsgeo.prepare, waves, {"model.bands": True})
    settings = {"model.bands": True, "data.lead_times": True}
    refuses("2 validation windows, of lead times", nfsgeo.prepare, waves, settings)


@pytest.mark.parametrize(
    ("num", "steps", "stride"),
    [(1, 60, None), (1, 130, 1), (1, 300, 2), (20, 5, None), (20, 8, 1), (20, 60, 2)],
)
def test_advice_on_too_few_windows_can_be_followed(num, steps, stride, one_line):
    """A smaller stride is advised only if it gives enough windows."""

    def fields(steps):
        random = np.random.default_rng(0)
        u, pos = random.random((num, 30, steps)), random.random((30, 2))
        return nfsgeo.from_arrays(u, pos, np.arange(float(steps)))

    settings = {"model.bands": True, "data.n_in": 2, "data.n_out": 2}
    settings |= {"data.window_stride": 9} if num == 1 else {}
    message = one_line(nfsgeo.prepare, fields(steps), settings)
    assert ("more samples" in message) == (num > 1)
    advised = re.search(r"data\.evaluation_stride=(\d+)", message)
    assert (advised and int(advised[1])) == stride, message
    assert ("overlap" in message) == bool(stride)
    if stride:
        nfsgeo.prepare(fields(steps), settings | {"data.evaluation_stride": stride})
    if num == 1:
        # The validation part has a tenth of the time steps.
        longer = int(re.search(r"with (\d+) time steps", message)[1]) * 10
        nfsgeo.prepare(fields(longer), settings)
        one_line(nfsgeo.prepare, fields(longer - 10), settings)


def test_the_advised_number_of_samples_suffices(one_line, tiny):
    def fields(num):
        u, pos = np.random.default_rng(0).random((num, 9, 4)), np.eye(9, 2)
        return nfsgeo.from_arrays(u, pos + np.arange(9.0)[:, None], np.arange(4.0))

    settings = {k: v for k, v in tiny.items() if k.startswith("model")}
    settings |= {"model.bands": True, "data.n_in": 2, "data.n_out": 2}
    message = one_line(nfsgeo.prepare, fields(20), settings)
    assert "expected at least 9; use more samples, " in message
    num = int(re.search(r"samples, (\d+) in all at the default split", message)[1])
    nfsgeo.prepare(fields(num), settings)
    one_line(nfsgeo.prepare, fields(num - 1), settings)
    message = one_line(nfsgeo.prepare, fields(60), settings)
    sizes = re.search(r"validate on more of them, .*data\.split=\[(.*?)\]", message)[1]
    assert sizes == "39,9,12"
    split = {"data.split": [*map(int, sizes.split(","))]}
    assert len(nfsgeo.prepare(fields(60), settings | split).used.samples("valid")) == 9
