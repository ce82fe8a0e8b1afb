"""Errors in the README are those of the results that come along."""

from __future__ import annotations

import re
from pathlib import Path

from nfsgeo_benchmarks.suites.results import shipped_rows

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PROBLEMS = (
    "navier-stokes-10-to-10",
    "burgers-10-to-10",
    "burgers-1-to-10",
    "kdv-10-to-10",
    "darcy-1024",
)
ERROR = r"\| \**([\d.e-]+)\** "
ROW = re.compile(r"^\| `([a-z-]+)` " + len(PROBLEMS) * ERROR + r"\|$", re.M)
# The network of another row, trained otherwise.
REFERENCES = {"nfs-one-mesh", "nfs-equispaced"}


def test_the_headline_table_is_that_of_the_results() -> None:
    found = {
        (row["variant"], row["problem"]): f"{float(row['mae']):.2e}"
        for row in shipped_rows("irregular", "cpu")
        if row["status"] == "ok"
    }
    table = {name: errors for name, *errors in ROW.findall(README)}
    assert set(table) == {name for name, _ in found}
    for name, errors in table.items():
        assert errors == [found[name, problem] for problem in PROBLEMS], name
    cells = {
        line.split("|")[1].strip(" `"): line.split("|")[2:-1]
        for line in README.splitlines()
        if ROW.match(line)
    }
    for column in range(len(PROBLEMS)):
        bold = [name for name, row in cells.items() if "**" in row[column]]
        best = min(set(table) - REFERENCES, key=lambda name: float(table[name][column]))
        assert bold == [best], PROBLEMS[column]
