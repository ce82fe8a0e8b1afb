"""A full disk: found beforehand, or told in one way. See also the command line's."""

import errno
import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nfsgeo.errors import UserError
from nfsgeo.files import cache_folder, growing, new_hdf5, write_bytes


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Driver write request failed"),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("Can't decrement id ref count (No space left on device)"),
    ],
)
def test_a_full_disk_is_told_in_one_way(error):
    message = "disk is full: expected room to write a.nc"
    with pytest.raises(UserError, match=message), growing(Path("a.nc")):
        raise error


def test_a_limit_on_the_size_of_files(tmp_path):
    """As of ``ulimit -f``, or of a file system."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        message = "files of limited size: expected room to write .*a.nc"
        with pytest.raises(UserError, match=message):
            write_bytes(tmp_path / "a.nc", bytes(200_000))
        with (
            pytest.raises(UserError, match=message),
            new_hdf5(tmp_path / "a.nc") as file,
        ):
            file["u"] = np.ones(200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*tmp_path.iterdir()]


def test_what_a_killed_process_left_is_removed(tmp_path):
    with subprocess.Popen(["true"]) as killed:
        pass
    target, beside = tmp_path / "a.nc", tmp_path / "a.nc.old.partial"
    written_now = tmp_path / f"a.nc.{os.getppid()}.partial"
    for path in (beside, written_now, tmp_path / f"a.nc.{killed.pid}.partial"):
        path.touch()
    write_bytes(target, b"new")
    assert {*tmp_path.iterdir()} == {target, beside, written_now}


def test_a_user_without_a_home(monkeypatch, one_line):
    def unknown() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert "set XDG_CACHE_HOME or HOME" in one_line(cache_folder)
