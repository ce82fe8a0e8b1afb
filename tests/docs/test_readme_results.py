"""Errors in the README are those of the results that come along."""

from __future__ import annotations

import re
from pathlib import Path

from nfsgeo_benchmarks.suites.estimate import shipped_rows

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PROBLEMS = ("navier-stokes-10-to-10", "burgers-10-to-10")
ROW = re.compile(r"^\| `([a-z-]+)` \| \**([\d.e-]+)\** \| \**([\d.e-]+)\** \|$", re.M)


def test_the_headline_table_is_that_of_the_results() -> None:
    found = {
        (row["variant"], row["problem"]): f"{float(row['mae']):.2e}"
        for row in shipped_rows("irregular", "cpu")
        if row["status"] == "ok"
    }
    table = {name: errors for name, *errors in ROW.findall(README)}
    assert set(table) == {name for name, _ in found} - {"nfs-equispaced"}
    for name, errors in table.items():
        assert errors == [found[name, problem] for problem in PROBLEMS], name
    for problem in PROBLEMS:
        assert found["nfs-equispaced", problem] in README
    bold = re.findall(r"^\| `([a-z-]+)` \| \*\*", README, re.M)
    best = min(table, key=lambda name: float(table[name][0]))
    assert bold == [best]
