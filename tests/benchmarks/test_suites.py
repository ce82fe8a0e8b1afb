"""Suites: what they consist of, how they run, and what a mistake in one says."""

import re
from pathlib import Path

import pytest

from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.training import load_config
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import carry_out_all, collect, read_suite, runs_of
from nfsgeo_benchmarks.suites.suite import BAND_COLUMNS, DIFFERENCES
from nfsgeo_benchmarks.suites.tables import seed_means


@pytest.mark.parametrize("scale", suites.shipped_scales())
@pytest.mark.parametrize("name", suites.shipped_suites())
def test_shipped_suites_are_sound(name, scale, refuses):
    suite = read_suite(suites.shipped_suites()[name])
    assert {"smoke", "paper"} <= set(suite.scales)
    if scale not in suite.scales:
        refuses(f"--scale {scale}: expected one of", runs_of, suite, scale)
        return
    found = runs_of(suite, scale)
    assert len({run.name for run in found}) == len(found)
    assert {run.variant for run in found} == set(suite.variants)
    assert len(suite.title) <= 64  # `nfsgeo bench --list` in 80 columns
    ours = {run.settings["model.name"] for run in found if not run.network}
    assert ours <= set(MODELS)


def test_later_settings_override_earlier_ones(runs_with):
    changes = {
        "scales/tiny/seeds": 2,
        "scales/tiny/models": {"dse": {"data.points": 16}},
        "problems/waves/settings": {"data.n_in": 1},
        "problems/waves/models_at": {"tiny": {"dse": {"model.settings.width": 9}}},
    }
    found = runs_with(**changes)
    variants = [(run.seed, run.variant) for run in found]
    assert variants == [(seed, name) for seed in (0, 1) for name in ("dse", "wide")]
    assert found[0].settings["model.settings.width"] == 9
    expected = {"data.n_in": 1, "data.n_out": 2, "data.points": 16, "seed": 1}
    expected |= {"data.batch_size": 2, "trainer.epochs": 2, "model.name": "dse"}
    expected |= {"model.settings.width": 8, "model.settings.depth": 1}
    assert found[3].settings == expected
    (only,) = runs_with(**{"problems/waves/variants": ["wide"]})
    assert only.variant == "wide"


def test_a_budget_takes_the_place_of_epochs(runs_with):
    budget = {"trainer.budget": 0.5, "preset": "paper"}
    found = runs_with(**{"problems/waves/settings": budget})
    config = load_config(overrides=found[0].settings)
    assert config.trainer.budget == 0.5
    assert "epochs" not in config.trainer.model_fields_set


def test_each_seed_may_have_samples_of_its_own(runs_with):
    changes = {"scales/tiny/seeds": 2, "problems/waves/variants": ["wide"]}
    first, second = runs_with(**changes)
    assert first.data == second.data
    same, other = runs_with(**changes, data_seeds=True)
    assert same == first and other.name != second.name
    assert other.data == first.data.model_copy(update={"seed": 1})
    assert other.settings == second.settings


def test_a_name_belongs_to_everything_that_determines_a_run(runs_with):
    first = runs_with()[0].name
    assert re.fullmatch(r"waves-dse-seed0-[0-9a-f]{8}", first)
    for key, value in {
        "variants/dse": {"optimiser.lr": 0.01},
        "unseen": [2],
        "states": {"tiny": 2},
        "scales/tiny/data/waves/samples": 13,
        "scales/tiny/settings/trainer.epochs": 3,
    }.items():
        assert runs_with(**{key: value})[0].name != first
    assert runs_with(title="other")[0].name == first


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("titel", "t", ["small.yaml", "titel", "nearest is title"]),
        ("problems/waves/data", "wave", ["small.yaml", "problems.waves", "waves"]),
        ("problems/waves/at", {"tinny": {}}, ["waves.at.tinny", "tiny"]),
        ("problems/waves/variants", ["wid"], ["waves.variants: wid", "wide"]),
        ("variants/dsee", {}, ["small.yaml", "variants.dsee", "dse"]),
        ("variants/dse", {"model.settings.widht": 8}, ["variants.dse", "width"]),
        ("claims", [], ["small.yaml", "claims"]),
        ("scales/tiny/data/waves/recrods", 4, ["waves.recrods", "*.data.*.records"]),
        ("scales/tiny/seeds", 0, ["scales.yaml", "tiny.seeds", "greater than 0"]),
        ("scales/tiny/settings/trainer.epohcs", 1, ["epohcs", "trainer.epochs"]),
    ],
)
def test_a_mistake_is_named_by_file_key_and_what_is_allowed(
    runs_with, key, value, words
):
    with pytest.raises(UserError) as caught:
        runs_with(**{key: value})
    for word in words:
        assert word in str(caught.value)


