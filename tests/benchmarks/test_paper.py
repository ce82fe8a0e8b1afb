"""The paper's numbers, and where they stand in the tables."""

from pathlib import Path

import pandas as pd
import pytest

import nfsgeo_benchmarks
from nfsgeo_benchmarks.suites import read_suite, shipped_suites
from nfsgeo_benchmarks.suites.printed_errors import paper_values

FILE = Path(nfsgeo_benchmarks.__file__).parent / "paper.csv"


def test_cells_that_contradict_themselves_are_doubted():
    table = pd.read_csv(FILE)
    table = table[table["doubt"].isna() & (table["value"] != "OOM")]
    keys = [*table.columns[: table.columns.get_loc("measure")]]
    table["value"] = table["value"].astype(float)
    errors = table.pivot(index=keys, columns="measure", values="value")
    pairs = errors.dropna(subset=["mae", "rmse"])
    assert len(pairs) > 200 and (pairs["mae"] <= pairs["rmse"]).all()


def values(name: str) -> dict[tuple[str, str], str]:
    return paper_values(read_suite(shipped_suites()[name]))


@pytest.mark.parametrize("name", ["irregular", "equispaced"])
def test_every_problem_of_the_headline_suites_stands_in_the_paper(name):
    problems, cells = read_suite(shipped_suites()[name]).problems, values(name)
    assert {problem for problem, _ in cells} == set(problems)
    assert all(float(cells[problem, "nfs"].strip("()")) > 0 for problem in problems)


def test_known_cells():
    irregular, grid = values("irregular"), values("equispaced")
    assert irregular["navier-stokes-10-to-10", "nfs"] == "0.000933"
    assert irregular["navier-stokes-10-to-10", "agcrn"] == "OOM"
    doubtful = [grid["darcy-128", name] for name in ("fno", "nfs")]
    assert doubtful == ["(0.000709)", "0.000225"]


def test_equations_of_other_options_are_not_the_papers():
    assert values("irregular") and not values("accuracy")
