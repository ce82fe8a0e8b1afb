"""Tables of the page on meshes are those of the results that come along."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mesh-invariance.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "docs" / "making"))
from invariance import Errors, invariance_tables, read_errors  # noqa: E402


@pytest.fixture(scope="module")
def errors() -> Errors:
    return read_errors()


def test_the_page_has_the_tables_of_the_results(errors: Errors) -> None:
    for table in invariance_tables(errors).split("\n\n"):
        assert table in PAGE, "run docs/making/invariance.py and paste what it prints"


def test_the_results_have_what_is_asked_of_them(errors: Errors) -> None:
    assert {seed for *_, seed in errors} == {"0", "1", "2"}
    meshes = {mesh for _, _, mesh, _ in errors}
    nested = {"nested-2", "nested-3", "nested-4"}
    sizes = {"disjoint", "half", "quarter", "clustered", "off-grid"}
    assert {"equispaced", "seen"} | nested | sizes <= meshes


def test_ratios_are_of_means_over_the_seeds_that_both_have() -> None:
    made = {
        ("ns-1024", "10", "seen", "0"): (1.0, 2.0),
        ("ns-1024", "10", "seen", "1"): (3.0, 6.0),
        ("ns-1024", "10", "disjoint", "1"): (6.0, 6.0),
        ("ns-1024", "10", "off-grid", "1"): (4.5, 9.0),
        ("ns-1024", "10", "noise-10", "0"): (7.0, 9.0),
    }
    first, second, noise, bounds = invariance_tables(made).split("\n\n")
    cells = [cell.strip() for cell in first.splitlines()[-1].split("|")]
    assert cells[2] == "2.00e+00 ± 1.4e+00" and cells[-3:-1] == ["1.50", "3.00"]
    cells = [cell.strip() for cell in noise.splitlines()[-1].split("|")]
    assert cells[2:-1] == ["2.00e+00 ± 1.4e+00", "–", "7.00e+00"]
    columns = [cell.strip(" `") for cell in second.splitlines()[0].split("|")]
    ratios = [cell.strip() for cell in second.splitlines()[-1].split("|")]
    assert dict(zip(columns, ratios, strict=True))["disjoint"] == "2.00"
    assert "| `disjoint` over `seen` | 1.05 | **2.000** | Navier" in bounds
    assert "nested-4" not in bounds  # was not measured
