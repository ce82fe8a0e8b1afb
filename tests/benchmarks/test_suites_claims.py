"""Means over seeds, leads, and what suites claim about them."""

import math
from typing import Any

import pytest

from nfsgeo_benchmarks.suites.suite import Claim
from nfsgeo_benchmarks.suites.tables import judge, seed_means

AHEAD = Claim(title="wide is ahead", variant="wide", over=("dse",))


def row(variant: str, mae: float | None, seed: int = 0, **more: Any) -> dict[str, Any]:
    status = "missing" if mae is None else "ok"
    where = {"variant": variant, "problem": "waves", "seed": seed, "status": status}
    return where | {"mae": mae} | more


def ratio(claim: Claim, *rows: dict[str, Any]) -> float:
    (verdict,) = judge([claim], seed_means(rows))
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
    (verdict,) = judge([AHEAD], seed_means(rows))
    assert verdict.text == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "holds"), (0.94, "does not hold"), (0.8, "does not hold")],
)
def test_a_claim_may_be_of_one_number_between_two(coverage, text):
    own = {"title": "t", "variant": "wide", "measure": "coverage"}
    claim = Claim.model_validate(own | {"at_least": 0.87, "at_most": 0.93})
    (verdict,) = judge([claim], seed_means([row("wide", 1.0, coverage=coverage)]))
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
