"""Means over seeds, leads, and ratios with their intervals."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nfsgeo_benchmarks.suites import ratios
from nfsgeo_benchmarks.suites.ratios import (
    paired_bootstrap,
    ratio_interval,
    read_samples,
)
from nfsgeo_benchmarks.suites.tables import seed_means


def row(variant: str, mae: float | None, seed: int = 0, **more: Any) -> dict[str, Any]:
    status = "missing" if mae is None else "ok"
    where = {"variant": variant, "problem": "waves", "seed": seed, "status": status}
    return where | {"mae": mae} | more


def test_means_are_over_the_seeds_that_finished():
    rows = [row("dse", 1.0), row("dse", 3.0, 1), row("dse", None, 2)]
    rows += [row("wide", 4.0), row("agcrn", None, status="OOM")]
    means = seed_means(rows)
    assert means.std.at[("waves", "dse"), "mae"] == pytest.approx(math.sqrt(2))
    assert math.isnan(means.std.at[("waves", "wide"), "mae"])
    assert list(means.first["status"]) == ["ok", "ok", "OOM"]
    errors = means.errors("waves", ("dse", "wide", "agcrn"))
    assert errors[:2].tolist() == [2, 4] and math.isnan(errors["agcrn"])
    assert means.errors("elsewhere", ("dse",)).isna().all()


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
    monkeypatch.setattr(ratios, "DRAWS", 1000)
    intervals = [paired_bootstrap(*errors_of_two(k, 100)) for k in range(1, 401)]
    above, below = (np.array(intervals).T > 0.5).mean(1)
    assert above < 0.05 and 1 - below < 0.05 and 0.92 < below - above < 0.98


def table_of(folder: Path, *runs: tuple[str, int, Any]) -> list[dict[str, Any]]:
    """Rows of runs by variant and seed, whose errors on samples are in a file."""
    errors = {f"runs/{name}-{seed}": dict(enumerate(of)) for name, seed, of in runs}
    table = pd.DataFrame.from_dict(errors, orient="index").rename_axis("folder")
    table.to_csv(folder / "samples.csv")
    return [
        row(name, float(np.mean(of)), seed, folder=f"runs/{name}-{seed}")
        for name, seed, of in runs
    ]


def interval(rows: list[dict[str, Any]], folder: Path, *, apart: bool = False) -> Any:
    samples = read_samples(rows, folder, apart=apart)
    return ratio_interval(samples, "waves", "wide", "dse")


def test_ratios_of_mae_have_intervals_over_the_samples_of_both(tmp_path):
    own, over = errors_of_two(0, 30)
    two = ("wide", 0, own + 0.1), ("wide", 1, own - 0.1)
    found = interval(table_of(tmp_path, *two, ("dse", 0, over)), tmp_path)
    assert found == pytest.approx(paired_bootstrap(own, over), rel=1e-9)
    rows = table_of(tmp_path, *two, ("dse", 0, over[:-1]))
    assert interval(rows, tmp_path) is None
    (tmp_path / "samples.csv").unlink()
    assert interval(rows, tmp_path) is None


def test_samples_of_data_sets_from_other_seeds_are_pairs_of_their_own(tmp_path):
    pairs = [errors_of_two(seed, 20) for seed in (0, 1)]
    runs = [
        (name, seed, errors)
        for seed, pair in enumerate(pairs)
        for name, errors in zip(("wide", "dse"), pair, strict=True)
    ]
    rows = table_of(tmp_path, *runs)
    expected = paired_bootstrap(*np.concatenate(pairs, axis=1))
    assert interval(rows, tmp_path, apart=True) == pytest.approx(expected, rel=1e-9)
    assert interval(rows[:3], tmp_path, apart=True) is None  # one seed of two
