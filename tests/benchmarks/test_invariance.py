"""The table and the picture of errors on meshes of every kind."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from nfsgeo.evaluation.invariance import COLUMNS as OF_RUN
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo_benchmarks.suites import shipped_suites, write_invariance
from nfsgeo_benchmarks.suites.invariance import (
    COLUMNS,
    error_against_mesh,
    errors_on_meshes,
)
from nfsgeo_benchmarks.suites.reading import read_suite
from nfsgeo_benchmarks.suites.table import judge, seed_means

MESHES = ("seen", "half")


def run(folder: Path, variant: str, seed: int, errors: dict[str, float]) -> Any:
    """A row of results, and the errors of its run on meshes in its folder."""
    name = f"{variant}-{seed}"
    paths = RunPaths(folder / name)
    paths.root.mkdir()
    rows = [
        dict(zip(OF_RUN, (mesh, 8, e, 2 * e, 1.5 * e), strict=True))
        for mesh, e in errors.items()
    ]
    write_rows(paths.meshes, OF_RUN, rows)
    known = {
        "variant": variant,
        "problem": "ns-64-4-to-2",
        "seed": seed,
        "folder": name,
    }
    sizes = {"n_s": 64, "n_t": 4, "n_t_out": 2, "status": "ok"}
    every = {"mae": 1.0, "rmse": 1.0, "rel_l2": 1.0, "seconds_per_epoch": 1.0}
    missing = {f"mae_{m}": None for m in ("seen", "half", "equispaced")}
    return known | sizes | every | missing | errors_on_meshes(paths)


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    found = [
        run(tmp_path, "default-equispaced", 0, {"equispaced": 1.0}),
        run(tmp_path, "default", 1, {"seen": 3.0, "half": 4.0}),
        run(tmp_path, "default", 0, {"seen": 1.0, "half": 2.0}),
    ]
    lost = dict.fromkeys(found[1], None) | {"status": "missing", "seed": 2}
    return [*found, lost | {"variant": "default", "problem": "ns-64-4-to-2"}]


def test_the_table_has_grids_with_their_variant(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    with open(write_invariance(rows, MESHES, tmp_path), newline="") as file:
        written = list(csv.DictReader(file))
    assert tuple(written[0]) == COLUMNS
    assert COLUMNS[:8] == (
        *("pde", "n_t", "variant", "mesh", "seed"),
        *("mae_observed", "mae_unobserved", "mae"),
    )
    assert [(row["mesh"], row["seed"]) for row in written] == [
        *(("equispaced", "0"), ("seen", "0"), ("seen", "1")),
        *(("half", "0"), ("half", "1")),
    ]
    assert {row["variant"] for row in written} == {"default"}
    assert {(row["pde"], row["n_t"]) for row in written} == {("ns-64", "4")}
    assert float(written[3]["mae_unobserved"]) == 4.0


def test_cells_hold_the_meshes_that_there_are(rows: list[dict[str, Any]]) -> None:
    cells = seed_means(rows)
    seen = cells["default", "ns-64-4-to-2"].values
    assert seen["mae_seen"] == 2 and seen["mae_unobserved_half"] == 6
    assert "mae_equispaced" not in seen
    figure = error_against_mesh(cells, MESHES)
    assert figure is not None and len(figure.axes) == 1
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == ["equispaced", *MESHES]
    assert error_against_mesh(seed_means(rows[-1:]), MESHES) is None


def test_grids_have_a_place_where_there_are_any(rows: list[dict[str, Any]]) -> None:
    figure = error_against_mesh(seed_means(rows[1:]), MESHES)
    assert figure is not None
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == list(MESHES)


def test_bounds_are_judged_over_meshes_and_grids(rows: list[dict[str, Any]]) -> None:
    claims = [
        claim.model_copy(update={"problems": ()})
        for claim in read_suite(shipped_suites()["invariance"]).claims
        if claim.measure == "mae_seen" and claim.over != ("paper",)
    ]
    ratios = {verdict.ratio for verdict in judge(claims, seed_means(rows))}
    assert ratios == {2.0}
