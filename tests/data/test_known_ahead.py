"""Inputs known ahead: named in every kind of file, and put where windows need them."""

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_fields import Array, build
from torch_geometric.data import Data

import nfsgeo
import nfsgeo.data
from nfsgeo.data import WindowDataset
from nfsgeo.data.conventions import KNOWN, STATIC
from nfsgeo.data.meshes import MeshOfFile, every_point
from nfsgeo.errors import UserError


@given(st.integers(0, 12), st.integers(0, 1), st.booleans())
def test_the_last_observed_time_step(ahead, sample, forcings):
    """Of whichever sample is observed longest."""
    u = np.ones((2, 3, 12))
    u[:, :, 12 - ahead :] = np.nan
    u[1 - sample, :, 4:] = np.nan
    f = np.ones_like(u) if forcings else None
    file = nfsgeo.from_arrays(u, np.eye(3)[:, :2], np.arange(12.0), forcing=f)
    assert file.num_observed() == 12 - ahead


def test_arrays_data_sets_and_graphs_name_them(tmp_path, one_line):
    rng = np.random.default_rng(0)
    u, f = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3, 2))
    pos, t = rng.random((4, 2)), np.arange(3.0)
    known = {"forcing": f, "forcing_names": ["sun", "tide"], "scalars": {"nu": [1, 2]}}
    file = nfsgeo.from_arrays(u, pos, t, **known)
    assert file.forcing_names == ["sun", "tide"] and file.input_names == ["nu"]
    np.testing.assert_array_equal(file.read_all(1, slice(None))[..., 1:], f[1])
    assert file.read_inputs(1).tolist() == [[2.0]] * 4
    for changes, message in (
        ({"forcing": f[:1]}, "dimension 'sample': length 1"),
        ({"forcing": f[:, :, :2]}, "the same samples, points"),
        ({"forcing_names": ["u", "tide"]}, "names that differ"),
        ({"scalars": {"nu": 1.0}}, "arrays of the same samples"),
    ):
        assert message in one_line(nfsgeo.from_arrays, u, pos, t, **known | changes)
    dims = {"p": ("sample", "time", "x"), "sun": ("time", "x"), "nu": "sample"}
    values = {"p": u.swapaxes(1, 2), "sun": u[0].T, "nu": [1.0, 2.0]}
    dataset = xarray.Dataset(
        {name: (dims[name], values[name]) for name in dims}, {"time": t, "x": pos[:, 0]}
    )
    file = nfsgeo.from_xarray(dataset.sortby("x"), known=["sun", "nu"])
    assert (file.component_names, list(file.forcing_names)) == (["p"], ["sun"])
    order = np.argsort(pos[:, 0])
    for sample in range(2):
        read = file.read_all(sample, slice(None))
        np.testing.assert_array_equal(read[..., 1], u[0][order])
    assert file.input_names == ["nu"]
    arrays = {"pos": pos, "x": u[0, :, :2, None], "y": u[0, :, 2:, None], "t": t}
    tensors = {name: torch.tensor(v) for name, v in arrays.items()}
    graphs = [Data(**tensors, forcing=torch.tensor(f[i]), nu=float(i)) for i in (0, 1)]
    file = nfsgeo.from_pyg(graphs, known=["nu"])
    assert file.component_names == ["u"] and file.forcing_names == ["f_0", "f_1"]
    np.testing.assert_array_equal(file.read_all(0, slice(None))[..., 1:], f[0])
    assert file.read_inputs(1).tolist() == [[1.0]] * 4


@settings(max_examples=25)
@given(*map(st.integers, (1, 1, 0, 1), (4, 4, 3, 2)), st.booleans())
def test_windows_have_the_values_of_their_own_time_steps(
    n_in, n_out, first, stride, drop
):
    rng, numbers = np.random.default_rng(0), first + stride * np.arange(n_in + n_out)
    assume(numbers[-1] < 12)
    u, f = rng.normal(size=(2, 2, 5, 12, 2))
    arrays = [Array(u, "nptc", ["p", "q"]), Array(f, "nptc", ["sun", "tide"], KNOWN)]
    arrays.append(Array(rng.normal(size=(2, 5)), "np", ["height"], STATIC))
    about = {"points": rng.random((5, 2)), "times": np.arange(12.0)}
    about |= {"parameters": {"nu": [0.5, 1.5]}}
    file = build(Path("stations"), arrays, **about).with_known(["nu"])
    more = {"numbers": numbers, "drop_absent": drop}
    data = WindowDataset(file, [1, 0], n_in, n_out, every_point(file), **more)
    data.noise = torch.zeros(4)
    for number, sample in enumerate((1, 0)):
        item, both = data[number], file.read_all(sample, slice(None))[:, numbers]
        inputs = np.repeat(file.read_inputs(sample)[:, None], n_in, axis=1)
        np.testing.assert_array_equal(item.x[..., :2], both[:, :n_in, :2])
        np.testing.assert_array_equal(item.x[..., 2:], inputs)
        np.testing.assert_array_equal(item.y, both[:, n_in:, :2])
        np.testing.assert_array_equal(item.forcing, both[..., 2:])
        np.testing.assert_array_equal(item.times, file.times[numbers])
        assert item.x.shape == (5, n_in, 4) and item.forcing.is_contiguous()
        assert item.sample == sample and item.pos.dtype == torch.float64


def test_a_forcing_has_to_be_known():
    u, f = np.ones((2, 1, 3, 4, 1))
    f[0, 1, 2] = np.nan
    points = np.arange(3.0)[:, None]
    arrays = [Array(u, "nptc", ["u"]), Array(f, "nptc", ["forcing_sun"])]
    days = np.arange(4).astype("M8[D]")
    file = build(Path("a"), arrays, points=points, times=days)
    data = WindowDataset(file, [0], 1, 1, MeshOfFile(file), first_step=1)
    with pytest.raises(UserError, match="of sun, known ahead, at 1970-01-03"):
        data[0]
    with pytest.raises(UserError, match="no input time steps.*with sun"):
        WindowDataset(file, [0], 0, 1, MeshOfFile(file))


def test_static_inputs_have_to_be_known():
    arrays = [Array(np.ones((4, 3)), "tp", ["u"])]
    arrays += [Array(np.ones(3), "p", [name], STATIC) for name in ("width", "type")]
    arrays += [Array(np.array([1, np.nan, 2]), "p", ["depth"], STATIC)]
    points, times = np.arange(3.0)[:, None], np.arange(4.0)
    file = build(Path("a"), arrays, points=points, times=times)
    with pytest.raises(
        UserError, match="^input depth of sample 0 of a with 1 of 3 values"
    ):
        WindowDataset(file, [0], 1, 1, MeshOfFile(file))[0]


def test_points_that_are_absent_take_their_forcing_with_them(tmp_path):
    u, f = np.ones((1, 4, 3, 1)), np.arange(12.0).reshape(1, 4, 3, 1)
    u[0, 2] = np.nan
    file = nfsgeo.from_arrays(u, np.random.rand(4, 2), np.arange(3.0), forcing=f)
    data = WindowDataset(file, [0], 2, 1, every_point(file), drop_absent=True)
    item = data[0]
    assert len(item.pos) == len(item.forcing) == 3
    assert item.forcing[2, :, 0].tolist() == [9, 10, 11]
