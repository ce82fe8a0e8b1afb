"""A suite that runs within moments."""

import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import nfsgeo_benchmarks
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import Run, read_suite, runs_of
from nfsgeo_cli import main

SUITE: dict[str, Any] = {
    "title": "small",
    "problems": {"waves": {"data": "waves", "at": {"tiny": {"data.batch_size": 2}}}},
    "variants": {"dse": {}, "wide": {"model.name": "dse", "model.settings.width": 8}},
}
SIZES = {"data.n_in": 2, "data.n_out": 2, "data.points": 32, "trainer.epochs": 2}
WAVES = {"equation": "burgers", "samples": 12, "resolution": 64, "records": 4}
SCALES: dict[str, Any] = {
    "tiny": {
        "title": "moments",
        "data": {"waves": WAVES},
        "settings": SIZES | {"model.settings.width": 4, "model.settings.depth": 1},
    }
}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache of data for all tests here."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.getbasetemp() / "suite-cache")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the suite is the only one, beside its scales."""
    (tmp_path / "suites").mkdir()
    write(tmp_path / "suites" / "small.yaml", SUITE)
    write(tmp_path / "scales.yaml", SCALES)
    monkeypatch.setattr(nfsgeo_benchmarks, "FOLDER", tmp_path)
    return tmp_path / "suites" / "small.yaml"


@pytest.fixture
def runs_with(small: Path) -> Callable[..., list[Run]]:
    """The runs of the suite with other values, by places such as ``variants/dse``.

    Places in the scales begin with ``scales/``.
    """

    def make(**changes: Any) -> list[Run]:
        files = {"suite": deepcopy(SUITE), "scales": deepcopy(SCALES)}
        for key, value in changes.items():
            place, parts = files, key.split("/")
            if parts[0] != "scales":
                parts.insert(0, "suite")
            for name in parts[:-1]:
                place = place[name]
            place[parts[-1]] = value
        write(small, files["suite"])
        write(small.parents[1] / "scales.yaml", files["scales"])
        return runs_of(read_suite(small), "tiny")

    return make


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture
def table() -> Callable[[list[Run], Path], list[dict[str, Any]]]:
    """Rows of finished runs without what differs from time to time."""

    def rows(runs: list[Run], out: Path) -> list[dict[str, Any]]:
        found = suites.collect(runs, out)
        for row in found:
            for name in ("seconds_per_epoch", "cpu_seconds", "peak_memory_bytes"):
                del row[name]
        return found

    return rows


@pytest.fixture
def bench() -> Callable[..., Any]:
    """Runs `nfsgeo bench`."""
    return lambda *arguments: CliRunner().invoke(main, ["bench", *arguments])
