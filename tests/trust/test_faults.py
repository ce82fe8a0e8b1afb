"""Faults at the moment when a file is written."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import nfsgeo
from nfsgeo.files import only_here
from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.trainer import read_history

pytestmark = pytest.mark.slow


def whole(folder: Path) -> None:
    """Every file that has its name can be read, and nobody finds the others."""
    reading: dict[str, Callable[[Path], Any]] = {
        ".ckpt": read_checkpoint,
        ".json": lambda path: json.loads(path.read_text()),
        ".yaml": read_config,
        ".csv": lambda path: path.name != "metrics.csv" or read_history(path),
    }
    for path in filter(Path.is_file, folder.rglob("*")):
        if path.suffix in reading:
            reading[path.suffix](path)
        elif path.name == "report.html":
            assert path.read_text().rstrip().endswith("</html>")


@pytest.fixture(scope="module")
def undisturbed(
    spawn: Any, training: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert spawn(folder, *training).ended()[0] == 0
    return read_checkpoint(folder / "run/checkpoints/last.ckpt")["state_dict"]


@pytest.mark.parametrize(
    ("kill_at", "before"),
    # The configuration; the first checkpoint as best; as last.
    [(1, True), (5, False), (7, True)],
)
def test_training_killed_at_a_write(
    spawn, undisturbed, training, tmp_path, kill_at, before
):
    process = spawn(tmp_path, *training, kill_at=kill_at, before=before)
    assert process.ended()[0] == -signal.SIGKILL
    whole(tmp_path)
    if (tmp_path / "run" / "config.yaml").exists():
        assert spawn(tmp_path, "train", "--resume", "run").ended()[0] == 0
    else:
        assert spawn(tmp_path, *training).ended()[0] == 0  # nothing was trained
    assert (tmp_path / "run/environment.json").exists()
    assert not list(tmp_path.rglob("*.partial"))
    found = read_checkpoint(tmp_path / "run/checkpoints/last.ckpt")["state_dict"]
    torch.testing.assert_close(dict(found), dict(undisturbed), rtol=0, atol=0)


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_commands_killed_at_their_first_write(spawn, trained, waves, tmp_path, verb):
    run = shutil.copytree(trained.root, tmp_path / "run")
    command, target = {
        "predict": (["run", "--input", waves, "--output", "out.nc"], "out.nc"),
        "evaluate": (["run"], "run/summary.json"),
    }[verb]
    (run / "summary.json").unlink()
    process = spawn(tmp_path, verb, *command, kill_at=1)
    assert process.ended()[0] == -signal.SIGKILL
    assert not (tmp_path / target).exists()
    whole(tmp_path)
    assert spawn(tmp_path, verb, *command).ended()[0] == 0
    assert (tmp_path / target).stat().st_size > 500


@pytest.fixture
def only_read(trained: RunPaths, mounted: Callable[[str], Path]) -> Path:
    """A disk with a run on it, on which nothing can be written."""
    folder = mounted("32m")
    shutil.copytree(trained.root, folder / "run")
    again = ["mount", "-o", "remount,ro", str(folder)]
    subprocess.run(again, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("verb", ["train", "generate", "predict", "evaluate"])
def test_a_disk_that_may_only_be_read(command, only_read, waves, tmp_path, verb):
    target = only_read / "new"
    arguments = {
        "train": ["--data", waves, "--out", target],
        "generate": ["burgers", "--samples", 2, "--resolution", 32, "--out", target],
        "predict": [only_read / "run", "--input", waves, "--output", target],
        "evaluate": [only_read / "run"],
    }[verb]
    result = command(verb, *arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ") and str(only_read) in line
    assert [path.name for path in only_read.iterdir()] == ["run"]
    # What is there can still be used.
    assert command("info", only_read / "run").exit_code == 0


def test_two_processes_on_one_run(spawn, trained, waves, tmp_path):
    run = RunPaths(Path(shutil.copytree(trained.root, tmp_path / "run")))
    # As if it had been stopped before the end of its first epoch.
    run.last.unlink()
    run.metrics.unlink()
    with only_here(run.root, "a run"):
        status, errors = spawn(tmp_path, "train", "--resume", "run").ended()
    assert status == 2 and "no other process works on" in errors.splitlines()[-1]
    assert not run.last.exists()
    assert spawn(tmp_path, "train", "--resume", "run").ended()[0] == 0
    assert len(read_history(run.metrics)) == 2


def test_two_processes_on_one_output(spawn, trained, waves, tmp_path):
    command = ["predict", trained.root, "--input", waves, "--output", "out.nc"]
    both = [spawn(tmp_path, *command) for _ in range(2)]
    codes = sorted(process.ended()[0] for process in both)
    assert codes in ([0, 0], [0, 2])
    expected = nfsgeo.predict(trained, waves, tmp_path / "expected.nc")
    with nfsgeo.open(tmp_path / "out.nc") as found:
        for sample in range(found.num_samples):
            one, other = (each.read(sample, slice(None)) for each in (found, expected))
            assert (one == other).all()
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_an_interrupted_run_goes_on(spawn, training, tmp_path, number):
    metrics, epochs = tmp_path / "run" / "metrics.csv", 60  # seconds to interrupt
    started = spawn(tmp_path, *training, "--epochs", epochs)
    while not metrics.exists() and started.process.is_alive():
        time.sleep(0.01)
    started.interrupt(number)
    status, errors = started.ended()
    assert status == 130, errors
    assert "nfsgeo train --resume run" in errors and "Traceback" not in errors
    assert 0 < len(read_history(metrics)) < epochs
    assert spawn(tmp_path, "train", "--resume", "run").ended()[0] == 0
    assert len(read_history(metrics)) == epochs
