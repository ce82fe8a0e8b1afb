"""Means over seeds, leads, and what suites claim about them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nfsgeo_benchmarks.suites import claims
from nfsgeo_benchmarks.suites.claims import judge, paired_bootstrap, read_samples
from nfsgeo_benchmarks.suites.suite import Claim
from nfsgeo_benchmarks.suites.tables import seed_means

AHEAD = Claim(title="wide is ahead", variant="wide", over=("dse",))
NONE = pd.DataFrame()


def row(variant: str, mae: float | None, seed: int = 0, **more: Any) -> dict[str, Any]:
    status = "missing" if mae is None else "ok"
    where = {"variant": variant, "problem": "waves", "seed": seed, "status": status}
    return where | {"mae": mae} | more


def ratio(claim: Claim, *rows: dict[str, Any]) -> float:
    (verdict,) = judge([claim], seed_means(rows), NONE)
    assert (verdict.text == "not known yet") == math.isnan(verdict.ratio)
    return verdict.ratio


def test_means_are_over_the_seeds_that_finished():
    rows = [row("dse", 1.0), row("dse", 3.0, 1), row("dse", None, 2)]
    rows += [row("wide", 4.0), row("agcrn", None, status="OOM")]
    means = seed_means(rows)
    assert means.std.at[("waves", "dse"), "mae"] == pytest.approx(math.sqrt(2))
    assert math.isnan(means.std.at[("waves", "wide"), "mae"])
    assert list(means.first["status"]) == ["ok", "ok", "OOM"]
    errors = means.errors("waves", ("dse", "wide", "agcrn"))
    assert errors[:2].tolist() == [2, 4] and math.isnan(errors["agcrn"])
    of_three = AHEAD.model_copy(update={"over": ("dse", "wide", "agcrn")})
    assert ratio(of_three, *rows) == 4 / 2  # the least is over those that are known
    assert means.errors("elsewhere", ("dse",)).isna().all()


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row("wide", 1.0), row("dse", 2.0)], "holds"),
        ([row("wide", 2.0), row("dse", 1.9)], "does not hold"),
        ([row("wide", None), row("dse", 1.9)], "not known yet"),
        ([row("wide", 1.0), row("dse", None)], "not known yet"),
        ([row("wide", 1.0), row("dse", None, status="OOM")], "not known yet"),
    ],
)
def test_claims(rows, text):
    (verdict,) = judge([AHEAD], seed_means(rows), NONE)
    assert verdict.text == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "holds"), (0.94, "does not hold"), (0.8, "does not hold")],
)
def test_a_claim_may_be_of_one_number_between_two(coverage, text):
    own = {"title": "t", "variant": "wide", "measure": "coverage"}
    claim = Claim.model_validate(own | {"at_least": 0.87, "at_most": 0.93})
    means = seed_means([row("wide", 1.0, coverage=coverage)])
    (verdict,) = judge([claim], means, NONE)
    assert (verdict.ratio, verdict.text) == (coverage, text)


def test_a_claim_leaves_out_variants_and_references_that_a_problem_has_not():
    over = AHEAD.model_copy(update={"over": ("dse", "agcrn", "cubic-extrapolation")})
    assert ratio(over, row("wide", 1.0), row("dse", 2.0)) == 0.5
    assert math.isnan(ratio(over, row("wide", 1.0)))


def test_a_claim_may_compare_two_ratios():
    """Here, that wide gains more on four times as many points than on its own."""
    gain = {"variant": "wide", "over": ["dse"]}
    more = Claim.model_validate(gain | {"title": "t", "measure": "mae_4", "than": gain})
    wide = row("wide", 1.0, mae_4=1.0)
    assert ratio(more, wide, row("dse", 2.0, mae_4=8.0)) == (1 / 8) / (1 / 2)
    assert math.isnan(ratio(more, wide, row("dse", None)))


def test_a_leader_leads_by_two_standard_deviations():
    def leading(*errors: float) -> str | None:
        rows = [row("a", 1.0, 0), row("a", 1.2, 1)]
        rows += [row("b", error, seed) for seed, error in enumerate(errors)]
        return seed_means(rows).leader("waves", ("a", "b"))

    assert leading(1.5, 1.6) == "a"  # 1.1 ± 0.14 against 1.55 ± 0.07
    assert leading(1.3, 1.4) is None
    assert leading(1.0, 2.2) is None
    assert leading(0.5, 0.5) == "b"
    assert leading(9.0) is None  # one seed has no standard deviation


def errors_of_two(seed: int, num: int) -> tuple[Any, Any]:
    """Errors of two models that find the same samples hard; means are as 1 to 2."""
    random = np.random.default_rng(seed)
    hard, noise = random.lognormal(-0.125, 0.5, num), random.lognormal(-0.02, 0.2, num)
    return hard * noise, 2 * hard


def test_intervals_of_errors_that_differ_by_a_factor_are_that_factor():
    own, _ = errors_of_two(0, 30)
    assert paired_bootstrap(own, own) == (1, 1)
    assert paired_bootstrap(0.25 * own, own) == (0.25, 0.25)
    assert paired_bootstrap(3 * own, own) == pytest.approx((3, 3), rel=1e-12)


def test_an_interval_has_nothing_of_the_order_of_samples():
    own, over = errors_of_two(0, 30)
    order = np.random.default_rng(1).permutation(30)
    assert paired_bootstrap(own, over) == paired_bootstrap(own[order], over[order])
    low, high = paired_bootstrap(own, over)
    apart = paired_bootstrap(own, over[order])  # pairs of samples that do not belong
    assert low < own.mean() / over.mean() < high
    assert high - low < 0.6 * (apart[1] - apart[0])


def test_intervals_have_the_true_ratio_as_often_as_they_should(monkeypatch):
    monkeypatch.setattr(claims, "DRAWS", 1000)
    intervals = [paired_bootstrap(*errors_of_two(k, 100)) for k in range(1, 401)]
    above, below = (np.array(intervals).T > 0.5).mean(1)
    assert above < 0.05 and 1 - below < 0.05 and 0.92 < below - above < 0.98


def sampled(folder: Path, rows: list[dict[str, Any]], *, apart: bool = False) -> Any:
    """The interval of the claim that ``wide`` is ahead, from files of the samples."""
    each = {row["folder"]: row["samples"] for row in rows}
    table = pd.DataFrame.from_dict(each, orient="index").rename_axis("folder")
    table.to_csv(folder / "samples.csv")
    samples = read_samples(rows, folder, apart=apart)
    (verdict,) = judge([AHEAD], seed_means(rows), samples)
    return verdict.interval


def with_samples(variant: str, samples: Any, seed: int = 0) -> dict[str, Any]:
    about = {"folder": f"runs/{variant}-{seed}", "samples": dict(enumerate(samples))}
    return row(variant, float(np.mean(samples)), seed, **about)


def test_ratios_of_mae_have_intervals_over_the_samples_of_both(tmp_path):
    own, over = errors_of_two(0, 30)
    two = [with_samples("wide", own + 0.1), with_samples("wide", own - 0.1, 1)]
    expected = paired_bootstrap(own, over)
    found = sampled(tmp_path, [*two, with_samples("dse", over)])
    assert found == pytest.approx(expected, rel=1e-9)
    assert sampled(tmp_path, [*two, with_samples("dse", over[:-1])]) is None


def test_samples_of_data_sets_from_other_seeds_are_pairs_of_their_own(tmp_path):
    pairs = [errors_of_two(seed, 20) for seed in (0, 1)]
    rows = [
        with_samples(name, errors, seed)
        for seed, pair in enumerate(pairs)
        for name, errors in zip(("wide", "dse"), pair, strict=True)
    ]
    expected = paired_bootstrap(*np.concatenate(pairs, axis=1))
    found = sampled(tmp_path, rows, apart=True)
    assert found == pytest.approx(expected, rel=1e-9)
    assert sampled(tmp_path, rows[:3], apart=True) is None  # one seed of two


@pytest.mark.parametrize(
    "more",
    [
        {"measure": "rmse"},
        {"over_measure": "rmse"},
        {"than": {"variant": "wide", "over": ["dse"]}},
        {"over": []},
        {"over": ["persistence"]},
    ],
)
def test_only_ratios_of_mae_with_known_samples_have_intervals(tmp_path, more):
    rows = [with_samples(name, [1.0, 2.0]) for name in ("wide", "dse")]
    rows = [of | {"rmse": 2.0} for of in rows]
    assert sampled(tmp_path, rows) == (1, 1)
    rows.append(row("persistence", 0.5, folder=None))
    samples = read_samples(rows, tmp_path, apart=False)
    claim = Claim.model_validate({**AHEAD.model_dump(), **more})
    (verdict,) = judge([claim], seed_means(rows), samples)
    assert verdict.interval is None
