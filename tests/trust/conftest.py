"""A trained run to spoil, and commands in this process or in one of their own."""

import importlib
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import nfsgeo
from nfsgeo.training import RunPaths
from nfsgeo_cli import main

TINY = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}
Command = Callable[..., Result]


@pytest.fixture(scope="session")
def trained(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """The small run, evaluated, to be copied."""
    folder = tmp_path_factory.mktemp("trust") / "run"
    run = RunPaths(Path(shutil.copytree(trained, folder)))
    nfsgeo.evaluate(run, factors=[2], repeats=2)
    return run


@pytest.fixture(scope="session")
def training(waves: Path) -> list[str]:
    """The command that trains in a second, in the folder ``run``."""
    command = ["train", "--data", str(waves), "--epochs", "2", "--out", "run"]
    command += ["--device", "cpu", "--set", "data.max_train=4"]
    return command + [f"--set=model.settings.{k}={v}" for k, v in TINY.items()]


@pytest.fixture
def command() -> Command:
    """Runs a command."""

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments])

    return run


class Started:
    """A command in a process of its own."""

    def __init__(self, process: BaseProcess, folder: Path) -> None:
        self.process, self.folder = process, folder

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Sends the signal of Ctrl-C, or another one."""
        os.kill(self.process.pid or 0, number)

    def ended(self) -> tuple[int, str]:
        """Waits; its status, and what it printed to stderr."""
        self.process.join(300)
        hangs = self.process.exitcode is None
        if hangs:
            self.process.kill()
        assert not hangs, "it hangs"
        assert self.process.exitcode is not None
        return self.process.exitcode, Path(f"{self.folder}.stderr").read_text()


@pytest.fixture(scope="session")
def spawn() -> Iterator[Callable[..., Started]]:
    """Starts a command in a folder, without waiting for its imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nfsgeo.api", "nfsgeo.report", "forked"])

    def start(folder: Path, *arguments: object, **spoil: Any) -> Started:
        texts, environment = list(map(str, arguments)), os.environ | {"COLUMNS": "80"}
        process = context.Process(
            target=target, args=(texts, str(folder), environment), kwargs=spoil
        )
        process.start()
        return Started(process, folder)

    with pytest.MonkeyPatch.context() as patch:
        # By a name under which the other processes find it too.
        patch.syspath_prepend(Path(__file__).parent)
        target = importlib.import_module("forked").run
        yield start
