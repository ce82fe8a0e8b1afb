"""A disk that fills up: one line, status 2, and nothing half-written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nfsgeo.training.checkpoints import read_checkpoint


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight megabytes with 100 kB free, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    free = shutil.disk_usage(folder).free
    (folder / "filler").write_bytes(b"0" * (free - 100_000))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


Spawn = Callable[..., "subprocess.Popen[str]"]


def test_training(spawn: Spawn, quick: list[str], small_disk: Path) -> None:
    process = spawn("train", *quick, "--out", small_disk / "run")
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.splitlines()[-1].startswith("Error: the disk is full")
    assert "Traceback" not in errors
    assert not list(small_disk.rglob("*.partial"))
    for checkpoint in small_disk.rglob("*.ckpt"):
        read_checkpoint(checkpoint)
    (small_disk / "filler").unlink()
    process = spawn("train", "--resume", small_disk / "run")
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def test_prediction(spawn: Spawn, trained: Path, waves: Path, small_disk: Path) -> None:
    target = small_disk / "out.h5"
    points = small_disk.parent / "q.npy"
    np.save(points, np.random.default_rng(0).random((500, 2)))
    options = ("--input", waves, "--output", target, "--query-points", points)
    process = spawn("predict", trained, *options)
    _, errors = process.communicate()
    assert process.returncode == 2
    assert len(errors.splitlines()) == 1 and "disk is full" in errors
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
