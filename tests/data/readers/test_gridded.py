"""Every gridded format gives its values in their places, or one line."""

from __future__ import annotations

import copy
import faulthandler
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.readers import READERS, gridded, mat
from nfsgeo.errors import UserError


def test_one_reader_and_no_other_knows_the_format(grid_format: Any) -> None:
    path, _ = grid_format
    assert sum(reader.recognise(path) for reader in READERS) == 1


def test_values_are_in_their_places(grid_format: Any) -> None:
    path, expected = grid_format
    with copy.copy(nfsgeo.data.open(path)) as file:
        assert file.num_samples == len(expected.u)
        np.testing.assert_allclose(file.times, expected.times, rtol=1e-6)
        for found, axis in zip(file.axes, expected.axes, strict=True):
            np.testing.assert_allclose(found, axis, rtol=1e-6, atol=1e-7)
        assert file.domain.periodic == expected.periodic
        dim = len(expected.axes)
        lower, upper = expected.lower or (0.0,) * dim, expected.upper or (1.0,) * dim
        np.testing.assert_allclose(file.domain.lower, lower, atol=1e-7)
        np.testing.assert_allclose(file.domain.upper, upper, rtol=1e-6)
        assert file.static_role == expected.role
        width = expected.u.shape[-1]
        for sample in (0, 3, 4):
            values = file.read(sample, slice(None)).swapaxes(0, 1)
            whole = values.reshape(expected.u.shape[1:])
            np.testing.assert_array_equal(whole, expected.u[sample].astype("f4"))
            last = np.array([file.num_points() - 1, 1])
            some = file.read(sample, slice(1, None) if width < 1 else slice(0, 1), last)
            flat = expected.u[sample, :1].reshape(-1, width)[last]
            np.testing.assert_array_equal(some[:, 0], flat.astype("f4"))
            if expected.a is not None:
                found = file.read_static(sample).reshape(expected.a.shape[1:])
                np.testing.assert_array_equal(found, expected.a[sample].astype("f4"))
        for name, values in expected.parameters.items():
            np.testing.assert_array_equal(file.parameters[name], values)


def test_conversion_keeps_everything(grid_format: Any, tmp_path: Path) -> None:
    path, _ = grid_format
    out = nfsgeo.data.convert(path, tmp_path / "out.h5")
    with nfsgeo.data.open(path) as a, nfsgeo.data.open(out) as b:
        assert isinstance(b, nfsgeo.data.NativeFile)
        for name in ("equation", "domain", "component_names", "static_names"):
            assert getattr(a, name) == getattr(b, name), name
        assert a.static_role == b.static_role
        assert b.provenance["source"] == path.name
        np.testing.assert_array_equal(a.times, b.times)
        np.testing.assert_array_equal(a.coordinates(), b.coordinates())
        assert sorted(a.parameters) == sorted(b.parameters)
        for part in ("train", "valid", "test"):
            np.testing.assert_array_equal(a.split[part], b.split[part])
        for sample in range(a.num_samples):
            for read in ("read", "read_static"):
                args = (sample, slice(None)) if read == "read" else (sample,)
                first, second = (getattr(f, read)(*args) for f in (a, b))
                np.testing.assert_array_equal(first, second)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damage_gives_one_line(
    grid_format: Any, tmp_path: Path, data: st.DataObject
) -> None:
    path, _ = grid_format
    raw = path.read_bytes()
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        broken = raw[:place]
    else:
        noise = data.draw(st.binary(min_size=1, max_size=16))
        broken = raw[:place] + noise + raw[place + len(noise) :]
    other = tmp_path / f"broken_{path.name}"
    other.write_bytes(broken)
    if not raw.startswith(b"MATLAB 5.0"):
        read_or_refuse(other)
    elif child := os.fork():
        # SciPy may crash on it, and so take the process along.
        status = os.waitpid(child, 0)[1]
        assert status == 0 or os.WIFSIGNALED(status)
    else:
        status = 1
        try:
            faulthandler.disable()
            read_or_refuse(other)
            status = 0
        finally:
            os._exit(status)


def read_or_refuse(path: Path) -> None:
    try:
        with nfsgeo.data.open(path) as file:
            for sample in range(min(file.num_samples, 5)):
                file.read(sample, slice(None))
                file.read_static(sample)
    except UserError as error:
        assert "\n" not in str(error)


def rewritten(path: Path, name: str, change: Callable[[np.ndarray], Any]) -> None:
    with h5py.File(path, "r+") as file:
        values, about = file[name][()], dict(file[name].attrs)
        del file[name]
        file[name] = change(values)
        file[name].attrs.update(about)


