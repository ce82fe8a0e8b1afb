"""Suites: what they consist of, how they run, and what a mistake in one says."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import (
    Run,
    carry_out_all,
    collect,
    read_suite,
    runs_of,
    write_tables,
)
from nfsgeo_benchmarks.suites.suite import DIFFERENCES, read_scales
from nfsgeo_benchmarks.suites.tables import judge, seed_means

Table = Callable[[list[Run], Path], list[dict[str, Any]]]
DATA = {"equation": "burgers", "samples": 12, "resolution": 64, "records": 4}
TINY = {
    "data.n_in": 2,
    "data.n_out": 2,
    "data.points": 32,
    "model.settings.width": 4,
    "model.settings.depth": 1,
}
SUITE: dict[str, Any] = {
    "title": "small",
    "problems": {"waves": {"data": "waves", "at": {"tiny": {"data.batch_size": 2}}}},
    "variants": {"dse": {}, "wide": {"model.name": "dse", "model.settings.width": 8}},
    "claims": [{"title": "wide is ahead", "variant": "wide", "over": ["dse"]}],
}
SCALES: dict[str, Any] = {
    "tiny": {
        "title": "moments",
        "seeds": 2,
        "data": {"waves": DATA},
        "settings": TINY | {"trainer.epochs": 2},
        "models": {"dse": {"data.points": 16}},
    }
}


def write(folder: Path, suite: dict[str, Any], scales: dict[str, Any]) -> None:
    (folder / "small.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    (folder / "scales.yaml").write_text(yaml.safe_dump(scales, sort_keys=False))


def runs(folder: Path, suite: Any = SUITE, scales: Any = SCALES) -> list[Run]:
    write(folder, suite, scales)
    return runs_of(
        read_suite(folder / "small.yaml"), "tiny", read_scales(folder / "scales.yaml")
    )


def changed(content: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy with one value changed, or a new one, at ``a/b/c``."""
    copy = json.loads(json.dumps(content))
    *above, last = key.split("/")
    place = copy
    for name in above:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    return copy


@pytest.mark.parametrize("scale", suites.shipped_scales())
@pytest.mark.parametrize("name", suites.shipped_suites())
def test_shipped_suites_are_sound(name: str, scale: str) -> None:
    suite = read_suite(suites.shipped_suites()[name])
    assert {"smoke", "paper"} <= set(suite.scales)
    if scale not in suite.scales:
        with pytest.raises(UserError, match=f"--scale {scale}: expected one of"):
            runs_of(suite, scale, suites.shipped_scales())
        return
    found = runs_of(suite, scale, suites.shipped_scales())
    assert len({run.name for run in found}) == len(found)
    assert {run.variant for run in found} == set(suite.variants)
    assert len(suite.title) <= 64  # `nfsgeo bench --list` in 80 columns
    assert {run.settings["model.name"] for run in found} <= set(MODELS)


def test_shipped_suites_have_every_model() -> None:
    """But those that are there for other data."""
    scales, found = suites.shipped_scales(), set()
    for path in suites.shipped_suites().values():
        for run in runs_of(read_suite(path), "smoke", scales):
            found.add(run.settings["model.name"])
    assert found == set(MODELS)


def test_settings_come_from_the_scale_the_model_the_problem_and_the_variant(
    tmp_path: Path,
) -> None:
    suite = changed(SUITE, "problems/waves/settings", {"data.n_in": 1})
    found = runs(tmp_path, suite)
    assert [(run.seed, run.variant) for run in found] == [
        (seed, variant) for seed in (0, 1) for variant in ("dse", "wide")
    ]
    settings = dict(found[3].settings)
    assert settings.pop("seed") == 1
    assert settings == TINY | {
        "trainer.epochs": 2,
        "data.points": 16,
        "data.n_in": 1,
        "data.batch_size": 2,
        "model.name": "dse",
        "model.settings.width": 8,
    }


def test_a_model_may_have_settings_of_its_own_at_a_scale(tmp_path: Path) -> None:
    """Before those of the variant, after those of the problem."""
    own = {"dse": {"data.points": 17, "model.settings.width": 9}}
    suite = changed(SUITE, "problems/waves/models_at", {"tiny": own})
    plain, wide = (dict(run.settings) for run in runs(tmp_path, suite)[:2])
    assert plain["data.points"] == wide["data.points"] == 17
    assert (plain["model.settings.width"], wide["model.settings.width"]) == (9, 8)


