"""Errors in the README are those of the results that come along."""

from __future__ import annotations

import runpy
from pathlib import Path

from nfsgeo_benchmarks.suites import read_table, shipped_results
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.tables import learns, seed_means

ROOT = Path(__file__).parents[2]
ROWS = read_table(shipped_results("accuracy", "cpu") / "results.csv")


def test_the_headline_table_is_that_of_the_results() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "making" / "headline.py"))
    table = made["headline"](ROWS)
    assert table.count("\n") > 8
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


def test_problems_tell_models_apart() -> None:
    """What learns nothing has at least five times the error of the best model."""
    means = seed_means(ROWS)
    problems = means.mean.index.unique("problem")
    assert len(problems) >= 6
    for problem in problems:
        models = [name for name in means.mean.loc[problem].index if learns(name)]
        nothing = means.least(problem, list(TRIVIAL.values()))
        assert nothing >= 5 * means.least(problem, models), problem