def test_data_of_others_cannot_be_generated_from_seeds(runs_with, refuses):
    problem = {"files": ["own.nc"], "at": {"tiny": {}}}
    changes = {"problems/own": problem, "data_seeds": True}
    refuses("small.yaml.*data_seeds with the problem own", runs_with, **changes)


@pytest.mark.parametrize("content", ["a: [", "- a", "\x00"])
def test_files_that_are_no_suites(tmp_path, content, refuses):
    path = tmp_path / "small.yaml"
    path.write_text(content)
    refuses("small.yaml", read_suite, path)


@pytest.mark.slow
def test_runs_are_carried_out_once_and_failures_stop_nothing(
    runs_with, tmp_path, table
):
    small = {"model.settings.max_gib": 1e-9, "model.settings.width": 4}
    found = runs_with(**{"variants/agcrn": small})
    ended: list[str] = []
    carry_out_all(found, tmp_path, jobs=2, ended=lambda run: ended.append(run.variant))
    assert sorted(ended) == ["agcrn", "dse", "wide"]
    rows = {row["variant"]: row for row in collect(found, tmp_path)}
    assert rows["agcrn"]["status"] == "OOM" and rows["agcrn"]["mae"] is None
    assert "max_gib" in rows["agcrn"]["message"]
    for name in ("dse", "wide"):
        assert rows[name]["status"] == "ok" and rows[name]["epochs"] == 2
        assert 0 < rows[name]["mae"] <= rows[name]["rmse"]
    before = table(found, tmp_path)
    carry_out_all(found, tmp_path, ended=lambda run: ended.append(run.variant))
    assert ended[3:] == ["agcrn"]  # nothing else was left to do
    assert table(found, tmp_path) == before


def test_problems_of_other_suites_are_as_they_are_there():
    shipped = suites.shipped_suites()
    bands, accuracy, stations = (
        {
            run.problem: run
            for run in runs_of(read_suite(shipped[name]), "cpu")
            if (run.variant, run.seed) == ("nfs", 0)
        }
        for name in ("bands", "accuracy", "stations")
    )
    assert len(bands) == 8
    for name, run in bands.items():
        there = {**stations, **accuracy}[name]
        assert run.data == there.data
        own = {k: v for k, v in run.settings.items() if k != "trainer.epochs"}
        assert own.items() <= {**there.settings, "model.bands": True}.items()


@pytest.mark.slow
def test_bands_have_columns_as_have_those_of_one_width(tmp_path):
    suite = read_suite(suites.shipped_suites()["bands"])
    runs = runs_of(suite, "smoke")
    runs = [run for run in runs if run.problem == "burgers-steep"]
    carry_out_all(runs, tmp_path)
    rows = {row["variant"]: row for row in collect(runs, tmp_path)}
    for name in ("nfs", "constant-width"):
        assert BAND_COLUMNS.keys() <= rows[name].keys()
    assert rows["persistence"]["mae"] > 0
    means = seed_means([*rows.values()])
    assert means.mean.at[("burgers-steep", "nfs"), "crps"] == rows["nfs"]["crps"]


@pytest.mark.slow
def test_other_meshes_memory_and_states_have_columns_of_their_own(
    runs_with, small, tmp_path
):
    own = {"model.name": "nfs", "data.point_sets": 1, "data.query_points": 0}
    found = runs_with(
        unseen=[1.5],
        meshes=["seen", "half"],
        memory=True,
        states={"tiny": 2},
        variants={f"mesh-{k}": own | {"data.mesh_seed": k} for k in (1, 2)},
    )
    carry_out_all(found, tmp_path, jobs=2)
    rows = collect(found, tmp_path)
    suites.write_tables(read_suite(small), found, tmp_path, "tiny", "")
    written = suites.read_table(tmp_path / "results.csv")
    for row, text in zip(rows[:2], written[:2], strict=True):
        assert row["mae_seen"] == pytest.approx(row["mae"], rel=1e-5)
        for name in ("mae_1.5", "mae_half", "mae_unobserved_seen", "kernel_bytes"):
            assert row[name] > 0 and text[name] == row[name]
    for name in DIFFERENCES:
        one, other = (row[name] for row in rows[:2])
        assert 0 < one < 1 and one == pytest.approx(other)  # of two, each to the other


def test_shipped_suites_have_every_model_and_stand_on_the_site():
    shipped = suites.shipped_suites()
    all_of = [runs_of(read_suite(path), "smoke") for path in shipped.values()]
    runs = [run for each in all_of for run in each if not run.network]
    assert {run.settings["model.name"] for run in runs} == set(MODELS)
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    (table,) = (part for part in page.split("\n\n") if "| `irregular` |" in part)
    listed = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(shipped)


def test_names_stay_the_same_from_version_to_version():
    """Else results that were kept would no longer be found."""
    suite = read_suite(suites.shipped_suites()["irregular"])
    found = {run.name for run in runs_of(suite, "cpu")}
    assert "navier-stokes-10-to-10-nfs-seed0-8b373acb" in found
