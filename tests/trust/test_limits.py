"""Limits of the system, and streams that are closed: one line, and whole files."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nfsgeo
from nfsgeo.files import exhausted, growing
from nfsgeo.training.covariance import one_thread

GENERATION = "generate burgers --samples 2 --resolution 64 --records 101 --workers 1"


@pytest.fixture
def commands(trained: Any, waves: Path, training: list[str]) -> dict[str, list[Any]]:
    """Commands that write a file or a run."""
    return {
        "train": training,
        "predict": ["predict", trained.root, "--input", waves, "--output", "p.nc"],
        "table": ["convert", waves, "--out", "w.csv"],
        "convert": ["convert", waves, "--out", "w.nc"],
        "generate": [*GENERATION.split(), "--out", "b.nc"],
    }


def whole(folder: Path) -> None:
    """Nothing is half-written, and whatever has a name can be read."""
    assert not list(folder.glob("*.partial.*")) + list(folder.rglob("*.[0-9]*.partial"))
    for path in folder.glob("*.nc"):
        nfsgeo.open(path).read(0, slice(None))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limits", "words"),
    [
        ("predict", {"FSIZE": 20_000}, "limited size"),
        ("predict", {"FSIZE": 0}, ""),  # there is no room for the line
        ("train", {"FSIZE": 20_000}, "limited size"),
        ("table", {"FSIZE": 20_000}, "limited size"),
        ("convert", {"FSIZE": 1000}, "limited size"),
        ("convert", {"FSIZE": 100_000}, "limited size"),
        ("generate", {"FSIZE": 1000}, "limited size"),
        ("predict", {"NOFILE": 4}, "too many open files"),
        ("predict", {"NOFILE": 7}, "too many open files"),
        ("convert", {"NOFILE": 4}, "too many open files"),
        ("predict", {"AS": 100_000}, "not enough memory"),
        ("train", {"AS": 1_000_000}, "not enough memory"),
        ("train", {"AS": 12_000_000}, "not enough memory"),
    ],
)
def test_limits_of_the_system(spawn, commands, tmp_path, name, limits, words):
    work = tmp_path / "work"
    work.mkdir()
    # Where memory ends CPython waits without end for a thread, such as TensorBoard's.
    more = ["--set", "trainer.logger=none"] if name == "train" else []
    status, errors = spawn(work, *commands[name], *more, limits=limits).ended()
    assert status == 2 and "Traceback" not in errors
    if words:
        assert errors.splitlines()[-1].startswith("Error: ") and words in errors
    whole(work)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(2,), (1,), (0, 1, 2)])
@pytest.mark.parametrize("name", ["predict", "train"])
def test_closed_streams(spawn, commands, tmp_path, name, closed):
    work = tmp_path / "work"
    work.mkdir()
    assert spawn(work, *commands[name], closed=closed).ended()[0] == 0
    made = work / ("p.nc" if name == "predict" else "run/report.html")
    assert made.stat().st_size > 10_000
    whole(work)


@pytest.mark.slow
def test_a_reader_that_has_gone(waves, tmp_path):
    program = "import nfsgeo_cli; nfsgeo_cli.main()"
    for command in (["info", str(waves)], ["convert", str(waves), "--out", "o.csv"]):
        reader, writer = os.pipe()
        os.close(reader)
        call = [sys.executable, "-c", program, *command]
        done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path)
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(24, "Too many open files"), "ulimit -n"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you ..."), "memory"),
        (MemoryError(), "memory"),
        (OSError(27, "File too large"), "ulimit -f"),
        (OSError(28, "No space left on device"), "disk is full"),
    ],
)
def test_errors_of_exhausted_resources_are_known(error, words):
    assert words in str(exhausted(error))
    try:
        raise ValueError("damaged") from error
    except ValueError as outer:
        assert words in str(exhausted(outer))
    assert exhausted(ValueError("a file that is damaged")) is None


def test_files_and_their_folders_reach_the_disk(tmp_path, monkeypatch):
    synced, sync = list[str](), os.fsync

    def syncing(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", syncing)
    with growing(tmp_path / "a.txt") as partial:
        partial.write_text("whole")
    assert synced == [str(partial), str(tmp_path)]


def test_small_fits_run_on_one_thread():
    import torch

    threads = torch.get_num_threads()
    inside: Callable[[], int] = one_thread()(torch.get_num_threads)
    assert inside() == 1 and torch.get_num_threads() == threads
