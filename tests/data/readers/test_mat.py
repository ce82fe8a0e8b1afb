"""MATLAB files of version 5: what SciPy writes comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nfsgeo.data.readers import mat

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
    others = {"text": "none of ours", "cell": np.array([1, "x"], object)}
    others.pop(name, None)
    scipy.io.savemat(path, {**others, name: values}, do_compression=compress)
    assert mat.shapes(path) == {name: values.shape}
    found, handle = mat.load(path, name, "absent")
    assert list(found) == [name] and handle is None
    np.testing.assert_array_equal(found[name], values)
    assert found[name].dtype == values.dtype and found[name].flags.writeable


def test_complex_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"u": np.ones((2, 3)) * 1j})
    with pytest.raises(ValueError, match="complex"):
        mat.load(path, "u")


def test_other_files_have_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"u": np.ones((2, 3))}, format="4")
    version_4 = path.read_bytes()
    for content in (b"", b"MATLAB 5.0", bytes(200), version_4):
        path.write_bytes(content)
        assert mat.shapes(path) == {}
