"""A suite that runs within moments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import Run, collect, read_suite, runs_of
from nfsgeo_benchmarks.suites.reading import read_scales
from nfsgeo_cli import main

SUITE = """
title: small
problems:
  waves:
    data: waves
    at:
      tiny: {data.batch_size: 2}
variants:
  dse: {}
  wide: {model.name: dse, model.settings.width: 8}
claims:
  - title: wide is far ahead
    variant: wide
    over: [dse]
    at_most: 1.0e-9
    tried: {waves: more epochs}
"""
SCALES = """
tiny:
  title: moments
  data:
    waves: {equation: burgers, samples: 12, resolution: 64, records: 4}
  settings:
    data.n_in: 2
    data.n_out: 2
    data.points: 32
    model.settings.width: 4
    model.settings.depth: 1
    trainer.epochs: 2
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache of data for all tests here."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.getbasetemp() / "suite-cache")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with the suite and its scales."""
    (tmp_path / "small.yaml").write_text(SUITE)
    (tmp_path / "scales.yaml").write_text(SCALES)
    return tmp_path


@pytest.fixture
def small_runs(small: Path) -> list[Run]:
    """The runs of the suite."""
    scales = read_scales(small / "scales.yaml")
    return runs_of(read_suite(small / "small.yaml"), "tiny", scales)


@pytest.fixture
def table() -> Callable[[list[Run], Path], list[dict[str, Any]]]:
    """Rows of finished runs without what differs from time to time."""

    def rows(runs: list[Run], out: Path) -> list[dict[str, Any]]:
        found = collect(runs, out)
        for row in found:
            del row["seconds_per_epoch"], row["peak_memory_bytes"]
        return found

    return rows


@pytest.fixture
def bench(small: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `nfsgeo bench` where the suite is the only one."""
    scales = read_scales(small / "scales.yaml")
    monkeypatch.setattr(
        suites, "shipped_suites", lambda: {"small": small / "small.yaml"}
    )
    monkeypatch.setattr(suites, "shipped_scales", lambda: scales)
    monkeypatch.chdir(small)
    return lambda *arguments: CliRunner().invoke(main, ["bench", *arguments])
