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
    disk.check_room(tmp_path / "a.nc", 3_000_000)
    disk.check_room(tmp_path, 3_000_000)
    assert asked == [tmp_path, tmp_path]
    with pytest.raises(UserError, match="3.0 MB free: expected 7.1 GB for .*a.nc"):
        disk.check_room(tmp_path / "a.nc", 7_100_000_000)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Driver write request failed"),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("Can't decrement id ref count (No space left on device)"),
    ],
)
def test_a_full_disk_is_told_in_one_way(error: Exception) -> None:
    message = "disk is full: expected room to write a.nc"
    with pytest.raises(UserError, match=message), disk.writing(Path("a.nc")):
        raise error


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "no"), ValueError()])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)), disk.writing(Path("a.nc")):
        raise error


def test_what_was_not_flushed_is_abandoned(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    file = h5py.File(path, "w")
    file["kept"] = np.arange(3)
    file.flush()
    file["lost"] = np.arange(5)
    disk.abandon(file)
    disk.abandon(file)
    with h5py.File(path) as found:
        assert list(found) == ["kept"]
