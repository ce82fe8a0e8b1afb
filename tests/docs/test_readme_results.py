"""Errors in the README are those of the results that come along."""

from __future__ import annotations

import runpy
from pathlib import Path

from nfsgeo_benchmarks.suites.earlier import RESULTS, read_table
from nfsgeo_benchmarks.suites.runs import SHIPPED
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.table import seed_means

ROOT = Path(__file__).parents[2]
ROWS = read_table(SHIPPED / "cpu" / "accuracy" / RESULTS)


def test_the_headline_table_is_that_of_the_results() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "making" / "headline.py"))
    table = made["headline"](ROWS)
    assert table.count("\n") > 8
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


def test_problems_tell_models_apart() -> None:
    """What learns nothing has at least five times the error of the best model."""
    errors: dict[str, dict[bool, list[float]]] = {}
    for (variant, problem), mean in seed_means(ROWS).items():
        if mean.values:
            kind = errors.setdefault(problem, {}).setdefault(
                variant in TRIVIAL.values(), []
            )
            kind.append(mean.values["mae"])
    assert len(errors) >= 6
    for problem, found in errors.items():
        assert min(found[True]) >= 5 * min(found[False]), problem
