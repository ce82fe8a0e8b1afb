"""The paper's numbers, and where they stand in the tables."""

from pathlib import Path

import pandas as pd
import pytest

import nfsgeo_benchmarks
from nfsgeo_benchmarks.sources import printed
from nfsgeo_benchmarks.suites import read_suite, shipped_scales, shipped_suites
from nfsgeo_benchmarks.suites.report import paper_values

FILE = Path(nfsgeo_benchmarks.__file__).parent / "paper.csv"


def test_known_cells() -> None:
    irregular = printed("navier-stokes", n_s=4096, n_t=10, n_t_out=10, grid=False)
    assert (irregular["nfs"], irregular["agcrn"]) == ("9.33e-04", "OOM")
    doubtful = printed("darcy", n_s=16384, n_t=0, n_t_out=1, grid=True)
    assert (doubtful["fno"], doubtful["nfs"]) == ("(7.09e-04)", "2.25e-04")
    assert printed("darcy", n_s=1, n_t=0, n_t_out=1, grid=True) == {}


def test_cells_that_contradict_themselves_are_doubted() -> None:
    table = pd.read_csv(FILE)
    table = table[table["doubt"].isna() & (table["value"] != "OOM")]
    keys = [*table.columns[: table.columns.get_loc("measure")]]
    table["value"] = table["value"].astype(float)
    errors = table.pivot(index=keys, columns="measure", values="value")
    pairs = errors.dropna(subset=["mae", "rmse"])
    assert len(pairs) > 200 and (pairs["mae"] <= pairs["rmse"]).all()


@pytest.mark.parametrize("name", ["irregular", "equispaced"])
def test_every_problem_of_the_headline_suites_stands_in_the_paper(name: str) -> None:
    suite = read_suite(shipped_suites()[name])
    cells = paper_values(suite, shipped_scales())
    assert {problem for problem, _ in cells} == set(suite.problems)
    for problem in suite.problems:
        assert float(cells[problem, "nfs"].strip("()")) > 0


def test_equations_of_other_options_are_not_the_papers() -> None:
    suite = read_suite(shipped_suites()["accuracy"])
    problems = {problem for problem, _ in paper_values(suite, shipped_scales())}
    assert "darcy-256" in problems and "burgers-steep" not in problems
