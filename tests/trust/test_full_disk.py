"""A disk that fills up: one line, status 2, and nothing half-written."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.training.checkpoints import read_checkpoint

pytestmark = pytest.mark.slow

BURGERS = ("--samples", 8, "--resolution", 256, "--records", 201, "--workers", 1)


@pytest.fixture
def small_disk(mounted: Callable[[str], Path]) -> Path:
    """A file system of eight megabytes with 100 kB free."""
    folder = mounted("8m")
    fill(folder, 100_000)
    return folder


def fill(folder: Path, free: int) -> None:
    """Leaves so many bytes free."""
    filler = folder / "filler"
    filler.unlink(missing_ok=True)
    filler.write_bytes(b"0" * (shutil.disk_usage(folder).free - free))


def refused(started: Any) -> None:
    status, errors = started.ended()
    assert status == 2, errors
    (line,) = errors.splitlines()
    assert line.startswith("Error: the disk is full")


def test_training(spawn, training, small_disk):
    status, errors = spawn(small_disk, *training).ended()
    assert status == 2 and "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("Error: the disk is full")
    assert not list(small_disk.rglob("*.partial"))
    for checkpoint in small_disk.rglob("*.ckpt"):
        read_checkpoint(checkpoint)
    (small_disk / "filler").unlink()
    status, errors = spawn(small_disk, "train", "--resume", "run").ended()
    assert status == 0, errors


@pytest.mark.parametrize("free", [0, 1_300_000])
def test_prediction(spawn, trained, waves, small_disk, free):
    fill(small_disk, free)
    points = small_disk.parent / "q.npy"
    np.save(points, np.random.default_rng(0).random((1500, 2)))
    options = ("--input", waves, "--output", "out.nc")
    options += ("--query-points", points)
    refused(spawn(small_disk, "predict", trained.root, *options))
    assert sorted(os.listdir(small_disk)) == ["filler"]


def test_generation_keeps_what_it_has_made(spawn, small_disk):
    fill(small_disk, 1_900_000)
    command = ("generate", "burgers", "--out", "b.nc", *BURGERS)
    refused(spawn(small_disk, *command))
    assert sorted(os.listdir(small_disk)) == ["b.nc.partial", "filler"]
    assert any((small_disk / "b.nc.partial").iterdir())
    (small_disk / "filler").unlink()
    status, errors = spawn(small_disk, *command).ended()
    assert status == 0, errors
    assert sorted(os.listdir(small_disk)) == ["b.nc"]
    with nfsgeo.data.open(small_disk / "b.nc") as file:
        assert np.isfinite(file.read(7, slice(None))).all()
