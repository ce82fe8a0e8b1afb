"""Tables over seeds, and what suites claim about them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nfsgeo_benchmarks.suites.figures import error_against_setting
from nfsgeo_benchmarks.suites.suite import Claim, Suite
from nfsgeo_benchmarks.suites.table import best_of, judge, seed_means

AHEAD = Claim(title="wide is ahead", variant="wide", over=("dse",))


def row(variant: str, mae: float | None, seed: int = 0, **more: Any) -> dict[str, Any]:
    status = "missing" if mae is None else "ok"
    same = {name: mae for name in ("mae", "rmse", "rel_l2", "seconds_per_epoch")}
    where = {"variant": variant, "problem": "waves", "seed": seed, "status": status}
    return where | same | more


def test_cells_are_means_over_seeds_that_finished() -> None:
    rows = [row("dse", 1.0), row("dse", 3.0, 1), row("dse", None, 2)]
    rows += [row("wide", 4.0), row("agcrn", None, status="OOM")]
    cells = seed_means(rows)
    assert cells["dse", "waves"].values["mae"] == 2
    assert math.isclose(cells["dse", "waves"].spread["mae"], math.sqrt(2))
    assert math.isnan(cells["wide", "waves"].spread["mae"])
    assert cells["agcrn", "waves"].status == "OOM"
    assert best_of(cells, "waves", "mae", ("dse", "wide", "agcrn")) == 2
    assert best_of(cells, "waves", "mae", ("wide", "agcrn")) == 4
    assert best_of(cells, "elsewhere", "mae", ("dse",)) == math.inf


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
def test_claims(rows: list[dict[str, Any]], text: str) -> None:
    (verdict,) = judge([AHEAD], seed_means(rows))
    assert verdict.text == text


@pytest.mark.parametrize(
    ("mae", "where", "tried"),
    [
        (2.0, "waves", "more epochs"),
        (1.0, "waves", None),
        (None, "waves", None),
        (2.0, "heat", None),
    ],
)
def test_what_was_tried_is_said_where_a_claim_does_not_hold(
    mae: float | None, where: str, tried: str | None
) -> None:
    claim = AHEAD.model_copy(update={"tried": {where: "more epochs"}})
    (verdict,) = judge([claim], seed_means([row("wide", mae), row("dse", 1.9)]))
    assert verdict.tried == tried


def test_claims_leave_out_variants_that_are_not_for_a_problem() -> None:
    over = AHEAD.model_copy(update={"over": ("dse", "agcrn")})
    (verdict,) = judge([over], seed_means([row("wide", 1.0), row("dse", 2.0)]))
    assert verdict.ratio == 0.5


def test_a_claim_may_compare_two_errors_of_one_variant() -> None:
    far = Claim(
        title="t",
        variant="dse",
        over=("dse",),
        measure="mae_4",
        over_measure="mae",
        at_most=1.5,
    )
    (verdict,) = judge([far], seed_means([row("dse", 2.0, mae_4=3.0)]))
    assert verdict.ratio == 1.5 and verdict.text == "holds"


def test_a_claim_may_compare_two_ratios() -> None:
    """Here, that wide gains more on four times as many points than on its own."""
    gain = {"variant": "wide", "over": ["dse"]}
    more = Claim.model_validate(gain | {"title": "t", "measure": "mae_4", "than": gain})
    rows = [row("wide", 1.0, mae_4=1.0), row("dse", 2.0, mae_4=8.0)]
    (verdict,) = judge([more], seed_means(rows))
    assert verdict.ratio == (1 / 8) / (1 / 2) and verdict.text == "holds"
    (verdict,) = judge([more], seed_means([rows[0], row("dse", None)]))
    assert verdict.text == "not known yet"


def test_references_that_a_problem_has_not_are_left_out() -> None:
    over = ("persistence", "cubic-extrapolation")
    claim = Claim(title="wide learns", variant="wide", over=over)
    rows = [row("wide", 1.0), row("persistence", 4.0)]
    (verdict,) = judge([claim], seed_means(rows))
    assert verdict.ratio == 0.25
    (verdict,) = judge([claim], seed_means(rows[:1]))
    assert verdict.text == "not known yet"


def test_references_do_not_compete() -> None:
    suite = Suite.model_validate(
        {
            "title": "t",
            "problems": {},
            "variants": {"dse": {}, "wide": {}},
            "references": ["wide"],
        }
    )
    cells = seed_means([row("wide", 1.0), row("dse", 2.0)])
    assert best_of(cells, "waves", "mae", suite.rivals) == 2


def test_errors_are_drawn_against_a_setting() -> None:
    """In its order, with their spread; a level where it is not set."""
    width = "model.settings.width"
    suite = Suite.model_validate(
        {
            "title": "t",
            "problems": {"waves": {"data": "waves", "at": {}}},
            "variants": {"wide": {width: 8}, "narrow": {width: 4}, "dse": {}},
            "against": {"setting": width, "label": "width"},
        }
    )
    rows = [row("wide", 1.0), row("wide", 3.0, 1), row("narrow", 5.0), row("dse", 4.0)]
    values = suite.abscissae
    assert values == {"wide": 8, "narrow": 4}
    figure = error_against_setting(seed_means(rows), "waves", values, "width")
    assert figure is not None
    (ax,) = figure.axes
    along, *_, level = ax.lines
    assert along.get_xydata().tolist() == [[4, 5], [8, 2]]
    assert list(level.get_ydata()) == [4, 4] and ax.texts[0].get_text() == "dse"
    (bars,) = ax.collections
    assert bars.get_segments()[1][:, 1].tolist() == [2 - math.sqrt(2), 2 + math.sqrt(2)]
    assert error_against_setting(seed_means(rows[:2]), "waves", values, "w") is None
