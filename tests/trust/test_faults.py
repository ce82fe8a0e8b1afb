"""Faults at the moment when a file is written."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch

import nfsgeo
from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history
from nfsgeo.training.processes import only_here

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
TINY = "width=4 modes=2 time_modes=2 depth=1 grid=8"


@pytest.fixture(scope="module")
def start() -> Any:
    """Starts a command that is killed at a write, in a process of its own."""
    # By a name under which the other processes find it too.
    sys.path.insert(0, str(HERE))
    if importlib.util.find_spec("killing") is None:
        raise AssertionError("tests/trust/killing.py is gone")
    import killing

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nfsgeo.api", "nfsgeo.report", "killing"])

    def begin(
        folder: Path, *arguments: object, kill_at: int = 0, before: bool = True
    ) -> BaseProcess:
        texts = [str(argument) for argument in arguments]
        process = context.Process(
            target=killing.run, args=(texts, kill_at, before, str(folder))
        )
        process.start()
        return process

    yield begin
    sys.path.remove(str(HERE))


def ended(process: BaseProcess) -> int:
    process.join(300)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def training(waves: Path) -> list[object]:
    options: list[object] = ["train", "--data", waves, "--epochs", 2, "--out", "run"]
    options += ["--set", "trainer.device=cpu", "--set", "data.max_train=4"]
    for setting in TINY.split():
        options += ["--set", f"model.settings.{setting}"]
    return options


def whole(folder: Path) -> None:
    """Every file that has its name can be read, and nobody finds the others."""
    for path in folder.rglob("*"):
        if path.name.endswith(".partial") or path.is_dir():
            continue
        if path.suffix == ".ckpt":
            read_checkpoint(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".yaml":
            read_config(path)
        elif path.name == "metrics.csv":
            read_history(path)
        elif path.name == "report.html":
            assert path.read_text().rstrip().endswith("</html>")


@pytest.fixture(scope="module")
def undisturbed(
    start: Any, waves: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert ended(start(folder, *training(waves))) == 0
    return read_checkpoint(folder / "run/checkpoints/last.ckpt")["state_dict"]


@pytest.mark.parametrize(
    ("kill_at", "before"),
    # The configuration; the first checkpoint, its place as best, its place as last.
    [(2, True), (4, False), (5, True), (6, True)],
)
def test_training_killed_at_a_write(
    start: Any,
    undisturbed: dict[str, torch.Tensor],
    waves: Path,
    tmp_path: Path,
    kill_at: int,
    before: bool,
):
    command = training(waves)
    process = start(tmp_path, *command, kill_at=kill_at, before=before)
    assert ended(process) == -signal.SIGKILL
    whole(tmp_path)
    if (tmp_path / "run" / "config.yaml").exists():
        assert ended(start(tmp_path, "train", "--resume", "run")) == 0
    else:
        # Nothing was trained: the folder is refused, and another one serves.
        assert ended(start(tmp_path, *command)) == 2
        shutil.rmtree(tmp_path / "run")
        assert ended(start(tmp_path, *command)) == 0
    found = read_checkpoint(tmp_path / "run/checkpoints/last.ckpt")["state_dict"]
    torch.testing.assert_close(dict(found), dict(undisturbed), rtol=0, atol=0)


@pytest.mark.parametrize("verb", ["predict", "convert", "export", "evaluate"])
def test_commands_killed_at_their_first_write(
    start: Any, trained: RunPaths, waves: Path, tmp_path: Path, verb: str
):
    run = shutil.copytree(trained.root, tmp_path / "run")
    command, target = {
        "predict": (["run", "--input", waves, "--output", "out.nc"], "out.nc"),
        "convert": ([waves, "--out", "out.nc"], "out.nc"),
        "export": (["run", "--out", "out.pt2"], "out.pt2"),
        "evaluate": (["run"], "run/summary.json"),
    }[verb]
    (run / "summary.json").unlink()
    process = start(tmp_path, verb, *command, kill_at=1)
    assert ended(process) == -signal.SIGKILL
    assert not (tmp_path / target).exists()
    whole(tmp_path)
    assert ended(start(tmp_path, verb, *command)) == 0
    assert (tmp_path / target).stat().st_size > 500


@pytest.fixture
def only_read(trained: RunPaths, mounted: Callable[[str], Path]) -> Path:
    """A disk with a run on it, on which nothing can be written."""
    folder = mounted("32m")
    shutil.copytree(trained.root, folder / "run")
    again = ["mount", "-o", "remount,ro", str(folder)]
    subprocess.run(again, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "verb", ["train", "generate", "convert", "predict", "export", "evaluate"]
)
def test_a_disk_that_may_only_be_read(
    command: Any, only_read: Path, waves: Path, tmp_path: Path, verb: str
):
    target = only_read / "new"
    arguments = {
        "train": ["--data", waves, "--out", target],
        "generate": ["burgers", "--samples", 2, "--resolution", 32, "--out", target],
        "convert": [waves, "--out", target],
        "predict": [only_read / "run", "--input", waves, "--output", target],
        "export": [only_read / "run", "--out", target],
        "evaluate": [only_read / "run"],
    }[verb]
    result = command(verb, *arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ") and str(only_read) in line
    assert [path.name for path in only_read.iterdir()] == ["run"]
    # What is there can still be used.
    assert command("info", only_read / "run").exit_code == 0


def test_two_processes_on_one_run(
    start: Any, trained: RunPaths, waves: Path, tmp_path: Path
):
    run = RunPaths(Path(shutil.copytree(trained.root, tmp_path / "run")))
    # As if it had been stopped before the end of its first epoch.
    run.last.unlink()
    run.metrics.unlink()
    with only_here(run.root, "a run"):
        assert ended(start(tmp_path, "train", "--resume", "run")) == 2
    told = (tmp_path / "stderr.txt").read_text().splitlines()
    assert "no other process works on" in told[-1]
    assert not run.last.exists()
    assert ended(start(tmp_path, "train", "--resume", "run")) == 0
    assert len(read_history(run.metrics)) == 2


def test_two_processes_on_one_output(
    start: Any, trained: RunPaths, waves: Path, tmp_path: Path
):
    command = ["predict", trained.root, "--input", waves, "--output", "out.nc"]
    both = [start(tmp_path, *command) for _ in range(2)]
    codes = sorted(map(ended, both))
    assert codes in ([0, 0], [0, 2])
    with nfsgeo.open(tmp_path / "out.nc") as found:
        expected = nfsgeo.predict(trained, waves, tmp_path / "expected.nc")
        for sample in range(found.num_samples):
            assert (
                found.read(sample, slice(None)) == expected.read(sample, slice(None))
            ).all()
    assert not list(tmp_path.glob("*.partial*"))
