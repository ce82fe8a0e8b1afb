"""A trained run to spoil, and commands in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nfsgeo
from nfsgeo.training import RunPaths
from nfsgeo_cli import main

SETTINGS = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}
Command = Callable[..., Result]


@pytest.fixture(scope="session")
def trained(waves: Path, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """A small finished and evaluated run, to be copied."""
    chosen = {f"model.settings.{key}": value for key, value in SETTINGS.items()}
    chosen |= {"trainer.epochs": 2, "trainer.device": "cpu", "data.max_train": 4}
    experiment = nfsgeo.prepare(waves, chosen)
    run = nfsgeo.fit(experiment, tmp_path_factory.mktemp("trust") / "run")
    nfsgeo.evaluate(run, factors=[2], repeats=2)
    return run


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments])

    return run
