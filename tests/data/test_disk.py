"""A full disk: found beforehand, or told in one way. See also the command line's."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from nfsgeo.data import disk
from nfsgeo.errors import UserError


def test_room_is_checked_on_the_disk_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def usage(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(free=3_000_000)

    monkeypatch.setattr("shutil.disk_usage", usage)
    disk.check_room(tmp_path / "a.h5", 3_000_000)
    disk.check_room(tmp_path, 3_000_000)
    assert asked == [tmp_path, tmp_path]
    with pytest.raises(UserError, match="3.0 MB free: expected 7.1 GB for .*a.h5"):
        disk.check_room(tmp_path / "a.h5", 7_100_000_000)


def test_holes_take_no_room(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert disk.occupied(path) == 0
    with path.open("wb") as file:
        file.write(b"x")
        file.truncate(10_000_000)
    assert 0 < disk.occupied(path) < 1_000_000


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Driver write request failed"),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("Can't decrement id ref count (No space left on device)"),
    ],
)
def test_a_full_disk_is_told_in_one_way(error: Exception) -> None:
    message = "disk is full: expected room to write a.h5"
    with pytest.raises(UserError, match=message), disk.writing(Path("a.h5")):
        raise error


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "no"), ValueError()])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)), disk.writing(Path("a.h5")):
        raise error


def test_what_was_not_flushed_is_abandoned(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    file = h5py.File(path, "w")
    file["kept"] = np.arange(3)
    file.flush()
    file["lost"] = np.arange(5)
    disk.abandon(file)
    disk.abandon(file)
    with h5py.File(path) as found:
        assert list(found) == ["kept"]
