"""Published sets on grids and at points: names, times, splits, what is refused."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.io.labelled import even_axis
from nfsgeo.data.splits import published_split, split_in_order

RNG = np.random.default_rng(2)
CAMLAB = "Wave-Layer.nc"
sizes = st.integers(1, 5)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def read_all(path: Path) -> None:
    with nfsgeo.data.open(path) as file:
        for sample in range(file.num_samples):
            file.read(sample, slice(None))
            file.read_static(sample)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes, st.integers(1, 3), st.booleans(), st.integers(0, 2))
def test_camlab_of_any_size(
    examples, tmp_path, samples, steps, points, width, dim, shared, static
):
    u = normal(samples, steps, points, width)
    x = RNG.random((1 if shared else samples, 1, points, dim))
    c = normal(samples, 1, points, static)
    arrays = {"u": u, "x": x} | ({"c": c.repeat(steps, axis=1)} if static else {})
    path = examples[CAMLAB](tmp_path / "own.nc", **arrays)
    with nfsgeo.data.open(path, times=np.arange(float(steps))) as file:
        assert (file.num_samples, file.components) == (samples, width)
        assert len(set(file.sample_mesh)) == len(x) and not file.domain_is_known
        for sample in range(samples):
            found = file.read(sample, slice(None)).swapaxes(0, 1)
            np.testing.assert_array_equal(found, u[sample])
            np.testing.assert_array_equal(file.read_static(sample), c[sample, 0])
            pos = file.coordinates(sample)
            np.testing.assert_array_equal(pos, x[sample % len(x), 0])


def test_times_domains_and_names_of_published_sets(examples, tmp_path):
    x, u = RNG.random((1, 1, 6, 2)), normal(3, 21, 6, 5)
    for name, end, names in (
        ("NS-Gauss", 1.0, ["velocity_x", "velocity_y"]),
        ("ns_pwc", 1.0, ["velocity_x", "velocity_y"]),
        ("CE-Gauss", 1.0, ["density", "velocity_x", "velocity_y", "pressure"]),
        ("wave_c_sines", 0.1, ["u"]),
    ):
        with nfsgeo.data.open(
            examples[CAMLAB](tmp_path / f"{name}.nc", u=u, x=x)
        ) as file:
            np.testing.assert_allclose(file.times, np.linspace(0, end, 21))
            assert file.component_names == names
            flow = "wave" not in name
            assert file.domain.periodic == (flow, flow)
            assert file.domain_is_known == flow
            found = file.read(1, slice(14, 15))[:, 0]
            np.testing.assert_array_equal(found, u[1, 14, :, : len(names)])
    c = normal(3, 1, 6, 1)
    path = examples[CAMLAB](tmp_path / "Poisson-Gauss.nc", u=u[:, :1, :, :1], x=x, c=c)
    with nfsgeo.data.open(path) as file:
        assert file.times.tolist() == [0.0] and file.static_names == ["source"]


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("own", {"u": np.zeros((3, 21, 6, 2))}, "--times"),
        ("NS-Gauss", {"u": np.zeros((3, 15, 6, 2))}, "--times"),
        ("own", {"x": np.zeros((2, 1, 6, 2))}, "x of shape"),
        ("own", {"x": np.zeros((1, 2, 6, 2))}, "x of shape"),
        ("own", {"x": np.zeros((1, 1, 5, 2))}, "x of shape"),
        ("own", {"x": np.full((1, 1, 6, 2), np.nan)}, "finite"),
        ("own", {"c": np.zeros((3, 1, 5, 1))}, "dimension 'point'"),
        ("own", {"c": np.zeros((3, 6))}, "dimension"),
        ("own", {"c": np.zeros((3, 6, 6))}, "dimension"),
        ("own", {"c": np.arange(36.0).reshape(3, 2, 6, 1)}, "changes in time"),
        (
            "own",
            {"c": np.eye(5)[1].reshape(5, 1, 1) * np.ones((3, 1, 6, 1))},
            "changes in time",
        ),
        ("NS-SL", {"x": 1.5 + np.zeros((1, 1, 6, 2))}, "domain"),
        ("NS-SL", {"u": np.zeros((3, 21, 6, 1))}, "velocity_y"),
        ("Poisson-Gauss", {}, "'c'"),
    ],
)
def test_sets_of_camlab_that_contradict_themselves(
    examples, tmp_path, one_line, name, change, word
):
    steps = 21 if name == "NS-SL" else 1
    arrays = {"u": normal(3, steps, 6, 2), "x": RNG.random((1, 1, 6, 2))}
    path = examples[CAMLAB](tmp_path / f"{name}.nc", **(arrays | change))
    assert word in one_line(read_all, path)


def test_arrays_that_no_set_has_are_named(examples, tmp_path, caplog):
    path = tmp_path / "burgers_data_R10.mat"
    square = normal(20, 8)
    scipy.io.savemat(path, dict.fromkeys(("a", "u", "a_x", "mine", "t"), square))
    read_all(path)
    assert "left out mine, t\n" in caplog.text
    more = {"x": RNG.random((1, 1, 6, 2)), "c": normal(3, 21, 6, 1)}
    read_all(examples[CAMLAB](tmp_path / "NS-SL.nc", u=normal(3, 21, 6, 2), **more))
    assert "NS-SL.nc: left out c" in caplog.text


@settings(max_examples=20)
@given(sizes, sizes, sizes, sizes)
def test_geo_fno_of_any_size(examples, tmp_path, samples, points, rows, columns):
    def made(name: str) -> Path:
        return examples[name](tmp_path / name, samples, points, (rows, columns))

    path = made("Random_UnitCell_sigma_10.npy")
    stress, pos = np.load(path), np.load(tmp_path / "Random_UnitCell_XY_10.npy")
    wanted = [(path, "stress", stress.T[..., None], pos.transpose(2, 0, 1))]
    for name, channel, component in (
        ("Pipe", 0, "velocity_x"),
        ("NACA_Cylinder", 4, "mach"),
    ):
        path = made(f"{name}_Q.npy")
        fields = np.load(path)[:, channel].reshape(samples, -1, 1)
        axes = [np.load(tmp_path / f"{name}_{axis}.npy") for axis in "XY"]
        pos = np.stack(axes, -1).reshape(samples, -1, 2)
        wanted.append((path, component, fields, pos))
    for path, component, fields, pos in wanted:
        with nfsgeo.data.open(path) as file:
            assert file.component_names == [component] and len(file.times) == 1
            assert file.static_names == ["x_position", "y_position"]
            for sample in range(samples):
                found = file.read(sample, slice(None))[:, 0]
                np.testing.assert_array_equal(found, fields[sample])
                np.testing.assert_array_equal(file.coordinates(sample), pos[sample])
                np.testing.assert_array_equal(file.read_static(sample), pos[sample])


@pytest.mark.parametrize(
    ("file", "shape"),
    [
        ("Pipe_Q.npy", (4, 12)),
        ("Pipe_Q.npy", (4, 0, 3, 4)),
        ("Pipe_X.npy", (3, 3, 4)),
        ("Pipe_Y.npy", (4, 4, 3)),
        ("NACA_Cylinder_Q.npy", (4, 4, 3, 4)),
        ("Random_UnitCell_XY_10.npy", (7, 3, 4)),
        ("Random_UnitCell_XY_10.npy", (4, 7, 2)),
        ("Random_UnitCell_sigma_10.npy", (4, 7)),
    ],
)
def test_arrays_of_geo_fno_that_do_not_fit(examples, tmp_path, one_line, file, shape):
    names = "Random_UnitCell_sigma_10.npy", "Pipe_Q.npy", "NACA_Cylinder_Q.npy"
    (name,) = (each for each in names if each[:4] == file[:4])
    examples[name](tmp_path / name, 4, 7, (3, 4))
    np.save(tmp_path / file, np.zeros(shape))
    one_line(nfsgeo.data.open, tmp_path / name)


def test_no_code_in_arrays_is_run(examples, tmp_path, one_line):
    path = examples["Pipe_Q.npy"](tmp_path / "Pipe_Q.npy")
    np.save(path, np.array([print, "never"], dtype=object), allow_pickle=True)
    one_line(nfsgeo.data.open, path)


@given(st.integers(1, 3000), st.booleans())
def test_published_splits(num, test_last):
    split = published_split(num, 1000, 100, 200, test_last=test_last)
    if num < 1300:
        expected = split_in_order(num)
        assert all(np.array_equal(split[part], expected[part]) for part in split)
        return
    assert split["train"].tolist() == list(range(1000))
    first = num - 200 if test_last else 1000
    assert split["test"].tolist() == list(range(first, first + 200))
    assert len(set(np.concatenate(list(split.values())))) == 1300


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
    examples, tmp_path, one_line, name, array, change
):
    path = tmp_path / name
    examples[name](path)
    with h5py.File(path, "r+") as file:
        values, about = file[array][()], dict(file[array].attrs)
        del file[array]
        file[array] = change(values)
        file[array].attrs.update(about)
    assert str(path) in one_line(read_all, path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"x": torch.zeros(5, 6), "y": torch.zeros(5, 6, 4)}, "darcy_train_16.pt"),
        ({"x": torch.zeros(5, 6, 3), "y": torch.zeros(5, 3, 6)}, "darcy_train_16.pt"),
        ({"x": torch.zeros(5, 6)}, "arrays x [5, 6]"),
        ({"data": torch.zeros(3), "n": 2}, "arrays data [3]"),
        ([torch.zeros(3)], "a list in place of a dict of tensors"),
    ],
)
def test_torch_files_of_something_else(tmp_path, one_line, content, words):
    torch.save(content, tmp_path / "darcy_train_16.pt")
    assert words in one_line(nfsgeo.data.open, tmp_path / "darcy_train_16.pt")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("burgers_data_R10.mat", {"field": "u:nx", "static": "a:nx"}),
        ("NavierStokes_V1e-3_N5_T4.mat", {"field": "u:nxyt", "static": "a:nxy"}),
        ("piececonst_r6_N5_smooth1.mat", {"field": "sol:nxy", "static": "coeff:nxy"}),
        ("darcy_train_16.pt", {"field": "y:nxy", "static": "x:nxy"}),
        ("dataset_sr128.pkl", {"field": "u:nxyt", "static": "a:nxy"}),
    ],
)
def test_files_of_other_names_are_asked_about(name, told, examples, tmp_path, one_line):
    """The published sets are known by their names."""
    path = tmp_path / f"own{Path(name).suffix}"
    expected = examples[name](path)
    message = one_line(nfsgeo.data.open, path)
    assert "coordinates, the domain and the times" in message and "field=" in message
    axes = {"x": "0:1", "y": "0:1"} if "nxy" in told["field"] else {"x": "0:1"}
    times = np.arange(4.0) if "NavierStokes" in name else None
    with nfsgeo.data.open(path, columns=told | axes, times=times) as file:
        assert not file.domain_is_known
        found = file.read(3, slice(None)).swapaxes(0, 1)
        wanted = expected.u[3].reshape(-1, *found.shape[1:])[-len(found) :]
        np.testing.assert_array_equal(found, wanted)


def test_pdebench_of_another_name_has_no_domain(examples, tmp_path):
    for name in ("1D_Burgers_Sols_Nu0.02.hdf5", "2D_DarcyFlow.hdf5"):
        expected = examples[name](tmp_path / "own.hdf5")
        with nfsgeo.data.open(tmp_path / "own.hdf5") as file:
            assert not file.domain_is_known and not any(file.domain.periodic)
            np.testing.assert_allclose(file.axes[0], expected.axes[0], rtol=1e-6)
        (tmp_path / "own.hdf5").unlink()


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("burgers_v100_t3_r6.mat", np.linspace(0, 1, 4)),
        ("burgers_v100_t99_r6.mat", None),
        ("NavierStokes_V1e-3_N5_T4.mat", np.arange(1.0, 5)),
        ("NavierStokes_V1e-3_N5_T9.mat", None),
        ("burgers_lowres.pt", np.linspace(0, 1, 101)[::6]),
        ("burgers_train_16.pt", None),
        ("dataset_sr64.pkl", None),
    ],
)
def test_times_that_names_tell(name, times, tmp_path, one_line):
    path = tmp_path / name
    if name.endswith("pkl"):
        import pickle

        path.write_bytes(pickle.dumps({"u": normal(3, 6, 4), "a": normal(3, 6)}))
    elif name.endswith("pt"):
        y = torch.randn(3, 4 if times is None else 17, 6)
        torch.save({"x": y[:, 0].clone(), "y": y}, path)
    elif name.startswith("b"):
        scipy.io.savemat(path, {"input": normal(3, 6), "output": normal(3, 4, 6)})
    else:
        scipy.io.savemat(path, {"a": normal(3, 6, 5), "u": normal(3, 6, 5, 4)})
    if times is None:
        message = one_line(nfsgeo.data.open, path)
        assert "no times" in message and "--times 0:3:1" in message
        with nfsgeo.data.open(path, times=[0, 1, 2, 5]) as file:
            assert file.times[-1] == 5
    else:
        with nfsgeo.data.open(path) as file:
            np.testing.assert_allclose(file.times, times)


@given(st.integers(2, 2048), st.floats(-100, 100), st.floats(1e-3, 1e3), st.booleans())
def test_even_axis_undoes_single_precision(num, lower, length, centred):
    lower *= length / 1000
    exact = lower + (np.arange(num) + centred / 2) / num * length
    axis, low, high = even_axis(exact.astype(np.float32), centred=centred)
    np.testing.assert_allclose(axis, exact, atol=2e-6 * length)
    np.testing.assert_allclose([low, high], [lower, lower + length], atol=2e-6 * length)
    assert low <= axis[0] and axis[-1] < high
