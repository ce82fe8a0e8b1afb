"""A trained run that tests may read, and a copy that they may spoil."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import nfsgeo
from nfsgeo.training import RunPaths


@pytest.fixture(scope="session")
def trained(waves: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}
    overrides: dict[str, Any] = {
        f"model.settings.{key}": value for key, value in settings.items()
    }
    overrides |= {"trainer.epochs": 2, "trainer.device": "cpu"}
    out = tmp_path_factory.mktemp("trained") / "run"
    return nfsgeo.fit(nfsgeo.prepare(waves, overrides), out).root


@pytest.fixture
def run(trained: Path) -> RunPaths:
    return RunPaths(Path(shutil.copytree(trained, "run")))