def test_a_problem_may_be_for_some_variants_alone(tmp_path: Path) -> None:
    suite = changed(SUITE, "problems/waves/variants", ["wide"])
    found = runs(tmp_path, suite)
    assert [(run.seed, run.variant) for run in found] == [(0, "wide"), (1, "wide")]


def test_a_name_belongs_to_everything_that_determines_a_run(tmp_path: Path) -> None:
    first = runs(tmp_path)[0]
    assert re.fullmatch(r"waves-dse-seed0-[0-9a-f]{8}", first.name)
    for suite, scales in (
        (changed(SUITE, "variants/dse", {"optimiser.lr": 0.01}), SCALES),
        (changed(SUITE, "unseen", [2]), SCALES),
        (changed(SUITE, "states", {"tiny": 2}), SCALES),
        (SUITE, changed(SCALES, "tiny/data/waves/samples", 13)),
        (SUITE, changed(SCALES, "tiny/settings/trainer.epochs", 3)),
    ):
        assert runs(tmp_path, suite, scales)[0].name != first.name
    retold = runs(tmp_path, changed(SUITE, "title", "other"))
    assert retold[0].name == first.name


@pytest.mark.parametrize(
    ("file", "key", "value", "words"),
    [
        ("small", "titel", "t", ["small.yaml", "titel", "nearest is title"]),
        (
            "small",
            "problems/waves/data",
            "wave",
            ["small.yaml", "problems.waves", "waves"],
        ),
        ("small", "problems/waves/at", {"tinny": {}}, ["waves.at.tinny", "tiny"]),
        ("small", "problems/waves/variants", ["wid"], ["waves.variants: wid", "wide"]),
        ("small", "problems/waves/models_at", {"tinny": {}}, ["waves.models_at.tinny"]),
        ("small", "variants/dsee", {}, ["small.yaml", "variants.dsee", "dse"]),
        (
            "small",
            "variants/wide",
            {"model.name": "dse", "model.settings.widht": 8},
            ["variants.wide", "widht", "width"],
        ),
        ("small", "problems/waves/at/tiny", {"data.pionts": 3}, ["waves", "points"]),
        ("small", "claims", [{"title": "t", "variant": "x", "over": []}], ["x"]),
        (
            "small",
            "claims/0/measure",
            "mae_4",
            ["claims", "mae_4", "nearest is mae"],
        ),
        ("small", "problems/waves/dat", "w", ["problems.waves.dat", "problems.*.data"]),
        ("small", "claims/0/ovr", ["dse"], ["claims.0.ovr", "claims.*.over"]),
        ("scales", "tiny/data/waves/recrods", 4, ["waves.recrods", "*.data.*.records"]),
        ("small", "references", ["dsee"], ["references", "dsee", "nearest is dse"]),
        (
            "small",
            "claims/0/than",
            {"variant": "wide", "over": ["dse"], "measure": "mea"},
            ["claims", "mea", "nearest is mae"],
        ),
        (
            "small",
            "claims/0/tried",
            {"wavs": "nothing"},
            ["claims: wavs", "nearest is waves"],
        ),
        ("scales", "tiny/seeds", 0, ["scales.yaml", "tiny.seeds", "greater than 0"]),
        ("scales", "tiny/settings/trainer.epohcs", 1, ["epohcs", "trainer.epochs"]),
        ("scales", "tiny/data/waves/sample", 1, ["scales.yaml", "waves.sample"]),
    ],
)
def test_a_mistake_is_named_by_file_key_and_what_is_allowed(
    tmp_path: Path, file: str, key: str, value: Any, words: list[str]
) -> None:
    suite = changed(SUITE, key, value) if file == "small" else SUITE
    scales = changed(SCALES, key, value) if file == "scales" else SCALES
    with pytest.raises(UserError) as caught:
        runs(tmp_path, suite, scales)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("content", ["a: [", "- a", "\x00"])
def test_files_that_are_no_suites(tmp_path: Path, content: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match="small.yaml"):
        read_suite(path)


