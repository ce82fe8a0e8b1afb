"""Fields in memory: the same content as the arrays, and one file for one content."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import pytest
import torch
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import nfsgeo
from nfsgeo.data.io.from_memory import saved_path
from nfsgeo.errors import UserError
from nfsgeo.files import cache_folder
from nfsgeo.geometry import Domain, Region


@settings(max_examples=15)
@given(data=st.data())
def test_a_file_holds_what_the_arrays_do(data):
    least, most = (1, 2, 1, 1, 0, 1, 0), (4, 6, 3, 2, 2, 3, 99)
    numbers = data.draw(st.tuples(*map(st.integers, least, most)))
    samples, points, steps, width, wide, dim, seed = numbers
    own, tensors = data.draw(st.booleans()), data.draw(st.booleans())
    rng = np.random.default_rng(seed)
    sizes = [points + own * sample for sample in range(samples)]
    u = [rng.normal(size=(n, steps, width)) for n in sizes]
    a = [rng.normal(size=(n, wide)) for n in sizes]
    pos = [rng.random((n, dim)) for n in sizes]
    given_u: Any = [torch.tensor(each) for each in u] if tensors else u
    file = nfsgeo.from_arrays(
        given_u if own else np.stack(u),
        pos if own else pos[0],
        np.arange(steps) / 4 if steps > 1 else None,
        static=(a if own else np.stack(a)) if wide else None,
        domain=Domain.unit(dim, periodic=True),
    )
    assert file.num_samples == samples and file.components == width
    assert all(file.domain.periodic) and file.domain_is_known
    np.testing.assert_array_equal(file.times, np.arange(steps) / 4)
    for sample in range(samples):
        np.testing.assert_array_equal(file.read(sample, slice(None)), u[sample])
        np.testing.assert_array_equal(
            file.coordinates(sample), pos[sample if own else 0]
        )
        if wide:
            np.testing.assert_array_equal(file.read_static(sample), a[sample])


@settings(max_examples=30)
@given(data=st.data())
def test_a_line_tells_the_order_of_axes_that_may_be_swapped(data, caplog):
    """All axes, or different sizes, are read as they are without a line."""
    sizes = data.draw(st.tuples(*[st.integers(2, 3)] * 3))
    num, points, times = sizes
    axes = data.draw(st.integers(2, 4))
    times = times if axes > 2 else 1
    u = np.random.default_rng(0).random((num, points, times))
    t = np.arange(times) if axes > 2 else None
    caplog.clear()
    fields = nfsgeo.from_arrays(
        {2: u[..., 0], 3: u, 4: u[..., None]}[axes], np.eye(points)[:, :3], t
    )
    swapped = {2: num, 3: times}.get(axes) == points
    assert ("in the order samples, points" in caplog.text) == swapped
    for sample in range(num):
        read = fields.read(sample, slice(None))[..., 0]
        np.testing.assert_array_equal(read, u[sample])


def test_the_same_content_is_cached_once():
    u, pos = np.random.default_rng(0).normal(size=(3, 8, 2)), np.random.rand(8, 2)
    first = saved_path(nfsgeo.from_arrays(u, pos, [0.0, 1.0]))
    made = first.stat().st_mtime_ns
    assert saved_path(nfsgeo.from_arrays(u.tolist(), pos, [0, 1])) == first
    assert first.parent == cache_folder() and first.stat().st_mtime_ns == made
    split = {"train": [2], "valid": [0], "test": [1]}
    square = np.array([[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]])
    far = Domain((-9.0, -9.0), (9.0, 9.0), (False, False))
    walled = [replace(far, region=Region.polygons([square + c])) for c in (2, 3)]
    others: list[dict[str, Any]] = [
        {"u": u + 1},
        {"u": u.astype("f4")},
        {"t": [0, 2]},
        {"component_names": ["p"]},
        {"units": {"u": "K"}},
        {"domain": Domain.unit(2)},
        *({"domain": each} for each in walled),
        {"static": u[..., :1]},
        {"scalars": {"nu": [1, 2, 3]}},
        {"scalars": {"nu": [1, 2, 4]}},
        {"split": split},
    ]
    same = {"u": u, "pos": pos, "t": [0, 1]}
    made_of = [saved_path(nfsgeo.from_arrays(**same | each)) for each in others]
    assert len({first, *made_of}) == 1 + len(others)


@pytest.mark.slow
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_cached_opens_as_it_was(any_fields, contents, data):
    fields, _ = data.draw(any_fields)
    with nfsgeo.open(saved_path(fields)) as again:
        assert again.reopens and saved_path(again) == again.path == saved_path(fields)
        assert contents(again) == contents(fields)


SPLIT = "each number at most once"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"t": None}, "components or time steps; give 2 component_names"),
        ({"pos": [[[0.0, 0.0]] * 4] * 2}, "the same samples, points and time steps"),
        ({"static": np.zeros((2, 4))}, "sizes for dimension 'sample'"),
        ({"pos": np.full((4, 2), np.nan)}, "8 of 8 values missing"),
        ({"u": np.zeros((3, 4, 2, 2)), "component_names": ["p"]}, "1 names (p) for"),
        ({"pos": np.ma.masked_less(np.arange(8.0).reshape(4, 2), 1)}, "1 of 8 values"),
        ({"pos": []}, "shape (0,)"),
        ({"u": None}, "without samples"),
        ({"cells": {"triangle": [[0, 1, 4]]}}, "triangle cells of shape (1, 3)"),
        ({"cells": [{"line": [[0, 1]]}] * 2}, "cells of 2 samples"),
        ({"cells": {"quad": [[0, 1, 2]]}}, "[cells, 4], the nodes of each"),
        ({"cells": {"triangle6": [[0, 1, 2]]}}, "[cells, 6], the nodes of each"),
        ({"cells": {"tetra": np.arange(4)[:, None]}}, "[cells, 4], the nodes of each"),
        ({"cells": {"triangle": [[0, 1, 1.5]]}}, "whole numbers from 0 to 3"),
        ({"cells": {"line": [[[0, 1]]] * 2}}, "cells of 2 samples"),
        ({"cells": {"tri": [[0, 1, 2]]}}, "cells of type 'tri': expected vertex, line"),
        ({"cells": [{"foo3": [[0, 1, 2]]}]}, "cells of type 'foo3': expected vertex"),
        ({"static": {"h": np.zeros((2, 4))}}, "sizes for dimension 'sample'"),
        ({"static": {"h": ["a"] * 3}}, "static h of type <U1"),
        ({"static": {"h": np.ones((3, 4))}, "static_names": ["b"]}, "the names b"),
        ({"scalars": [1, 2, 3]}, "'list' object"),
        ({"scalars": {"nu": [1, 2]}}, "sizes for dimension 'sample'"),
        ({"units": {"w": "K"}}, "units of w"),
        ({"node_types": {0: "wall"}}, "names of node types of arrays, which has none"),
        ({"split": {"train": [0, 1, 2]}}, SPLIT),
        ({"split": {"train": [0], "valid": [1], "test": [1]}}, SPLIT),
        ({"split": {"train": [0], "valid": [1], "test": [3]}}, SPLIT),
        ({"split": {"train": [0.0], "valid": [1], "test": [2]}}, SPLIT),
        ({"scalars": {"nu": [1, np.nan, 3]}}, "nu with 1 of 3 values missing"),
    ],
)
def test_arrays_that_do_not_fit(changes, words, one_line):
    arrays: dict[str, Any] = {"u": np.zeros((3, 4, 2)), "pos": np.random.rand(4, 2)}
    arrays |= {"t": [0.0, 1.0]} | changes
    assert words in one_line(nfsgeo.from_arrays, **arrays)


@settings(max_examples=15)
@given(data=st.data())
def test_cells_and_node_types_of_arrays(data, sent):
    num, own = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = [5 + own * sample for sample in range(num)]
    kinds = ["triangle", "quad"]
    cells = [
        {
            kind: rng.integers(0, n, (int(rng.integers(0, 4)), 3 + k))
            for k, kind in enumerate(kinds)
        }
        for n in sizes
    ]
    types = [rng.integers(0, 7, (n, 1)) for n in sizes]
    shared = not own and data.draw(st.booleans())
    pos = [rng.random((n, 2)) for n in sizes]
    fields = nfsgeo.from_arrays(
        [rng.normal(size=n) for n in sizes],
        pos if own else pos[0],
        static=types,
        static_names=["node_type"],
        node_types={1: "wall", 9: "no slip"},
        cells=cells[0] if shared else cells,
    )
    for each in (fields, sent(fields)):
        assert each.categories == {"node_type": {1: "wall", 9: "no_slip"}}
        assert each.dataset["node_type"].dtype.kind == "i"
        for sample in range(num):
            wanted = cells[0 if shared else sample]
            found = each.cells(sample)
            assert found.keys() == {kind for kind in kinds if len(wanted[kind])}
            for kind, nodes in found.items():
                np.testing.assert_array_equal(nodes, wanted[kind])
            np.testing.assert_array_equal(each.read_static(sample), types[sample])


def test_what_a_mask_hides_is_missing():
    mask = np.random.default_rng(0).random((3, 4, 2)) < 0.3
    hidden = np.ma.array(np.ones(mask.shape), mask=mask)
    file = nfsgeo.from_arrays(hidden, np.random.rand(4, 2), [0, 1])
    found = [np.isnan(file.read(sample, slice(None))[..., 0]) for sample in range(3)]
    np.testing.assert_array_equal(found, mask)


def test_arrays_in_place_of_a_path(one_line):
    for call in (nfsgeo.open, nfsgeo.prepare, saved_path):
        assert "type ndarray" in one_line(call, np.zeros((3, 2)))


def test_a_data_set_of_xarray(contents, one_line):
    values = ("time", "y", "x"), np.random.default_rng(0).normal(size=(3, 4, 5))
    axes = {"time": np.arange(3.0), "y": np.arange(4.0), "x": np.arange(5.0)}
    dataset = xarray.Dataset({"temperature": values}, axes)
    one, all_ = map(nfsgeo.from_xarray, (dataset["temperature"], dataset))
    assert contents(one) == contents(all_)
    stacked = dataset.stack(land=("x", "y")).isel(land=slice(7, None))
    points = nfsgeo.from_xarray(stacked)
    assert np.array_equal(points.coordinates(), all_.coordinates()[7:])
    assert np.array_equal(points.read(0, slice(1)), all_.read(0, slice(1))[7:])
    globe = dataset.rename(x="lon").assign_coords(lon=np.arange(0, 360, 72.0))
    globe["lon"].attrs["units"] = "degrees_east"
    box = Domain((0.0, -1.0), (360.0, 4.0), (True, False))
    assert nfsgeo.from_xarray(globe, domain=box).domain == box
    with pytest.raises(UserError, match=r"domain=Domain\.sphere\(\)"):
        nfsgeo.from_xarray(globe)
    for wrong, message in (
        (globe, "--sphere"),
        (dataset.drop_vars("temperature"), "no field"),
        (dataset.drop_vars("time"), "dataset with 3 time steps and no times"),
        (dataset.expand_dims(level=2), "--columns sample=level"),
        (xarray.Dataset(), "no variables"),
        ("sea.nc", "dataset ('str' object has no attribute 'variables')"),
    ):
        assert message in one_line(nfsgeo.from_xarray, wrong)


def test_types_of_pandas_in_a_data_set_of_xarray():
    """Dates of a time zone, categories, and integers of which one is missing."""
    days = pandas.date_range("2026-01-01", periods=2, tz="Europe/Berlin")
    pairs = pandas.MultiIndex.from_product([days, list("ba")], names=["time", "site"])
    frame = pandas.DataFrame({"u": pandas.array([1, 2, None, 4])}, pairs).reset_index()
    frame["site"] = frame["site"].astype("category")
    dataset = frame.set_index(["time", "site"]).to_xarray()
    fields = nfsgeo.from_xarray(dataset.assign_coords(x=("site", [0.0, 1.0])))
    assert fields.times.tolist() == [1767222000.0, 1767308400.0]
    assert fields.stations() == dataset["site"].values.tolist()
    found = fields.read(0, slice(None))[:, :, 0]
    expected = {"a": [2, 4], "b": [1, np.nan]}
    np.testing.assert_array_equal(found, [expected[s] for s in fields.stations()])


def test_a_list_of_graphs(one_line):
    graphs = [
        Data(pos=torch.rand(4 + i, 2), x=torch.randn(4 + i, 3, 1), t=torch.arange(3.0))
        for i in range(3)
    ]
    assert nfsgeo.from_pyg(graphs, domain=Domain.unit(2)).domain == Domain.unit(2)
    wide = Data(pos=graphs[0].pos, x=torch.ones(4, 3, 2), t=graphs[0].t)
    for wrong, message in (
        ([], "graphs with no graph: expected a list of Data"),
        (["a"], "with a str: expected a list"),
        ([graphs[0], wide], "differs from the first in x"),
        ([Data(pos=torch.rand(4, 2), x="waves")], "graphs"),
    ):
        assert message in one_line(nfsgeo.from_pyg, wrong)
    for columns in ({"statc": "u_0"}, {"time": "zz"}):
        message = one_line(nfsgeo.from_pyg, graphs, columns=columns)
        assert f"columns with {min(columns)}= of graphs" in message


def test_tensors_of_any_kind():
    u, pos = torch.randn(3, 5, 2, requires_grad=True), torch.rand(5, 2).bfloat16()
    file = nfsgeo.from_arrays(u, pos, torch.arange(2.0, requires_grad=True))
    np.testing.assert_array_equal(file.read(1, slice(None))[..., 0], u[1].detach())
    np.testing.assert_array_equal(file.coordinates(), pos.double())


@pytest.mark.parametrize("kind", [object, "gaps", "text"])
def test_objects_of_python_in_a_data_set(kind, one_line):
    """They are numbers, None where one is missing; words are no numbers."""
    numbers = np.random.default_rng(0).random((3, 4, 5))
    axes = {"time": np.arange(3.0), "y": np.arange(4.0), "x": np.arange(5.0)}
    whole = xarray.Dataset({"u": (tuple(axes), numbers)}, axes)
    objects = whole.astype(object)
    if kind == "gaps":
        whole = whole.where(whole.u > 0.5)
        objects = objects.where(whole.u > 0.5, None)
    if kind == "text":
        objects = objects.where(whole.u > 0.5, "M")
        assert "u" in one_line(nfsgeo.from_xarray, objects)
        return
    read, same = (nfsgeo.from_xarray(d).read(0, slice(None)) for d in (objects, whole))
    np.testing.assert_array_equal(read, same)


@pytest.mark.parametrize("index", [0, -1])
def test_one_time_step_of_a_data_set(index):
    days = pandas.date_range("2024-02-28", periods=3)
    axes = {"time": days, "y": np.arange(4.0), "x": np.arange(5.0)}
    whole = xarray.Dataset({"u": (tuple(axes), np.random.rand(3, 4, 5))}, axes)
    fields = nfsgeo.from_xarray(whole.isel(time=index))
    one = nfsgeo.from_xarray(whole.isel(time=[index]))
    np.testing.assert_array_equal(fields.read(0, slice(1)), one.read(0, slice(1)))
    assert fields.times.tolist() == one.times.tolist()


def test_arrays_of_objects_hold_samples_as_lists_do(contents):
    rng = np.random.default_rng(0)
    u, pos = [[rng.random((n, k)) for n in (10, 12)] for k in (3, 2)]
    objects = (np.array(arrays, object) for arrays in (u, pos))
    times = np.arange(3.0)
    as_list = nfsgeo.from_arrays(u, pos, times)
    assert contents(nfsgeo.from_arrays(*objects, times)) == contents(as_list)


def test_points_whose_axes_are_swapped(one_line):
    u, pos = np.random.rand(4, 30, 6), np.random.rand(30, 2)
    message = one_line(nfsgeo.from_arrays, u, pos.T, np.arange(6.0))
    assert "(2, 30)" in message and "transpose pos" in message


@pytest.mark.parametrize("dims", [("site",), ("time", "site")])
@pytest.mark.parametrize("kind", [str, object, bytes])
def test_text_at_points_is_left_out_with_a_line(dims, kind, caplog):
    rng = np.random.default_rng(0)
    text = np.full([{"site": 5, "time": 3}[dim] for dim in dims], "NY").astype(kind)
    data = {"u": (("time", "site"), rng.random((3, 5))), "county": (dims, text)}
    data |= {"name": ("site", list("abcde"))}
    places = {axis: ("site", rng.random(5)) for axis in "xy"}
    dataset = xarray.Dataset(data, {"time": np.arange(3.0), **places})
    for stations in (dataset, dataset.drop_vars("name")):
        caplog.clear()
        fields = nfsgeo.from_xarray(stations)
        assert fields.component_names == ["u"]
        assert "left out county" in caplog.text and "left out name" not in caplog.text
        assert ("station" in fields.dataset) == ("name" in stations)


@pytest.mark.parametrize("freq", ["D", "M", "Y"])
def test_periods_of_pandas_are_asked_about(freq, tmp_path, one_line):
    """A period has a beginning and an end: advice for both of these is followed."""
    periods = pandas.period_range("2026-01", periods=3, freq=freq)
    u, pos = np.arange(12.0).reshape(1, 4, 3), np.random.default_rng(0).random((4, 2))
    frame = pandas.DataFrame({"x": [0.0, 1, 2], "u": 1.0}, index=periods)
    frame.to_parquet(tmp_path / "a.parquet")
    places = {axis: ("point", pos[:, k]) for k, axis in enumerate("xy")}
    array = xarray.DataArray(u[0], {**places, "time": periods}, ("point", "time"))
    graph = Data(pos=torch.as_tensor(pos), x=torch.as_tensor(u[0, ..., None]))
    graph.t = periods
    for read in (
        lambda: nfsgeo.from_arrays(u, pos, periods),
        lambda: nfsgeo.from_arrays(u, pos, pandas.Series(periods)),
        lambda: nfsgeo.from_xarray(array),
        lambda: nfsgeo.from_pyg([graph]),
        lambda: nfsgeo.open(tmp_path / "a.parquet"),
    ):
        text = one_line(read)
        assert f"periods such as {periods[0]}: expected dates; convert them" in text
    assert "pandas.PeriodIndex(times).to_timestamp()" in text
    for how in ("start", "end"):
        dates = pandas.PeriodIndex(periods).to_timestamp(how=how)
        seconds = dates.as_unit("us").astype("int64") / 1e6
        np.testing.assert_array_equal(nfsgeo.from_arrays(u, pos, dates).times, seconds)


def test_tables_of_pandas_are_no_data_set(one_line):
    table = pandas.DataFrame({"x": [0.0, 1], "u": [1.0, 2]})
    for kind, wrong in (("DataFrame", table), ("Series", table["u"])):
        text = one_line(nfsgeo.from_xarray, wrong)
        assert f"of type {kind}: expected a Dataset" in text


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("role", ["field", "static", "known"])
def test_infinite_values_are_found_at_once(bad, role, tmp_path, one_line):
    """They are refused in memory; a lazy data set is read when its values are used."""
    random = np.random.default_rng(0)
    pos, t = random.random((5, 2)), np.arange(3.0)
    values = {"field": random.random((2, 5, 3)), "static": random.random((2, 5))}
    values["known"] = random.random((2, 5, 3))
    values[role][1, 2] = bad
    u, a, f = values.values()
    num = values[role][1].size // 5
    words = f"in sample 1 of mine with {num} of {5 * num} values infinite"
    data = {"static": a[..., None], "forcing": f[..., None], "name": "mine"}
    assert words in one_line(nfsgeo.from_arrays, u[..., None], pos, t, **data)
    dims = ("sample", "point", "time")
    arrays = {"u": (dims, u), "a": (dims[:2], a), "forcing_f": (dims, f)}
    axes = {axis: ("point", pos[:, k]) for k, axis in enumerate("xy")}
    dataset = xarray.Dataset(arrays, axes | {"time": t, "sample": [0, 1]})
    assert words in one_line(nfsgeo.from_xarray, dataset, name="mine")
    dataset.to_netcdf(tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc") as lazy:
        fields = nfsgeo.from_xarray(lazy)
        with pytest.raises(UserError, match="infinite"):
            fields.read_all(1, slice(None)), fields.read_inputs(1)
    hidden = dataset.copy(deep=True)
    for name in arrays:
        hidden[name].attrs["_FillValue"] = bad
    if role == "field":
        assert np.isnan(nfsgeo.from_xarray(hidden).read(1, slice(None))).sum() == num
        graphs = [Data(pos=torch.as_tensor(pos), x=torch.as_tensor(v), t=t) for v in u]
        assert words in one_line(nfsgeo.from_pyg, graphs, name="mine", time_axis=1)
