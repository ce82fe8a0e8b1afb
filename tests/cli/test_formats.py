"""Files of every format through the commands: in, and out by their ending."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from nfsgeo.data import open as open_file
from nfsgeo.data.formats import FORMATS

Command = Callable[..., Result]
WRITERS = [each for each in FORMATS if each.write is not None]
ENDINGS = [e for each in WRITERS for e in each.endings if e != ".vtu"]


def ok(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    return result


def values(path: Path, sample: int) -> np.ndarray:
    """Coordinates and values of a sample, a row a point, in order."""
    with open_file(path) as file:
        u = file.read(sample, slice(None)).astype("f4")  # as text is read in doubles
        rows = np.c_[file.coordinates(sample), u.reshape(len(u), -1)]
        return rows[np.lexsort(rows.T[1::-1])]


@pytest.mark.parametrize("ending", ENDINGS)
def test_predict_by_the_ending(
    nfsgeo: Command, trained: Path, waves: Path, tmp_path: Path, ending: str
) -> None:
    np.save(tmp_path / "q.npy", np.random.default_rng(0).random((7, 2)))
    options = ("--input", waves, "--query-points", "q.npy")
    ok(nfsgeo("predict", trained, *options, "--output", "native.hdf5"))
    out = tmp_path / f"p{ending}"
    told = json.loads(
        ok(nfsgeo("predict", trained, *options, "--out", out, "--json")).stdout
    )
    with open_file(out) as file, open_file(tmp_path / "native.hdf5") as native:
        assert told["times"] == file.times[[0, -1]].tolist()
        np.testing.assert_array_equal(file.times, native.times)
        assert file.num_samples == native.num_samples
    for sample in (0, 3):
        found = values(out, sample)
        np.testing.assert_array_equal(found, values(tmp_path / "native.hdf5", sample))
    left = {"q.npy", "native.hdf5", out.name} | ({"p"} if ending == ".pvd" else set())
    assert {path.name for path in tmp_path.iterdir()} == left
