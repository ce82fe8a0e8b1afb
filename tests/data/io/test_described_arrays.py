"""Arrays of any names and axes: the letters of the axes tell what they are."""

import zipfile
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from hypothesis.extra.numpy import arrays as any_arrays

import nfsgeo
import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.io import ARRAYS, FORMATS, FileProbe
from nfsgeo.data.io.array_files import arrays_of

N, T, P, C = 3, 4, 5, 2
KINDS = ["f8", "f4", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8))]
RANDOM = np.random.default_rng(0)


def single(*shape: int) -> np.ndarray:
    """Random numbers that single precision holds."""
    return RANDOM.normal(size=shape).astype("f4").astype(float)


U = single(N, T, P, C)
POINTS = RANDOM.random((P, 2))
TIMES = np.array([0.0, 0.5, 1.0, 1.5])


def save_h5(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
        file["title"] = "no numbers"


def save_mat73(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in arrays.items():
            # MATLAB has no arrays of one axis.
            file[name] = (values[None] if values.ndim == 1 else values).T
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file")


SAVES: dict[str, Callable[[Path, dict[str, np.ndarray]], None]] = {
    "a.npz": lambda path, arrays: np.savez(path, **arrays),
    "a.h5": save_h5,
    "old.mat": scipy.io.savemat,
    "new.mat": save_mat73,
}


def values(file: Fields) -> np.ndarray:
    """All fields, ``[N, T, points, C]``."""
    read = [file.read(n, slice(None)) for n in range(file.num_samples)]
    return np.stack(read).swapaxes(1, 2)


@pytest.mark.parametrize("name", SAVES)
@settings(max_examples=12)
@given(
    axes=st.sampled_from(["".join(letters) for letters in permutations("ntpc")]),
    reverse=st.booleans(),
)
def test_clouds_in_any_order_of_axes(name, tmp_path, axes, reverse):
    path = tmp_path / name
    arrays = {
        "flow": U.transpose(["ntpc".index(letter) for letter in axes]),
        "nodes": POINTS.T if reverse else POINTS,
        "clock": TIMES,
        "re": np.arange(3.0),
        "other": np.zeros((7, 7)),
    }
    SAVES[name](path, arrays)
    assert not any(each.recognises(FileProbe(path)) for each in FORMATS)
    columns = {
        "field": [f"flow:{axes}"],
        "points": "nodes:dp" if reverse else "nodes",
        "time": "clock",
        "static": ["re:n"],
    }
    with nfsgeo.open(path, columns=columns, known=["re"]) as file:
        assert file.component_names == ["flow_0", "flow_1"]
        assert file.scalar_names == ["re"]
        np.testing.assert_array_equal(file.parameters["re"], arrays["re"])
        np.testing.assert_array_equal(file.times, TIMES)
        np.testing.assert_array_equal(file.coordinates(), POINTS)
        np.testing.assert_array_equal(values(file), U)


@pytest.mark.parametrize("name", SAVES)
def test_grids(name, tmp_path):
    u, a = single(4, 6, N, T), single(N, 6, 4)
    SAVES[name](tmp_path / name, {"w": u, "k": a, "tt": TIMES, "north": np.arange(4.0)})
    columns = {
        "field": ["w:yxnt"],
        "static": ["k:nxy"],
        "time": "tt",
        "x": "-1:1.5",
        "y": "north",
    }
    with nfsgeo.open(tmp_path / name, columns=columns) as file:
        assert file.axes is not None
        np.testing.assert_allclose(file.axes[0], np.linspace(-1, 1.5, 6), rtol=1e-15)
        np.testing.assert_array_equal(file.axes[1], np.arange(4.0))
        wanted = u.transpose(2, 3, 1, 0).reshape(N, T, 24, 1)
        np.testing.assert_array_equal(values(file), wanted)
        assert file.static_names == ["k"]
        np.testing.assert_array_equal(file.read_static(1)[:, 0], a[1].ravel())


def test_meshes_of_their_own_and_arrays_in_groups(tmp_path):
    meshes = RANDOM.random((N, P, 2))
    save_h5(
        tmp_path / "a.h5", {"out/u": U[:, 0, :, 0], "in/xy": meshes, "in/k": U[:, 1]}
    )
    columns = {"field": ["out/u:np"], "static": ["in/k:npc"], "points": "in/xy:npd"}
    with nfsgeo.open(tmp_path / "a.h5", columns=columns) as file:
        assert file.static_names == ["k_0", "k_1"] and file.component_names == ["u"]
        for sample in range(N):
            np.testing.assert_array_equal(file.coordinates(sample), meshes[sample])
            np.testing.assert_array_equal(file.read_static(sample), U[sample, 1])


def test_names_of_a_format_give_way_to_what_is_told(tmp_path):
    """Without words these are pairs of the FNO paper, on [0, 1] at t = 0 and 1."""
    a, u = single(2, N, 8)
    scipy.io.savemat(tmp_path / "burgers_data_R10.mat", {"a": a, "u": u})
    columns = {"static": "a:nx", "field": "u:nx", "x": "0:7"}
    with nfsgeo.open(tmp_path / "burgers_data_R10.mat", columns=columns) as file:
        assert file.static_names == ["a"] and not file.domain.periodic[0]
        np.testing.assert_array_equal(values(file)[:, 0, :, 0], u)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, ["flow [3, 4, 5, 2], nodes [5, 2]", "--columns field=ARRAY:npt"]),
        ({"field": "flow"}, ["field=flow of shape [3, 4, 5, 2]", "a letter for each"]),
        ({"field": "flow:ntp"}, ["field=flow:ntp of shape"]),
        ({"field": "flow:ntpq"}, ["of n, t, p, x, y, z, c"]),
        ({"field": "flow:nttc"}, ["a letter for each"]),
        ({"field": "wind:ntpc"}, ["no array 'wind'", "flow [3, 4, 5, 2]"]),
        ({"fields": "flow:ntpc"}, ["columns with fields=", "one of field, static"]),
        ({"field": "flow:ntpc"}, ["points=NAME"]),
        ({"field": "flow:ntpc", "x": "0:1"}, ["points=NAME"]),
        ({"field": "flow:ntxc"}, ["x=NAME or x=FIRST:LAST"]),
        ({"field": "flow:ntxc", "points": "nodes"}, ["points=nodes"]),
        ({"field": "flow:ntpx", "x": "0:1"}, ["along p", "or along x, y, z"]),
        ({"static": "flow:nxyc", "x": "0:1", "y": "0:1"}, ["fields along p"]),
        ({"field": ["flow:ntpc", "nodes:pc"], "points": "nodes"}, ["static=NAME"]),
        (
            {"field": "flow:nptc", "points": "nodes", "time": "clock"},
            ["conflicting sizes for dimension 'point'"],
        ),
        (
            {"field": "flow:ntpc", "points": "nodes", "static": "flow:ntpc"},
            ["flow_0", "names that differ"],
        ),
    ],
)
def test_what_is_told_and_does_not_fit(tmp_path, one_line, columns, words):
    np.savez(tmp_path / "a.npz", flow=U, nodes=POINTS, clock=TIMES)
    message = one_line(nfsgeo.open, tmp_path / "a.npz", columns=columns)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("axes", [*map("".join, permutations("ntp"))])
