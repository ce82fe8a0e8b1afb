"""Commands in this process and in one of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nfsgeo_cli import main

Command = Callable[..., Result]
NFSGEO = [sys.executable, "-c", "from nfsgeo_cli import main; main()"]


@pytest.fixture
def nfsgeo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in an empty folder, with a cache that is empty too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments])

    return run


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a command in a process of its own."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*NFSGEO, *(str(each) for each in arguments)],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background of a shell ignores Ctrl-C, and would pass
            # that on.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )

    return start


@pytest.fixture
def quick(tiny: dict[str, Any], waves: Path) -> list[str]:
    """Options of a training of a second."""
    options = ["--data", str(waves)]
    for key, value in tiny.items():
        options += ["--set", f"{key}={value}"]
    return options


@pytest.fixture(scope="session")
def training(waves: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What a training in ``runs/nfs-waves-1`` of an empty folder printed."""
    settings = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}
    options = [f"--set=model.settings.{key}={value}" for key, value in settings.items()]
    options += ["--data", str(waves), "--epochs", "2", "--seed", "3"]
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
def run(trained: Path, tmp_path: Path) -> Path:
    """A run that a test may spoil."""
    return Path(shutil.copytree(trained, tmp_path / "a-run"))
