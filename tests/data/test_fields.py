"""Fields of every layout against plain arrays, and what they refuse."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo
from nfsgeo.data.conventions import STATIC
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

few = settings(max_examples=30)


@few
@given(data=st.data())
def test_values_are_those_of_the_arrays(any_fields, data, sent):
    fields, samples = data.draw(any_fields)
    again = sent(fields)
    total = len(fields.times)
    assert fields.num_samples == len(samples) and fields.component_names == ["u0", "u1"]
    assert fields.forcing_names == ["sun"] and fields.input_names == ["k", "nu"]
    for i, (sample, nu) in enumerate(
        zip(samples, fields.parameters["nu"], strict=True)
    ):
        start = data.draw(st.integers(0, total - 1))
        steps = slice(start, data.draw(st.integers(start + 1, total)), 2)
        chosen = st.lists(st.integers(0, len(sample["pos"]) - 1), min_size=1)
        points = np.array(data.draw(chosen))
        np.testing.assert_array_equal(fields.coordinates(i), sample["pos"])
        assert fields.num_points(i) == len(sample["pos"])
        both = np.concatenate([sample["u"], sample["sun"]], axis=-1)
        np.testing.assert_array_equal(fields.read(i, slice(None)), sample["u"])
        found = again.read_all(i, steps, points)
        np.testing.assert_array_equal(found, both[points, steps])
        assert found.dtype == fields.dtype == both.dtype
        inputs = np.insert(sample["k"][:, 0], 1, nu, axis=-1)
        np.testing.assert_array_equal(fields.read_inputs(i), inputs)
    seen = [~np.isnan(sample["u"]).all(axis=(0, 2)) for sample in samples]
    last = np.flatnonzero(np.any(seen, axis=0))
    assert fields.num_observed() == (last[-1] + 1 if len(last) else 0)
    ids = fields.sample_mesh
    equal = [[np.array_equal(a["pos"], b["pos"]) for a in samples] for b in samples]
    np.testing.assert_array_equal(np.equal.outer(ids, ids), equal)
    assert again.fingerprint() == fields.fingerprint()


@few
@given(data=st.data())
def test_some_samples_are_those_of_the_whole(any_fields, data):
    fields, samples = data.draw(any_fields)
    numbers = st.integers(-len(samples), len(samples) - 1)
    chosen = data.draw(st.lists(numbers, min_size=1, max_size=4))
    some = fields[chosen]
    assert (len(fields), len(some)) == (len(samples), len(chosen))
    for number, sample in enumerate(chosen):
        np.testing.assert_array_equal(some.coordinates(number), samples[sample]["pos"])
        read = some.read(number, slice(None))
        np.testing.assert_array_equal(read, samples[sample]["u"])
    nu = fields.parameters["nu"]
    np.testing.assert_array_equal(some.parameters["nu"], nu[chosen])
    assert [one.parameters["nu"] for one in fields] == [*nu]
    for wrong in (len(samples), slice(0, 0)):
        with pytest.raises(IndexError):
            fields[wrong]


def test_cells_of_some_samples_are_their_own():
    pos = [np.random.default_rng(i).random((4 + i, 2)) for i in range(3)]
    cells = [{"triangle": [[i, 2, 3]] * (i + 1)} for i in range(3)]
    u = [np.zeros((len(points), 1, 1)) for points in pos]
    fields = nfsgeo.from_arrays(u, pos, cells=cells)[[2, 0]]
    for i, sample in enumerate([2, 0]):
        np.testing.assert_array_equal(
            fields.cells(i)["triangle"], cells[sample]["triangle"]
        )


@few
@given(data=st.data())
def test_fields_are_never_changed(any_fields, contents, data):
    fields, _ = data.draw(any_fields)
    before, num, dim = contents(fields), fields.num_samples, fields.domain.dim
    wide = Domain((-9.0,) * dim, (9.0,) * dim, (True,) * dim)
    split = {"train": np.arange(num - 1), "valid": [num - 1], "test": []}
    changed = fields.with_domain(wide).with_split(split).with_known(["u1"])
    changed = changed.with_times(1 + np.arange(len(fields.times)))
    assert changed.domain == wide and changed.times[0] == 1
    assert changed.split["valid"].tolist() == [num - 1]
    assert changed.component_names == ["u0"] and "u1" in changed.forcing_names
    np.testing.assert_array_equal(
        changed.read(0, slice(None)), fields.read(0, slice(None))[..., :1]
    )
    less = changed.select(["u0", "k", "sun", "u1"])
    assert (less.component_names, less.forcing_names) == (["u0"], ["sun", "u1"])
    assert less.input_names == ["k"] and less.domain == wide
    values = fields.read_all(0, slice(None))[..., [0, 2, 1]]
    np.testing.assert_array_equal(less.read_all(0, slice(None)), values)
    assert contents(fields) == before


def test_cells_and_triangles(point_case):
    cells = [{"quad": [[0, 1, 2, 3]]}, {"triangle": [[0, 1, 2]], "line": [[0, 1]]}, {}]
    fields = point_case.make(cells=cells)
    assert fields.cells(1)["line"].tolist() == [[0, 1]]
    assert fields.triangles(0).tolist() == [[0, 1, 2], [0, 2, 3]]
    assert fields.triangles(1).tolist() == [[0, 1, 2]]
    assert fields.triangles(2) is None and fields.cells(2) == {}
    assert fields.with_domain(Domain.unit(2)).triangles(0) is None
    same = point_case.make(cells={"line": [[0, 1]]})
    assert all(same.cells(each)["line"].tolist() == [[0, 1]] for each in range(3))


def test_what_does_not_exist_is_refused(grid_case, one_line):
    fields = grid_case.make()
    for ask in (
        lambda: fields.read(7, slice(0, 1)),
        lambda: fields.read(0, slice(0, 1), np.array([24])),
        lambda: fields.with_times([0, 1, 1, 2, 3]),
        lambda: fields.with_times([0.0, 1.0]),
        lambda: fields.with_known(["rain"]),
        lambda: fields.with_known(["u", "v"]),
    ):
        one_line(ask)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.rename(x="q"),
        lambda d: d.assign_coords(x=d["x"][::-1].values),
        lambda d: d.assign_coords(time=[0, 1, 1, 2, 3]),
        lambda d: d.assign_coords(y=[0, 1, np.inf, 3]),
        lambda d: d.drop_vars(["u", "v"]),
        lambda d: d.assign(u=d["u"].astype(str)),
        lambda d: d.assign(u=d["u"].assign_attrs(role="guess")),
        lambda d: d.assign(u=d["u"].expand_dims("level")),
    ],
)
def test_other_layouts_are_refused(grid_case, change, one_line):
    fields = grid_case.make()
    one_line(lambda: replace(fields, dataset=change(fields.dataset)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"u": np.zeros((7, 5, 6, 4, 3))}, "2 names .u, v. for field"),
        ({"u": np.zeros((7, 5, 6, 4))}, "number of data dimensions"),
        ({"u": np.zeros((7, 5, 4, 6, 2))}, "conflicting sizes for dimension .x."),
        ({"parameters": {"u": np.zeros(7)}}, "'u': expected names that differ"),
        ({"parameters": {"time": np.zeros(7)}}, "named 'time'"),
        ({"parameters": {"a/b": np.zeros(7)}}, "without '/'"),
        ({"times": [[0.0] * 5]}, "times of .* with shape"),
        ({"axes": [np.ma.masked_equal(np.arange(6.0), 2), np.arange(4)]}, "values"),
        ({"times": [20260101.0, 20260102, 20260103, 20260104, 20260105]}, "date"),
        ({"domain": Domain.unit(2)}, "domain"),
    ],
)
def test_arrays_that_contradict_each_other(grid_case, changes, message):
    with pytest.raises((UserError, ValueError), match=message):
        grid_case.make(**changes)


def test_a_domain_that_nobody_tells_is_drawn_around_the_points():
    u = np.zeros((1, 3))
    line = build(Path("a"), [Array(u, "tx", ["u"])], axes=[[1.0, 2.0, 5.0]])
    assert not line.domain_is_known
    assert line.domain == Domain((1.0,), (5.0,), (False,))
    points = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 2.0]])
    cloud = build(Path("a"), [Array(u, "tp", ["u"])], points=points)
    assert cloud.domain == Domain.bounding(points)
    assert cloud.domain.lower[0] < 0 and cloud.domain.upper[1] > 5


def test_points_without_coordinates_do_not_exist():
    x = xarray.Variable(("sample", "point"), [[0.0, 1.0, np.nan], [0.0, 0.5, 1.0]])
    u = np.ones((2, 3))
    shared = Array(np.ones(1), "t", ["sun"], STATIC)
    fields = build(Path("a"), [Array(u, "np", ["u"]), shared], points={"x": x})
    assert fields.num_points(0) == 2 and fields.num_points(1) == 3
    assert fields.read_static(0).tolist() == [[1.0], [1.0]]
    here = xarray.Variable("obs", [0.0, np.nan, 1.0, 2.0])
    rows = xarray.Variable("sample", [3, 1], {"role": "rows"})
    both, u = {"x": here, "row_size": rows}, Array(np.arange(4.0), "o", ["u"])
    u.values[1] = np.nan
    ragged = build(Path("a"), [u], points=both)
    assert ragged.num_points(0) == 2 and ragged.read(0, slice(None)).shape == (2, 1, 1)


def test_the_text_of_fields_has_the_range_of_their_points():
    sizes, random = (40, 10, 90, 20, 60), np.random.default_rng(0)
    u = [random.random((n, 1, 1)) for n in sizes]
    fields = nfsgeo.from_arrays(u, [random.random((n, 2)) for n in sizes])
    assert "points=10 to 90" in repr(fields)
