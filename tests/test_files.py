"""Files appear whole or not at all; a disk without room is told in one line."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest

from nfsgeo.errors import UserError
from nfsgeo.files import growing, new_hdf5, write_bytes
from nfsgeo.training.artifacts import json_text


def bytes_too_many(path: Path) -> None:
    write_bytes(path, bytes(200_000))


def values_too_many(path: Path) -> None:
    with new_hdf5(path) as file:
        file["u"] = np.ones(200_000)


@pytest.mark.parametrize("write", [bytes_too_many, values_too_many])
def test_a_limit_on_the_size_of_files(write):
    """As of ``ulimit -f``; the file that was there stays."""
    path, limits = Path("a.nc"), resource.getrlimit(resource.RLIMIT_FSIZE)
    path.write_bytes(b"old")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(UserError, match="room to write a.nc"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old" and [*Path().iterdir()] == [path]


def test_an_error_within_leaves_the_file_that_was_there():
    path = Path("a.json")
    write_bytes(path, b"old")
    with pytest.raises(RuntimeError), growing(path) as partial:
        partial.write_bytes(b"half of the n")
        raise RuntimeError
    assert path.read_bytes() == b"old" and [*Path().iterdir()] == [path]
    with pytest.raises(UserError, match="folder nowhere"):
        write_bytes(Path("nowhere") / "a.gif", b"")


def test_json_has_no_number_for_nan():
    text = json_text({"a": float("nan"), "b": [1.5, float("inf")]})
    assert json.loads(text) == {"a": None, "b": [1.5, None]}
