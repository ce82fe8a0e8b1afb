"""Suites of data sets that the user has, on small files in their layouts."""

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from commands import refused

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo_benchmarks.suites import read_suite, runs_of, shipped_suites
from nfsgeo_benchmarks.suites.data import DataFiles
from nfsgeo_benchmarks.suites.printed_errors import published
from nfsgeo_benchmarks.suites.report import TITLES

SUITE = shipped_suites()["foreign"]
WITH_PUBLISHED_ERRORS = ("wave-c-sines", "elasticity", "pipe")
PROBLEMS = (*WITH_PUBLISHED_ERRORS, "darcy-neuralop")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A set of each layout, 12 samples with waves on 70 points."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "files"
    (folder / "geo-fno").mkdir(parents=True)
    x, times = rng.random((1, 1, 70, 2)), np.arange(21)[:, None, None] / 20
    phase = rng.random((12, 1, 1, 1))
    with h5py.File(folder / "wave_c_sines.nc", "w") as file:
        file["u"] = np.sin(6 * (x[..., :1] + phase) - times)
        file["x"] = x
    xy = rng.random((70, 2, 12))
    np.save(folder / "geo-fno" / "Random_UnitCell_XY_10.npy", xy)
    np.save(folder / "geo-fno" / "Random_UnitCell_sigma_10.npy", 5 + xy.sum(1))
    for axis in "XY":
        np.save(folder / "geo-fno" / f"Pipe_{axis}.npy", rng.random((12, 7, 10)))
    np.save(folder / "geo-fno" / "Pipe_Q.npy", rng.random((12, 3, 7, 10)))
    for part, samples in (("train", 12), ("test", 5)):
        fields = {name: torch.rand(samples, 16, 16) for name in "xy"}
        torch.save(fields, folder / f"darcy_{part}_16.pt")
    return folder


def foreign(files: Path, *more: str) -> tuple[str, ...]:
    folder = ("--data-folder", str(files))
    return ("foreign", "--scale", "smoke", *folder, "--out", "o", *more)


def test_absent_files_are_skipped_with_a_line(bench, files):
    (files / "geo-fno" / "Pipe_Y.npy").unlink()
    (files / "darcy_test_16.pt").unlink()
    plan = bench(*foreign(files, "--dry-run"))
    assert plan.exit_code == 0, plan.output
    skipped = [each for each in plan.stdout.splitlines() if each.startswith("skipped")]
    suite = read_suite(SUITE)
    assert len(skipped) == len(suite.problems) - 2
    assert f"skipped  pipe: no Pipe_Y.npy in {files}" in skipped
    assert f"skipped  ns-gauss: no NS-Gauss.nc in {files}" in skipped
    assert f"skipped  darcy-neuralop: no darcy_test_16.pt in {files}" in skipped
    left = [each for each in plan.stdout.splitlines() if each.startswith("to run")]
    assert len(left) == 2 * len(suite.problems["elasticity"].variants)


def test_a_folder_has_to_be_given_where_files_are_named(bench, files, tmp_path):
    (tmp_path / "empty").mkdir()
    plain = ("foreign", "--scale", "smoke", "--dry-run", "--out", "o")
    for arguments, word in (
        (plain, "give --data-folder FOLDER"),
        ((*plain, "--data-folder", "nowhere"), "nowhere"),
        ((*plain, "--data-folder", "empty"), "none of 15 problems"),
        (("irregular", *foreign(files, "--dry-run")[1:]), "are generated"),
    ):
        refused(bench(*arguments), word)
    (files / "again").mkdir()
    (files / "again" / "Pipe_Q.npy").touch()
    assert "one file of that name" in bench(*foreign(files, "--dry-run")).stderr


def test_where_files_are_is_no_part_of_a_run(tmp_path):
    suite = read_suite(SUITE)
    found = [
        [run.name for run in runs_of(suite, "cpu", folder)]
        for folder in (None, tmp_path)
    ]
    assert found[0] == found[1]
    own = {run.name.rsplit("-", 1)[1] for run in runs_of(suite, "cpu")}
    assert len(own) == len(found[0])


