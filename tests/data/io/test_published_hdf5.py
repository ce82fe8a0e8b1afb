"""Trajectories of MeshGraphNets."""

import shutil

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(3, 9), min_size=1, max_size=12),
    steps=st.integers(1, 4),
    tiled=st.booleans(),
    cells=st.booleans(),
    name=st.sampled_from(["trajectories.h5", "trajectory.npz"]),
)
def test_mesh_graph_nets(examples, sent, tmp_path, sizes, steps, tiled, cells, name):
    path = tmp_path / name
    made = examples[name](path, sizes, steps, tiled, cells)
    times = np.arange(steps) / 100
    with nfsgeo.data.open(path, times=times) as file:
        assert file.component_names == ["pressure", "velocity_0", "velocity_1"]
        assert file.static_names == ["node_type"] == [*file.categories]
        assert file.categories["node_type"][4] == "inflow"
        for each in (file, sent(file)):
            assert each.dataset["node_type"].dtype.kind == "i"
            assert each.categories == file.categories
            assert each.read_inputs(0).dtype == np.float32
        for sample, arrays in enumerate(made):
            first = {k: v[0] if tiled else v for k, v in arrays.items()}
            u = np.concatenate([arrays["pressure"], arrays["velocity"]], axis=-1)
            found = file.read(sample, slice(None))
            np.testing.assert_array_equal(found, u.swapaxes(0, 1))
            np.testing.assert_array_equal(
                found[:, -1:], file.read(sample, slice(steps - 1, steps))
            )
            np.testing.assert_array_equal(file.coordinates(sample), first["mesh_pos"])
            assert file.cells(sample).keys() == ({"triangle"} if cells else set())
            for nodes in file.cells(sample).values():
                np.testing.assert_array_equal(nodes, first["cells"])
            np.testing.assert_array_equal(file.read_static(sample), first["node_type"])


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(4, 9), min_size=1, max_size=4),
    steps=st.integers(1, 3),
    tiled=st.booleans(),
    ending=st.sampled_from(["h5", "npz"]),
)
def test_what_else_trajectories_hold(examples, tmp_path, sizes, steps, tiled, ending):
    """Masks, numbers of points that do not change, and one number for each."""
    path = tmp_path / f"more.{ending}"
    examples["trajectories.h5"](path, sizes, steps)
    random, more = np.random.default_rng(len(sizes)), []
    for n in sizes[: None if ending == "h5" else 1]:
        surf = random.random((n, 1)) < 0.5
        own = {"normal": random.normal(size=(n, 2)), "log_pe": random.normal()}
        own["surf"] = np.tile(surf, (steps, 1, 1)) if tiled else surf[:, 0]
        more.append(own | {"table": random.random((17, 3))})
    if ending == "npz":
        with np.load(path) as arrays:
            np.savez(path, **arrays, **more[0])
    else:
        with h5py.File(path, "a") as file:
            for number, arrays in enumerate(more):
                for name, values in arrays.items():
                    file[f"{number}/{name}"] = values
    with nfsgeo.data.open(path, times=np.arange(steps) / 100) as file:
        assert file.component_names == ["pressure", "velocity_0", "velocity_1"]
        names = ["node_type", "normal_0", "normal_1", "surf"]
        assert file.static_names == names and file.scalar_names == ["log_pe"]
        for sample, arrays in enumerate(more):
            surf = arrays["surf"][0] if tiled else arrays["surf"][:, None]
            known = np.full((len(surf), 1), arrays["log_pe"])
            wanted = np.concatenate([arrays["normal"], surf, known], axis=1)
            np.testing.assert_allclose(file.read_inputs(sample)[:, 1:], wanted)
    columns = {"ignore": ["log_pe", "normal"]}
    with nfsgeo.data.open(path, times=np.arange(steps), columns=columns) as file:
        assert file.input_names == ["node_type", "surf"]


def test_what_is_left_out_of_trajectories_is_said(examples, tmp_path, caplog):
    path = tmp_path / "a.h5"
    examples["trajectories.h5"](path, [5, 6], 2)
    with h5py.File(path, "a") as file:
        for number in range(2):
            file[f"{number}/table"] = np.ones((17, 3))
    nfsgeo.data.open(path, times=range(2))
    assert caplog.messages == [f"{path}: left out table"]


def test_trajectories_that_differ_are_refused(examples, tmp_path, one_line):
    path = tmp_path / "a.h5"
    examples["trajectories.h5"](path, [5, 5], 3)
    with h5py.File(path, "r+") as file:
        del file["1/pressure"]
    message = one_line(nfsgeo.data.open, path, times=range(3))
    assert "trajectory 1 with" in message and "pressure, velocity in each" in message


@pytest.mark.parametrize("name", ["moving", "mesh_pos", "node_type"])
def test_moving_and_missing_places_are_refused(examples, name, tmp_path, one_line):
    path = tmp_path / "a.h5"
    examples["trajectories.h5"](path, [5], 3, name == "moving")
    with h5py.File(path, "r+") as file:
        if name == "moving":
            file["0/mesh_pos"][1] += 1
        else:
            file[f"0/{name}"][2, 0] = -999
            file[f"0/{name}"].attrs["missing_value"] = -999.0
    words = "change in time" if name == "moving" else "1 of"
    assert words in (message := one_line(nfsgeo.data.open, path, times=range(3)))
    assert name == "moving" or "missing" in message


def test_samples_of_pdebench_in_groups(examples, tmp_path, one_line):
    """In the order of their numbers, on one grid."""
    path = tmp_path / "mine.h5"
    u = examples["2D_diff-react_NA_NA.h5"](path).u
    with nfsgeo.data.open(path) as fields:
        assert (fields.num_samples, fields.component_names) == (5, ["u_0", "u_1"])
        found = fields.read(3, slice(1, None)).swapaxes(0, 1)
        assert np.array_equal(found, u[3, 1:].reshape(found.shape))
    path = shutil.copy(path, tmp_path / "other.h5")
    with h5py.File(path, "a") as file:
        file["0003/grid/t"][...] += 1
    assert "grid/t" in one_line(nfsgeo.data.open, path)


def test_arrays_of_as_many_steps_as_points_are_asked_about(tmp_path, one_line):
    path, u = tmp_path / "a.h5", np.arange(36.0).reshape(6, 6)
    with h5py.File(path, "w") as file:
        file.update({"mesh_pos": np.eye(6, 2), "node_type": np.zeros((6, 1), int)})
        file.update({"u": u, "v": u[:, :, None] ** 2, "t": np.arange(6.0)})
    assert "field=u, or static=u" in one_line(nfsgeo.open, path)
    fields = nfsgeo.open(path, columns={"static": "u"})
    assert fields.static_names == ["node_type", *(f"u_{i}" for i in range(6))]
    fields = nfsgeo.open(path, columns={"field": ["u", "v"]})
    assert fields.component_names == ["u", "v"]
    np.testing.assert_array_equal(fields.read(0, slice(None))[..., 0], u.T)
