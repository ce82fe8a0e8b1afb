"""Suites that keep states on the grid and compare them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from nfsgeo_benchmarks.suites import (
    Run,
    carry_out_all,
    collect,
    read_suite,
    runs_of,
    write_suite_report,
)
from nfsgeo_benchmarks.suites.reading import read_scales
from nfsgeo_benchmarks.suites.states import diff_history
from nfsgeo_benchmarks.suites.suite import DIFFERENCES, Suite
from nfsgeo_benchmarks.suites.table import judge, seed_means


@pytest.fixture
def states(small: Path) -> tuple[Suite, list[Run]]:
    """The small suite with two networks on two meshes."""
    content = yaml.safe_load((small / "small.yaml").read_text())
    content["variants"] = {
        f"mesh-{seed}": {"model.name": "nfs", "data.mesh_seed": seed} for seed in (1, 2)
    }
    content["states"] = {"tiny": 2}
    both = {"measure": "diff_end", "over_measure": "diff_end_0"}
    content["claims"] = [
        {"title": "alike", "variant": "mesh-1", "over": ["mesh-1"]} | both
    ]
    (small / "small.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    suite = read_suite(small / "small.yaml")
    return suite, runs_of(suite, "tiny", read_scales(small / "scales.yaml"))


@pytest.mark.slow
def test_deviations_are_columns_claims_and_a_picture(
    states: tuple[Suite, list[Run]], small: Path
) -> None:
    suite, runs = states
    out = small / "out"
    out.mkdir()
    carry_out_all(runs, out, jobs=2)
    rows = collect(runs, out)
    for name in DIFFERENCES:
        one, other = (row[name] for row in rows)
        assert 0 < one < 1 and one == pytest.approx(
            other
        )  # of two, each from the other
    history = diff_history([out / row["folder"] for row in rows])
    assert [row["epoch"] for row in history] == [0, 2]
    assert history[0]["begin"] == pytest.approx(rows[0]["diff_begin_0"])
    assert history[-1]["end"] == pytest.approx(rows[0]["diff_end"])
    (verdict,) = judge(suite.claims, seed_means(rows))
    assert verdict.ratio == rows[0]["diff_end"] / rows[0]["diff_end_0"]
    scale = read_scales(small / "scales.yaml")["tiny"]
    whole = write_suite_report(suite, scale, "", rows, out).read_text()
    assert "Diff of the states of 2 networks" in whole
    shutil.rmtree(out / rows[1]["folder"])
    left = collect(runs, out)
    assert [left[0][name] for name in DIFFERENCES] == [None] * 4
    half = write_suite_report(suite, scale, "", left, out).read_text()
    assert "not known yet" in half and "Diff of the states" not in half


def test_runs_that_keep_states_have_a_name_of_their_own(
    states: tuple[Suite, list[Run]], small: Path
) -> None:
    suite, (run, _) = states
    scales = read_scales(small / "scales.yaml")
    without = suite.model_copy(update={"states": {}})
    assert runs_of(without, "tiny", scales)[0].name != run.name
