"""Commands in this process."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nfsgeo_cli import main

Command = Callable[..., Result]


@pytest.fixture
def nfsgeo() -> Command:
    """Runs a command."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(each) for each in arguments])
        assert "…" not in result.stdout, "a table wider than 80 columns was cut"
        return result

    return run


@pytest.fixture(scope="session")
def training(waves: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What a training in ``runs/nfs-waves-1`` of an empty folder printed."""
    settings = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}
    options = [f"--set=model.settings.{key}={value}" for key, value in settings.items()]
    options += ["--data", str(waves), "--epochs", "2", "--seed", "3"]
    options += ["--set", "data.max_train=10"]
    here = os.getcwd()
    os.chdir(tmp_path_factory.getbasetemp())
    try:
        return CliRunner().invoke(main, ["train", *options])
    finally:
        os.chdir(here)


@pytest.fixture(scope="session")
def trained(training: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that run, for tests that only read it."""
    assert training.exit_code == 0, training.output
    return tmp_path_factory.getbasetemp() / "runs" / "nfs-waves-1"


@pytest.fixture
def run(trained: Path) -> Path:
    """A run that a test may spoil."""
    return Path(shutil.copytree(trained, Path("a-run")))