@pytest.mark.slow
def test_runs_are_carried_out_once_and_failures_stop_nothing(
    tmp_path: Path, table: Table
) -> None:
    scales = changed(SCALES, "tiny/seeds", 1)
    suite = changed(SUITE, "variants/agcrn", {"model.settings.max_gib": 1e-9})
    suite = changed(suite, "variants/agcrn/model.settings.width", 4)
    found = runs(tmp_path, suite, scales)
    out = tmp_path / "out"
    ended: list[str] = []
    out.mkdir()
    carry_out_all(found, out, jobs=2, ended=lambda run: ended.append(run.variant))
    assert sorted(ended) == ["agcrn", "dse", "wide"]
    rows = {row["variant"]: row for row in collect(found, out)}
    assert rows["agcrn"]["status"] == "OOM" and rows["agcrn"]["mae"] is None
    assert "max_gib" in rows["agcrn"]["message"]
    for name in ("dse", "wide"):
        assert rows[name]["status"] == "ok" and rows[name]["epochs"] == 2
        assert 0 < rows[name]["mae"] <= rows[name]["rmse"]
    before = table(found, out)
    carry_out_all(found, out, ended=lambda run: ended.append(run.variant))
    assert ended[3:] == ["agcrn"]  # nothing else was left to do
    assert table(found, out) == before


def carried_out(folder: Path, suite: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the runs of a suite, with one seed, in the folder ``out``."""
    found = runs(folder, suite, changed(SCALES, "tiny/seeds", 1))
    (folder / "out").mkdir()
    carry_out_all(found, folder / "out", jobs=2)
    return collect(found, folder / "out")


@pytest.mark.slow
def test_unseen_meshes_have_columns_of_their_own(tmp_path: Path) -> None:
    suite = changed(SUITE, "unseen", [1.5, 2])
    suite["claims"][0]["measure"] = "mae_1.5"
    rows = carried_out(tmp_path, suite)
    about = {"suite": "small", "scale": "tiny", "command": ""}
    write_tables(rows, tmp_path / "out", about)
    with (tmp_path / "out" / "results.csv").open() as file:
        written = list(csv.DictReader(file))
    for row, text in zip(rows[:2], written[:2], strict=True):
        for name in ("mae", "mae_1.5", "mae_2"):
            assert row[name] > 0 and float(text[name]) == row[name]
    claims = read_suite(tmp_path / "small.yaml").claims
    (verdict,) = judge(claims, seed_means(rows))
    assert verdict.ratio == rows[1]["mae_1.5"] / rows[0]["mae_1.5"]


@pytest.mark.slow
def test_errors_on_meshes_and_memory_are_columns(tmp_path: Path) -> None:
    suite = changed(SUITE, "meshes", ["seen", "half"])
    suite |= {
        "memory": True,
        "variants": {"nfs": {"data.point_sets": 1, "data.query_points": 0}},
        "claims": [],
    }
    row = carried_out(tmp_path, suite)[0]
    assert row["mae_seen"] == pytest.approx(row["mae"], rel=1e-5)
    assert row["mae_unobserved_seen"] > 0 and row["mae_half"] > 0
    assert row["kernel_bytes"] > 0


@pytest.mark.slow
def test_deviations_of_states_are_columns(tmp_path: Path) -> None:
    suite = changed(SUITE, "states", {"tiny": 2})
    suite["variants"] = {
        f"mesh-{seed}": {"model.name": "nfs", "data.mesh_seed": seed} for seed in (1, 2)
    }
    both = {"measure": "diff_end", "over_measure": "diff_end_0"}
    suite["claims"] = [{"title": "t", "variant": "mesh-1", "over": ["mesh-1"]} | both]
    rows = carried_out(tmp_path, suite)
    for name in DIFFERENCES:
        one, other = (row[name] for row in rows[:2])
        assert 0 < one < 1 and one == pytest.approx(other)  # of two, each to the other
    claims = read_suite(tmp_path / "small.yaml").claims
    (verdict,) = judge(claims, seed_means(rows))
    assert verdict.ratio == rows[0]["diff_end"] / rows[0]["diff_end_0"]


def test_names_stay_the_same_from_version_to_version() -> None:
    """Else results that were kept would no longer be found."""
    suite = read_suite(suites.shipped_suites()["irregular"])
    found = {run.name for run in runs_of(suite, "cpu", suites.shipped_scales())}
    assert "navier-stokes-10-to-10-nfs-seed0-8b373acb" in found


def test_the_site_names_every_suite() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(suites.shipped_suites())