@pytest.mark.slow
def test_the_suite_runs_on_files_of_every_layout(bench, files):
    ran = bench(*foreign(files, "--only", "nfs"))
    assert ran.exit_code == 0, ran.output
    assert "skipped  airfoil: no NACA_Cylinder_Q.npy" in ran.stderr
    with open("o/results.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    for variant in ("nfs", "training-mean"):
        found = [row["problem"] for row in rows if row["variant"] == variant]
        assert sorted(found) == sorted(PROBLEMS)
    tested = json.loads(next(Path("o/runs").glob("darcy*/summary.json")).read_text())
    assert tested["scored"]["of_samples"] == 17  # of both files
    for row in rows:
        assert float(row["rel_l1"]) > 0 and float(row["rel_l1_last_median"]) > 0
    page = Path("o/report.html").read_text()
    assert page.count("Published, not run here") == len(WITH_PUBLISHED_ERRORS)
    assert "64 points, the solution from the coefficient" in page
    for figure in ("0.0465", "0.00640", "0.00680 to 0.00920", "own table"):
        assert figure in page
    for path in (*files.rglob("*.n*"), *files.rglob("*.pt")):
        path.unlink()
    again = bench(*foreign(files, "--only", "nfs", "--dry-run"))
    assert again.stdout.count("finished") == len(PROBLEMS)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Two sets of the suite ``stations``, with noise for measurements."""
    random, folder = np.random.default_rng(0), tmp_path / "measured"
    folder.mkdir()
    names, days = [f"S{i}" for i in range(12)], pd.date_range("2001-01-01", periods=300)
    pos = pd.DataFrame(random.random((12, 2)), names, ["lon", "lat"])
    pos.rename_axis("Code").to_csv(folder / "wind_stations.csv")
    wind = pd.DataFrame(random.random((300, 12)), days.rename("date"), names)
    wind.to_csv(folder / "wind.csv")
    table = pos.assign(elevation=random.random(12)).rename_axis("station").reset_index()
    table = table.merge(pd.DataFrame({"date": days[::30]}), how="cross")
    table[["ppt", "tmin", "tmax"]] = random.random((len(table), 3))
    table.to_csv(folder / "colorado.csv.gz", index=False)
    return folder


def test_a_packed_table_is_read_as_its_columns_say(measured):
    runs = runs_of(read_suite(SUITE.with_stem("stations")), "cpu")
    data = next(run.data for run in runs if run.problem == "lowest")
    assert isinstance(data, DataFiles)
    told = data.model_copy(update={"folder": measured}).obtain()
    with nfsgeo.open(told["data.file"], columns=told["data.columns"]) as fields:
        assert fields.component_names == ["tmin"]
        assert fields.static_names == ["elevation"]
        assert fields.num_points() == 12


@pytest.mark.slow
def test_stations_are_scored_where_they_are_held_out(bench, measured):
    only = ("--only", "wind-held-out", "--only", "mppde", "--only", "nfs")
    folder = ("--data-folder", str(measured), "--out", "o")
    ran = bench("stations", "--scale", "smoke", *folder, *only)
    assert ran.exit_code == 0, ran.output
    with open("o/results.csv") as file:
        rows = {r["variant"]: r for r in csv.DictReader(file) if r["status"] == "ok"}
    best = 12**-0.5  # the standard deviation of the noise
    for name in ("nfs", "mppde", "climatology", "ridge-each", "gradient-boosting"):
        assert best / 2 < float(rows[name]["rmse_unobserved"]) < 4 * best
    assert float(rows["climatology"]["rmse_unobserved"]) < 1.2 * best


def test_published_figures_are_of_problems_and_measures_there_are():
    for problem in read_suite(SUITE).problems:
        table = published(problem)
        assert set(table["measure"]) <= set(TITLES) and table["source"].all()
        assert (table["value"].astype(float) > 0).all()
    found = published("poisson-gauss")
    both = found[found["method"] == "GAOT"]["value"].astype(float)
    assert {0.0083, 0.0203} <= set(both)  # as they contradict each other


def test_an_empty_suite_is_told_what_it_lacks(tmp_path):
    (tmp_path / "own.yaml").write_text("")
    with pytest.raises(UserError, match="title") as error:
        read_suite(tmp_path / "own.yaml")
    assert error.value.given == "own.yaml: {}"
