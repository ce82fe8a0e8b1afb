"""A trained run that tests may read, and a copy that they may spoil."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import nfsgeo
from nfsgeo.training import RunPaths


@pytest.fixture(scope="session")
def trained(waves: Path, tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = tiny | {"trainer.epochs": 2, "data.query_points": 16}
    out = tmp_path_factory.mktemp("trained") / "run"
    return nfsgeo.fit(nfsgeo.prepare(waves, chosen), out).root


@pytest.fixture
def run(trained: Path) -> RunPaths:
    return RunPaths(Path(shutil.copytree(trained, "run")))