@pytest.mark.parametrize(
    ("name", "array", "change"),
    [
        ("1D_Burgers_Sols_Nu0.02.hdf5", "tensor", lambda v: v.swapaxes(1, 2)),
        ("1D_Burgers_Sols_Nu0.02.hdf5", "x-coordinate", lambda v: v**2),
        ("1D_Burgers_Sols_Nu0.02.hdf5", "t-coordinate", lambda v: v[:3]),
        ("1D_Burgers_Sols_Nu0.02.hdf5", "t-coordinate", lambda v: v[::-1]),
        ("2D_DarcyFlow.hdf5", "tensor", lambda v: v.swapaxes(2, 3)),
        ("2D_DarcyFlow.hdf5", "nu", lambda v: v.swapaxes(0, 2)),
        ("ns_incom.h5", "velocity", lambda v: v.swapaxes(1, 2)),
        ("ns_incom.h5", "velocity", lambda v: v[..., :1]),
        ("ns_incom.h5", "t", lambda v: v + np.arange(len(v))[:, None]),
        ("well.hdf5", "t0_fields/density", lambda v: v.swapaxes(2, 3)),
        ("well.hdf5", "t1_fields/velocity", lambda v: v.swapaxes(1, 2)),
        ("well.hdf5", "t2_fields/strain", lambda v: v[:, :, :1]),
        ("CE.h5", "train/pde_4-7", lambda v: v.swapaxes(1, 2)),
        ("CE.h5", "test/alpha", lambda v: v[:1]),
        ("CE.h5", "test/pde_4-7", lambda v: v.astype("S3")),
    ],
)
def test_reordered_arrays_are_refused(
    grid_writers: Any,
    tmp_path: Path,
    one_line: Callable[..., str],
    name: str,
    array: str,
    change: Callable[[np.ndarray], Any],
) -> None:
    path = tmp_path / name
    grid_writers[name](path)
    rewritten(path, array, change)

    def read_all() -> None:
        with nfsgeo.data.open(path) as file:
            file.read(4, slice(None))

    assert str(path) in one_line(read_all)


def test_reordered_matlab_arrays_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "a.mat"
    a, u = np.zeros((5, 6, 3)), np.zeros((5, 6, 3, 4))
    for arrays in (
        {"a": a, "u": u.swapaxes(1, 3)},
        {"a": a.swapaxes(0, 1), "u": u},
        {"coeff": a, "sol": a.swapaxes(1, 2)},
        {"input": np.zeros((5, 6)), "output": np.zeros((5, 6, 4))},
        {"a": np.zeros((5, 6)), "u": np.zeros((6, 5))},
        {"a": np.full((5, 6), "x"), "u": np.full((5, 6), "x")},
    ):
        scipy.io.savemat(path, arrays)
        one_line(lambda: nfsgeo.data.open(path).read(0, slice(None)))


def test_tensors_that_do_not_fit_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "a.pt"
    for tensors in (
        {"x": torch.zeros(5, 6), "y": torch.zeros(5, 6, 4)},
        {"x": torch.zeros(5, 6, 3), "y": torch.zeros(5, 3, 6)},
        {"x": torch.zeros(5, 6)},
        [torch.zeros(3)],
    ):
        torch.save(tensors, path)
        one_line(nfsgeo.data.open, path)


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be printed",)


def test_torch_files_run_no_code(
    tmp_path: Path, one_line: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"x": Planted(), "y": torch.zeros(3)}, tmp_path / "a.pt")
    one_line(nfsgeo.data.open, tmp_path / "a.pt")
    assert capsys.readouterr().out == ""


def test_what_names_tell_is_kept(grid_writers: Any, tmp_path: Path) -> None:
    for name, viscosity in (
        ("burgers_v100_t3.mat", 0.01),
        ("burgers.pt", 0.01),
        ("1D_Burgers_Sols_Nu0.02.hdf5", 0.02 / math.pi),
    ):
        grid_writers[name](tmp_path / name)
        with nfsgeo.data.open(tmp_path / name) as file:
            assert file.equation == "burgers"
            found = file.provenance["parameters"]["viscosity"]
            assert found == pytest.approx(viscosity)


def test_parts_of_mp_pde_become_the_split(grid_writers: Any, tmp_path: Path) -> None:
    grid_writers["CE.h5"](tmp_path / "CE.h5")
    with nfsgeo.data.open(tmp_path / "CE.h5") as file:
        assert file.split["train"].tolist() == [0, 1, 2]
        assert file.split["test"].tolist() == [3, 4] and len(file.split["valid"]) == 0


def test_large_matlab_files_are_read_in_blocks(
    grid_writers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mat, "BLOCK_BYTES", 2 * 4 * 6 * 3 * 4)
    expected = grid_writers["ns_73.mat"](tmp_path / "ns_73.mat")
    with nfsgeo.data.open(tmp_path / "ns_73.mat") as file:
        for sample in (4, 0, 1, 3, 2):
            values = file.read(sample, slice(1, 3)).swapaxes(0, 1)
            whole = values.reshape(2, 6, 3, 1)
            np.testing.assert_array_equal(whole, expected.u[sample, 1:3])


@settings(deadline=None)
@given(
    st.integers(2, 2048),
    st.floats(-100, 100),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_even_axis_undoes_single_precision(
    num: int, lower: float, length: float, centred: bool
) -> None:
    lower *= length / 1000
    exact = lower + (np.arange(num) + centred / 2) / num * length
    axis, low, high = gridded.even_axis(exact.astype(np.float32), centred=centred)
    np.testing.assert_allclose(axis, exact, atol=2e-6 * length)
    np.testing.assert_allclose([low, high], [lower, lower + length], atol=2e-6 * length)
    assert low <= axis[0] and axis[-1] < high
