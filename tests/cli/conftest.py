"""Commands in this process and in one of their own."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nfsgeo_cli import main

Command = Callable[..., Result]


@pytest.fixture
def nfsgeo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in an empty folder, with a cache that is empty too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(each) for each in arguments])
        assert "…" not in result.stdout, "a table wider than 80 columns was cut"
        return result

    return run


class Started:
    """A command in a process of its own."""

    def __init__(self, process: BaseProcess, folder: Path) -> None:
        self._process, self._folder = process, folder

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        os.kill(self._process.pid or 0, signal.SIGINT)

    def ended(self) -> tuple[int, str, str]:
        """Waits; its status, and what it printed to stdout and stderr."""
        self._process.join(300)
        assert self._process.exitcode is not None, "it hangs"
        out, errors = (
            self._folder.with_name(f"{self._folder.name}.{name}").read_text()
            for name in ("stdout", "stderr")
        )
        return self._process.exitcode, out, errors


@pytest.fixture
def spawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Started]:
    """Starts a command in a process of its own, without waiting for its imports."""
    # By a name under which the other processes find it too.
    monkeypatch.syspath_prepend(Path(__file__).parent)
    target = importlib.import_module("forked").run
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nfsgeo.api", "nfsgeo.report", "forked"])

    def start(*arguments: object) -> Started:
        texts = [str(argument) for argument in arguments]
        environment = os.environ | {"COLUMNS": "80"}
        process = context.Process(
            target=target, args=(texts, str(tmp_path), environment)
        )
        process.start()
        return Started(process, tmp_path)

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
def run(trained: Path, tmp_path: Path) -> Path:
    """A run that a test may spoil."""
    return Path(shutil.copytree(trained, tmp_path / "a-run"))