def test_the_order_that_shapes_allow_is_advised(tmp_path, one_line, axes):
    """Also where the letters that somebody gave cannot be."""
    path, own = tmp_path / "a.npz", {"n": N, "t": T, "p": P}
    np.savez(path, flow=single(*map(own.get, axes)), nodes=POINTS, clock=TIMES)
    message = one_line(nfsgeo.open, path)
    assert f"--columns field=flow:{axes},points=nodes,time=clock" in message
    for other in {"npt", "ptn", "tnp"} - {axes}:
        columns = {"field": f"flow:{other}", "points": "nodes", "time": "clock"}
        message = one_line(nfsgeo.open, path, columns=columns)
        assert message.endswith(f"try field=flow:{axes}"), message
    np.savez(path, flow=single(N, P, P), nodes=POINTS, clock=TIMES)
    assert "field=flow" not in one_line(nfsgeo.open, path)


@pytest.mark.parametrize(
    "attrs",
    [
        {"_FillValue": -9.0},
        {"missing_value": [-9.0, 70.0]},
        {"valid_min": 0.0},
        {"valid_min": np.zeros(1)},
        {"valid_range": [0.0, 60.0]},
        {"valid_max": 60.0, "_FillValue": -9.0},
        {"valid_min": "none", "_FillValue": "-9"},
        {"_FillValue": "none", "missing_value": -9},
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_values_that_hdf5_marks_as_missing(attrs, dtype, tmp_path):
    stored = np.arange(60).reshape(3, T, P).astype(dtype)
    stored[1, 2, 3], stored[2, 3, 4] = -9, 70
    save_h5(tmp_path / "a.h5", {"u": stored, "xy": POINTS, "t": TIMES})
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["u"].attrs.update(attrs)
    columns = {"field": "u:ntp", "points": "xy", "time": "t"}
    with nfsgeo.open(tmp_path / "a.h5", columns=columns) as file:
        found = values(file)[..., 0]
    low, high = (np.isnan(found[place]) for place in ((1, 2, 3), (2, 3, 4)))
    assert low == (attrs.get("_FillValue") != "-9"), found
    assert high == any(np.isin([60.0, 70.0], v).any() for v in attrs.values())
    rest = ~np.isnan(found)
    np.testing.assert_array_equal(found[rest], stored[rest])


@pytest.mark.slow
@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: any_arrays(kind, array_shapes(min_dims=2, max_dims=4, max_side=5))
    ),
    st.booleans(),
    st.text("abcxyz_", min_size=1, max_size=20).filter(lambda s: s[0] != "_"),
)
def test_arrays_of_matlab_come_back(tmp_path, stored, compress, name):
    path = tmp_path / "a.mat"
    others = {"text": "none of ours", "cell": np.array([1, "x"], object)}
    others.pop(name, None)
    scipy.io.savemat(path, {**others, name: stored}, do_compression=compress)
    ((called, found),) = arrays_of(path).items()
    assert called == name and found.shape == stored.shape
    np.testing.assert_array_equal(found.values, stored)
    assert found.dtype == stored.dtype


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.npz", "i_0 of type complex128"), ("old.mat", "i of complex numbers")],
)
def test_arrays_are_read_when_they_are_asked_for(name, words, tmp_path, one_line):
    """One by one, each time that a file is opened, and none of objects."""
    path, objects = tmp_path / name, np.array([{"x": 1}, "b"], object)
    arrays = {"u": U, "xy": POINTS, "t": TIMES, "i": U * 1j, "objects": objects}
    SAVES[name](path, arrays)
    columns = {"field": "u:ntpc", "points": "xy", "time": "t"}
    for _ in range(2):
        fields = nfsgeo.open(path, columns=columns)
        np.testing.assert_array_equal(values(fields), U)
        fields.dataset["u_0"].values[:] = 7
    columns["field"] = "i:ntpc"
    assert words in one_line(lambda: values(nfsgeo.open(path, columns=columns)))
    about = {"shape": (10**9,) * 2, "fortran_order": False, "descr": "<f8"}
    cut = zipfile.ZipFile(tmp_path / "cut.npz", "w")
    with cut, cut.open("big.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, about)
    assert FileProbe(tmp_path / "cut.npz").shapes == {"big": (10**9,) * 2}


def test_matlab_files_without_arrays(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"u": np.ones((2, 3))}, format="4")
    for content in (b"", b"MATLAB 5.0", bytes(200), path.read_bytes()):
        path.write_bytes(content)
        assert not ARRAYS.recognises(FileProbe(path))


