"""The paper's numbers, and where they stand in the tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import nfsgeo_benchmarks
from nfsgeo_benchmarks.sources import printed
from nfsgeo_benchmarks.suites import read_suite, shipped_scales, shipped_suites
from nfsgeo_benchmarks.suites.report import paper_values

FILE = Path(nfsgeo_benchmarks.__file__).parent / "paper.csv"
KEYS = {
    "table",
    "equation",
    "n_s",
    "n_t",
    "n_t_out",
    "points",
    "variant",
    "mesh_factor",
}
DOUBTFUL = {  # by table, equation, variant, points, time steps in and out
    ("darcy", "darcy", "fno", 16384, 0, 1),
    ("equispaced-from-1", "kdv", "nfs", 1024, 1, 20),
    ("equispaced-from-1", "kdv", "fno", 512, 1, 40),
    ("irregular-from-10", "kdv", "gcgru", 512, 10, 10),
    *(
        (f"irregular-from-{n_t}", "kdv", "nfs", n_s, n_t, n_t_out)
        for n_t in (1, 10)
        for n_s, n_t_out in ((512, 10), (256, 20), (512, 40))
    ),
}


def test_known_cells() -> None:
    irregular = printed("navier-stokes", n_s=4096, n_t=10, n_t_out=10, grid=False)
    assert (irregular["nfs"], irregular["agcrn"]) == ("9.33e-04", "OOM")
    doubtful = printed("darcy", n_s=16384, n_t=0, n_t_out=1, grid=True)
    assert (doubtful["fno"], doubtful["nfs"]) == ("(7.09e-04)", "2.25e-04")
    assert printed("darcy", n_s=1, n_t=0, n_t_out=1, grid=True) == {}


def test_doubtful_cells_are_those_that_cannot_be_right() -> None:
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = set()
    errors: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        sizes = tuple(int(row[name]) for name in ("n_s", "n_t", "n_t_out"))
        if row["doubt"]:
            found.add((row["table"], row["equation"], row["variant"], *sizes))
        elif row["measure"] in ("mae", "rmse") and row["value"] != "OOM":
            key = tuple(v for k, v in row.items() if k in KEYS)
            errors.setdefault(key, {})[row["measure"]] = float(row["value"])
    assert found == DOUBTFUL
    for pair in errors.values():  # of what is left, none contradicts itself
        assert pair["mae"] <= pair.get("rmse", pair["mae"])


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
