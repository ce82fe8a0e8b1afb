"""Well-formed files that say less than they seem to: read as they are, or refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nfsgeo.data
from nfsgeo.data.numbers import with_gaps

RNG = np.random.default_rng(0)
N, T, X, Y = 4, 5, 6, 3


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def authors(path: Path) -> np.ndarray:
    u = normal(N, X, Y, T)
    path.write_bytes(pickle.dumps({"u": u, "a": u[..., 0]}))
    return np.moveaxis(u, -1, 1)


def authors_points(path: Path) -> np.ndarray:
    u, pos = normal(N, X, T), RNG.random((X, 2))
    path.write_bytes(pickle.dumps({"u": u, "a": u[..., 0], "x": pos}))
    return np.moveaxis(u, -1, 1)


def cloud(path: Path) -> np.ndarray:
    u = normal(N, X, T)
    np.savez(path, coords=RNG.random((X, 2)), u=u)
    return np.moveaxis(u, -1, 1)


def grid(path: Path) -> np.ndarray:
    u = normal(N, T, X, 1)
    np.savez(path, u=u, x=np.arange(6.0))
    return u


def burgers_series(path: Path) -> np.ndarray:
    u = normal(N, T, X)
    scipy.io.savemat(path, {"input": u[:, 0], "output": u})
    return u


def navier_stokes(path: Path) -> np.ndarray:
    u = normal(N, X, Y, T)
    scipy.io.savemat(path, {"a": u[..., 0], "u": u})
    return np.moveaxis(u, -1, 1)


def neuraloperator(path: Path) -> np.ndarray:
    y = torch.from_numpy(normal(N, T, X))
    torch.save({"x": y[:, 0].clone(), "y": y}, path)
    return y.numpy()


TIMELESS: dict[str, Callable[[Path], np.ndarray]] = {
    "authors.pkl": authors,
    "points.pkl": authors_points,
    "cloud.npz": cloud,
    "grid.npz": grid,
    "burgers.mat": burgers_series,
    "ns.mat": navier_stokes,
    "burgers.pt": neuraloperator,
}


@pytest.mark.parametrize("name", list(TIMELESS))
def test_times_that_a_file_lacks_have_to_be_given(
    name: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    u, out = TIMELESS[name](tmp_path / name), tmp_path / "out.h5"
    for call in (nfsgeo.data.open, lambda path: nfsgeo.data.convert(path, out)):
        message = one_line(call, tmp_path / name)
        assert "5 time steps and no times" in message and "--times 0:4:1" in message
    times = [0.0, 0.1, 0.2, 0.5, 0.6]
    with nfsgeo.data.open(nfsgeo.data.convert(tmp_path / name, out, times=times)) as f:
        assert f.times.tolist() == times
        found = f.read(2, slice(None)).swapaxes(0, 1)
    np.testing.assert_array_equal(found.reshape(u[2].shape), u[2])


def test_times_that_names_tell(tmp_path: Path) -> None:
    for name, times in {
        "burgers_v100_t4_r6.mat": np.linspace(0, 1, T),
        "NavierStokes_V1e-3_N4_T5.mat": np.arange(1.0, 6.0),
    }.items():
        write = burgers_series if name.startswith("b") else navier_stokes
        write(tmp_path / name)
        with nfsgeo.data.open(tmp_path / name) as file:
            np.testing.assert_allclose(file.times, times)


def test_snapshots_of_neuraloperator_are_006_apart(tmp_path: Path) -> None:
    """Every sixth of 101 snapshots from t = 0 to 1 are 17, the last at 0.96."""
    y = torch.zeros(3, 17, 16)
    torch.save({"x": y[:, 0].clone(), "y": y}, tmp_path / "burgers_lowres.pt")
    with nfsgeo.data.open(tmp_path / "burgers_lowres.pt") as file:
        np.testing.assert_allclose(file.times, np.linspace(0, 1, 101)[::6])


def test_a_coefficient_of_two_floats_is_darcys(tmp_path: Path) -> None:
    x = (torch.rand(5, 6, 6) > 0.5).float()
    torch.save({"x": x, "y": torch.randn(5, 6, 6)}, tmp_path / "darcy.pt")
    with nfsgeo.data.open(tmp_path / "darcy.pt") as file:
        assert file.equation == "darcy" and not any(file.domain.periodic)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"x": 1}], ("holds a list",)),
        ({"data": torch.zeros(3), "n": 2}, ("a dict of data (tensor), n (int)",)),
    ],
)
def test_torch_files_of_something_else(
    tmp_path: Path, one_line: Callable[..., str], content: Any, words: tuple[str, ...]
) -> None:
    torch.save(content, tmp_path / "a.pt")
    message = one_line(nfsgeo.data.open, tmp_path / "a.pt")
    assert "numpy.savez" in message and all(word in message for word in words)


def test_arrays_of_no_known_format_are_named(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(1, 10):
            file[f"run/array_{number}"] = np.zeros((2, number))
    message = one_line(nfsgeo.data.open, tmp_path / "a.h5")
    assert "arrays run/array_1 [2, 1], run/array_2 [2, 2]" in message
    assert "array_8 [2, 8], ...:" in message and "array_9" not in message
    assert "--columns field=ARRAY:npt,points=ARRAY" in message


def test_arrays_in_place_of_a_path(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    array = np.zeros((3, 2))
    for call in (
        nfsgeo.open,
        nfsgeo.prepare,
        lambda a: nfsgeo.predict("burgers-small", a, tmp_path / "p.h5"),
        lambda a: nfsgeo.evaluate("burgers-small", data=a),
        lambda a: nfsgeo.data.convert(a, tmp_path / "p.h5"),
    ):
        message = one_line(call, array)
        assert "ndarray and shape (3, 2)" in message and "numpy.savez" in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.arange(6.0)[::-1]}, "axis x from 5 to 0"),
        ({"x": np.array([0, 1, 2, 3, 5, 4.0])}, "increase"),
        ({"periodic": [True]}, "no `upper`"),
        ({"periodic": [True], "upper": [5.0]}, "its lower end again"),
        ({"upper": [4.0]}, "a domain that holds"),
        ({"time": np.arange(5.0)}, "an array 'time'"),
        ({"mask": np.zeros(6)}, "a mask of type float64 and shape (6,)"),
        ({"mask": np.zeros((4, 5, 6), bool)}, "a mask of type bool"),
        ({"t": np.array([0, 1, np.nan, 3, 4])}, "1 of 5 values missing"),
        ({"u": np.zeros((4, 5, 6, 1), complex)}, "complex"),
    ],
)
def test_grids_that_would_be_misread(
    tmp_path: Path, one_line: Callable[..., str], change: dict[str, Any], words: str
) -> None:
    arrays = {"u": normal(4, 5, 6, 1), "x": np.arange(6.0), "t": np.arange(5.0)}
    np.savez(tmp_path / "a.npz", **arrays | change)

    def read() -> None:
        nfsgeo.data.open(tmp_path / "a.npz").read(0, slice(None))

    assert words in one_line(read)


def test_a_mask_is_true_where_a_value_is_missing(tmp_path: Path) -> None:
    mask = np.zeros((3, 4, 2), bool)
    mask[1, 2, 0] = True
    cloud = {"coords": RNG.random((4, 2)), "u": np.ones((3, 4, 2)), "t": [0.0, 1.0]}
    grid = {"x": np.arange(4.0), "u": np.ones((3, 2, 4, 1), int), "t": [0.0, 1.0]}
    for arrays, own in ((cloud, mask), (grid, mask.swapaxes(1, 2)[..., None])):
        np.savez(tmp_path / "a.npz", mask=own, **arrays)
        native = nfsgeo.data.convert(tmp_path / "a.npz", tmp_path / "a.h5")
        for path in (tmp_path / "a.npz", native):
            with nfsgeo.data.open(path) as file:
                for sample in range(3):
                    found = file.read(sample, slice(None))[..., 0]
                    expected = np.where(mask[sample], np.nan, 1.0)
                    np.testing.assert_array_equal(found, expected)
        native.unlink()


@pytest.mark.parametrize("name", ["time", "periodic"])
def test_arrays_of_point_clouds_that_nothing_reads(
    tmp_path: Path, one_line: Callable[..., str], name: str
) -> None:
    arrays = {"coords": RNG.random((4, 2)), "u": np.zeros((3, 4, 1, 1))}
    np.savez(tmp_path / "a.npz", **arrays, **{name: np.zeros(1)})
    assert f"an array {name!r}" in one_line(nfsgeo.data.open, tmp_path / "a.npz")


@pytest.mark.parametrize("dtype", [complex, "M8[s]"])
def test_fields_of_point_clouds_that_are_no_real_numbers(
    tmp_path: Path, one_line: Callable[..., str], dtype: Any
) -> None:
    u = np.zeros((3, 4, 1, 1)).astype(dtype)
    np.savez(tmp_path / "a.npz", coords=RNG.random((4, 2)), u=u)
    assert "real numbers" in one_line(nfsgeo.data.open, tmp_path / "a.npz")


def test_dates_in_archives_become_seconds(tmp_path: Path) -> None:
    days = np.array(["2026-01-01", "2026-01-02"], "M8[ns]")
    arrays = {"coords": RNG.random((4, 2)), "u": np.zeros((3, 4, 2, 1)), "t": days}
    np.savez(tmp_path / "a.npz", **arrays)
    with nfsgeo.data.open(tmp_path / "a.npz") as file:
        assert np.diff(file.times).tolist() == [86400.0]


@pytest.mark.parametrize("key", ["_FillValue", "missing_value"])
def test_fill_values_of_hdf5_are_missing(
    grid_writers: Any, tmp_path: Path, key: str
) -> None:
    path = tmp_path / "1D_Burgers_Sols_Nu0.02.hdf5"
    grid_writers[path.name](path)
    with h5py.File(path, "r+") as file:
        file["tensor"][2, 1, :2] = -9999
        file["tensor"].attrs[key] = np.float32(-9999)
    with nfsgeo.data.open(path) as file:
        file.read(1, slice(None))
        found = np.isnan(file.read(2, slice(None)))
        assert found.sum() == 2 and found[:2, 1].all()


def trajectory(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file["0/mesh_pos"], file["0/node_type"] = RNG.random((X, 2)), np.zeros((X, 1))
        file["0/velocity"] = normal(1, X, 2)
    return "0/velocity"


def camlab(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file["u"], file["x"] = normal(N, 1, X, 2), RNG.random((1, 1, X, 2))
    return "u"


def mp_pde(path: Path) -> str:
    with h5py.File(path, "w") as file:
        made = file.create_dataset("train/pde_2-6", data=normal(N, 2, X))
        made.attrs.update(x=np.arange(X) / 1.0, tmin=0.0, tmax=1.0)
        file["train/bc_left"] = np.zeros(N)
    return "train/pde_2-6"


def matlab(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file["coeff"], file["sol"] = normal(Y, X, N), normal(Y, X, N)
    return "sol"


@pytest.mark.parametrize("make", [trajectory, camlab, mp_pde, matlab])
@pytest.mark.parametrize("mark", [np.float64(1e20), np.float32(-999), np.int16([7, 9])])
def test_fill_values_of_other_formats_in_hdf5_are_missing(
    make: Callable[[Path], str], mark: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    name = make(path)
    with h5py.File(path, "r+") as file:
        place = (0,) * (file[name].ndim)
        file[name][place] = np.ravel(mark)[-1]
        file[name].attrs["_FillValue"] = mark
    with nfsgeo.data.open(path) as file:
        gaps = np.isnan(file.read(0, slice(None)))
        assert gaps.sum() == 1 and gaps[0, 0, 0]


def test_fill_values_of_places_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for name in ("mesh_pos", "node_type"):
        path = tmp_path / f"{name}.h5"
        trajectory(path)
        with h5py.File(path, "r+") as file:
            file[f"0/{name}"][2, 0] = -999
            file[f"0/{name}"].attrs["missing_value"] = -999.0
        message = one_line(nfsgeo.data.open, path)
        assert "with 1 of" in message and "missing" in message


@given(
    values=hnp.arrays(st.sampled_from(["f4", "f8", "i2", "u1"]), 6),
    picked=st.integers(0, 5),
    key=st.sampled_from(["_FillValue", "missing_value"]),
)
def test_what_equals_the_fill_value_is_missing(
    values: np.ndarray, picked: int, key: str
) -> None:
    class Source:
        attrs = {key: values[picked]}

    found = with_gaps(values, Source)
    with np.errstate(over="ignore"):
        missing = (values == values[picked]) | np.isnan(values)
    np.testing.assert_array_equal(np.isnan(found), missing)
    np.testing.assert_array_equal(found[~missing], values[~missing])


def test_attributes_that_are_no_numbers_mark_nothing() -> None:
    class Source:
        attrs = {"_FillValue": "none", "missing_value": h5py.Empty("f4")}

    assert with_gaps([0.0, 1.0], Source).tolist() == [0, 1]