@pytest.mark.parametrize("save", ["a.npz", "a.h5"])
def test_numbers_of_samples_are_inputs(tmp_path, save):
    """Arrays along samples, along components alone, of one number, and of none."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for n in range(N):
        arrays = {"T": U[n, 0, :, 0], "xy": POINTS + 0.01 * n, "k": np.array(n + 0.5)}
        arrays |= {"r": np.array([n + 2.0]), "flow": np.array([n, -n])}
        SAVES[save](folder / f"{n}{Path(save).suffix}", arrays)
    columns = {"field": "T:p", "points": "xy", "static": ["k", "r:n", "flow:c"]}
    fields = nfsgeo.open(folder, columns=columns)
    assert fields.scalar_names == ["k", "r", "flow_0", "flow_1"]
    for n in range(N):
        expected = np.tile([n + 0.5, n + 2, n, -n], (P, 1))
        np.testing.assert_array_equal(fields.read_inputs(n), expected)


def test_a_number_is_that_of_all_samples(tmp_path):
    np.savez(tmp_path / "a.npz", u=U[:, 0, :, 0], xy=POINTS, k=np.array(3.0))
    columns = {"field": "u:np", "points": "xy", "static": "k"}
    fields = nfsgeo.open(tmp_path / "a.npz", columns=columns)
    assert fields.parameters["k"].tolist() == [3.0] * N


@pytest.mark.parametrize("name", SAVES)
@pytest.mark.parametrize("letters", ["yx", "xy"])
@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_coordinates_along_several_axes_of_a_grid(
    name, letters, indexing, slope, tmp_path, one_line
):
    """They are points, or where they are an outer product the axes of a grid."""
    x, y = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 2, 7), indexing=indexing)
    x = x + slope * y
    u = x + 10 * y + 100 * TIMES[:, None, None]
    SAVES[name](path := tmp_path / name, {"u": u, "x": x, "y": y, "t": TIMES})
    assert "field=u:tyx,x=x,y=y,time=t" in one_line(nfsgeo.open, path)
    for explicit in ("", f":{letters}"):
        columns = {"field": f"u:t{letters}", "time": "t"}
        columns |= {"x": f"x{explicit}", "y": f"y{explicit}"}
        with nfsgeo.open(path, columns=columns) as fields:
            assert (fields.shape is None) == (slope > 0)
            at = fields.coordinates(0)
            expected = at @ [1, 10] + 100 * TIMES[:, None]
            np.testing.assert_allclose(values(fields)[0, ..., 0], expected)


def test_points_of_each_sample_along_axes_of_a_grid(tmp_path, one_line):
    meshes, u = single(N, 6, 7, 2), single(N, T, 6, 7)
    np.savez(tmp_path / "a.npz", u=u, at=meshes, t=TIMES, k=meshes[0, ..., 0])
    columns = {"field": "u:ntyx", "points": "at:nyxd", "static": "k:yx", "time": "t"}
    fields = nfsgeo.open(tmp_path / "a.npz", columns=columns)
    for n in range(N):
        np.testing.assert_array_equal(fields.coordinates(n), meshes[n].reshape(42, 2))
        np.testing.assert_array_equal(
            fields.read_static(n)[:, 0], meshes[0, ..., 0].ravel()
        )
    np.testing.assert_array_equal(values(fields)[..., 0], u.reshape(N, T, 42))
    moving = columns | {"points": "at:tyxd"}
    assert "points=at:tyxd" in one_line(nfsgeo.open, tmp_path / "a.npz", columns=moving)


def test_times_of_pdebench_have_one_more(tmp_path):
    times = np.arange(T + 1.0)
    save_h5(
        tmp_path / "a.h5", {"p": U[..., 0], "x": np.arange(5.0), "t-coordinate": times}
    )
    columns = {"field": "p:ntx", "x": "x", "time": "t-coordinate"}
    assert nfsgeo.open(tmp_path / "a.h5", columns=columns).times.tolist() == [
        0,
        1,
        2,
        3,
    ]
