"""Heaps that HDF5 would never get to the end of."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import pytest

import nfsgeo.data
from nfsgeo.data.heaps import SIGNATURE, check_heaps
from nfsgeo.errors import UserError

NAMES = ["a", "bcd", "efghijklmno"]
LENGTHS = {16: 2**64 - 16, 96: 0}  # of the first object, and of the free space


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "names.h5"
    with h5py.File(path, "w") as file:
        file.attrs["names"] = NAMES
    return path


def test_whole_heaps_pass(path: Path) -> None:
    check_heaps(path)
    with h5py.File(path) as file:
        assert list(file.attrs["names"]) == NAMES


@pytest.mark.parametrize("place", LENGTHS)
def test_objects_without_size_are_refused(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    start = content.index(SIGNATURE) + place
    struct.pack_into("<Q", content, start + 8, LENGTHS[place])
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged global heap"):
        nfsgeo.data.open(path)


def test_the_signature_alone_is_no_heap(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for text in (b"", SIGNATURE, SIGNATURE + struct.pack("<Q", 8) + bytes(64)):
        path.write_bytes(text)
        check_heaps(path)
