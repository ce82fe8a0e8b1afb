"""MATLAB files of version 5: what SciPy writes comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nfsgeo.data.readers import mat5

KINDS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: arrays(kind, array_shapes(min_dims=2, max_dims=4, max_side=5))
    ),
    st.booleans(),
    st.text("abcxyz_", min_size=1, max_size=20).filter(lambda s: s[0] != "_"),
)
def test_arrays_come_back(
    tmp_path: Path, values: np.ndarray, compress: bool, name: str
) -> None:
    path = tmp_path / "a.mat"
    others = {"text": "none of ours", "cell": np.array([1, "x"], object), "c": [1j]}
    others.pop(name, None)
    scipy.io.savemat(path, {**others, name: values}, do_compression=compress)
    assert mat5.shapes(path) == {name: values.shape}
    found = mat5.arrays(path, name, "absent")
    assert list(found) == [name]
    np.testing.assert_array_equal(found[name], values)
    assert found[name].dtype == values.dtype and found[name].flags.writeable
    loaded = scipy.io.loadmat(path)[name]
    np.testing.assert_array_equal(found[name], loaded)


def test_doubles_stored_as_small_integers(tmp_path: Path) -> None:
    # MATLAB stores whole numbers of a double array in as few bytes as they need.
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"a": np.arange(16, dtype="u1").reshape(2, 8)})
    raw = bytearray(path.read_bytes())
    flags = raw.index(b"\x06\x00\x00\x00\x08\x00\x00\x00") + 8
    assert raw[flags] == 9
    raw[flags] = 6
    path.write_bytes(raw)
    found = mat5.arrays(path, "a")["a"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, scipy.io.loadmat(path)["a"])
    np.testing.assert_array_equal(found, np.arange(16.0).reshape(2, 8))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    for content in (b"", b"MATLAB 5.0", bytes(200)):
        path.write_bytes(content)
        with pytest.raises(ValueError):
            mat5.shapes(path)
