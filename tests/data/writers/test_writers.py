"""Tables and meshes that are written are read back as what they were."""

import errno
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo
import nfsgeo.data
from nfsgeo.data.conventions import FIELD, KNOWN, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.errors import UserError

meshio = pytest.importorskip("meshio")

FAST = settings(max_examples=12)
PLACES = st.lists(st.integers(2, 4), min_size=1, max_size=3)


def made(
    sizes: list[int],
    steps: int,
    samples: int = 0,
    names: Any = ("p",),
    known: Any = ("sun",),
    static: Any = ("k",),
    dim: int = 2,
) -> Fields:
    """Fields on a grid of ``samples``, or else one cloud of each size."""
    random, arrays = np.random.default_rng(0), []
    for role, called in ((FIELD, names), (KNOWN, known), (STATIC, static)):
        ahead = [steps] * (role != STATIC)
        letters = "t" * len(ahead) + ("xyz"[: len(sizes)] if samples else "p")
        for name in called:
            values: Any = [random.normal(size=(*ahead, n)) for n in sizes]
            if samples:
                values = random.normal(size=(samples, *ahead, *sizes))
            arrays.append(Array(values, "n" * bool(samples) + letters, [name], role))
    mesh: dict[str, Any] = {"axes": [np.cumsum(random.random(n) + 0.1) for n in sizes]}
    if not samples:
        clouds = [np.random.default_rng(n).random((n, dim)) for n in sizes]
        mesh = {"points": clouds}
    times = np.cumsum(random.random(steps) + 0.1)
    return build(Path("made"), arrays, times=times, **mesh)


def rows(fields: Fields, sample: int) -> list[np.ndarray]:
    """Points in the order of their coordinates, and all that is at each of them."""
    points = fields.coordinates(sample)
    order = np.lexsort(points.T[::-1])
    u, a = fields.read_all(sample, slice(None)), fields.read_static(sample)
    return [points[order], u[order], a[order]]


@FAST
@given(places=PLACES, steps=st.integers(1, 3), samples=st.integers(0, 3))
def test_meshes_out_and_in_again(places, steps, samples):
    fields = made(places, steps, samples)
    with tempfile.TemporaryDirectory() as folder:
        back = nfsgeo.data.open(fields.write(Path(folder) / "out.pvd"))
        assert back.num_samples == fields.num_samples
        assert back.component_names == ["p"] and back.static_names == ["k"]
        assert back.forcing_names == ["sun"] and back.times.tolist() == [*fields.times]
        for sample in range(fields.num_samples):
            np.testing.assert_equal(rows(fields, sample), rows(back, sample))
        assert not list(Path(folder).glob("*partial*"))


def test_one_time_step_of_one_sample(tmp_path, one_line):
    fields = made([3, 4], 1, 1)
    back = nfsgeo.data.open(fields.write(tmp_path / "out.vtu"))
    np.testing.assert_equal(rows(fields, 0), rows(back, 0))
    message = one_line(made([3, 4], 3, 1).write, tmp_path / "more.vtu")
    assert "3 time steps" in message and "more.pvd" in message
    (tmp_path / "taken").mkdir()
    assert "a new folder" in one_line(fields.write, tmp_path / "taken.pvd")


@pytest.mark.parametrize("shape", [[5], [3, 4], [2, 3, 4]])
def test_cells_of_a_grid_fill_it(shape, tmp_path):
    fields = made(shape, 2, 2)
    out = fields.write(tmp_path / "out.pvd")
    listed = list(ElementTree.parse(out).getroot().iter("DataSet"))
    times = [float(each.attrib["timestep"]) for each in listed]
    assert times == [*fields.times, *fields.times]
    mesh = meshio.read(tmp_path / listed[3].attrib["file"])
    u = fields.read(1, slice(None))
    np.testing.assert_array_equal(mesh.point_data["p"], u[:, 1, 0])
    (cells,) = mesh.cells
    corners = mesh.points[cells.data][..., : len(shape)]
    # Each cell runs round, and none crosses itself.
    volume = np.linalg.det(corners[:, [1, 3, 4][: len(shape)]] - corners[:, :1])
    whole = np.prod(np.ptp(mesh.points[:, : len(shape)], axis=0))
    assert (volume > 0).all() and np.isclose(volume.sum(), whole)


@pytest.mark.parametrize("name", ["out.nc", "out.pvd", "out.csv"])
def test_nothing_is_left_of_a_writer_that_is_stopped(name, tmp_path):
    def stop(what: str, done: int, total: int) -> None:
        assert total == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made([4, 5], 3).write(tmp_path / name, progress=stop)
    assert not list(tmp_path.iterdir())


@settings(max_examples=25)
@given(
    ending=st.sampled_from([".csv", ".parquet"]),
    sizes=st.lists(st.integers(2, 7), min_size=1, max_size=4),
    steps=st.integers(1, 3),
    dim=st.integers(1, 3),
)
def test_tables_out_and_in_again(tmp_path, ending, sizes, steps, dim):
    first, out = made(sizes, steps, names=("p", "q"), dim=dim), tmp_path / f"a{ending}"
    out.unlink(missing_ok=True)
    with nfsgeo.data.open(first.write(out)) as last:
        assert last.component_names == ["p", "q"] and last.static_names == ["k"]
        assert last.forcing_names == ["sun"]
        np.testing.assert_array_equal(last.times, first.times)
        for sample in range(len(sizes)):
            np.testing.assert_equal(rows(first, sample), rows(last, sample))
    assert not list(tmp_path.glob("*partial*"))


TRICKY = "a a_ a_k a_a_k forcing_ forcing_sun T lat a/b p,q a;b;c;d;e # 1 p_0 k nan"
NAMES = st.sampled_from([*TRICKY.split(), " p", "", "'p\"", "p\nq", "p [m/s]"])
NAMES |= st.text("aà_ p0,;#\"'<&\t\n[](", min_size=1, max_size=4)


@settings(max_examples=100)
@given(
    ending=st.sampled_from([".csv", ".parquet"]),
    names=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    kinds=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    steps=st.integers(1, 2),
)
def test_names_come_back_or_are_refused(tmp_path, ending, names, kinds, steps):
    """Whatever they are: no file is written that is refused or misread later."""
    out = tmp_path / f"a{ending}"
    out.unlink(missing_ok=True)
    fields = names[: max(1, len(names) - sum(kinds))]
    rest = names[len(fields) :]
    k, sun = rest[: kinds[0]], rest[kinds[0] :]
    try:
        first = made([3], steps, names=fields, known=sun, static=k)
    except UserError:
        return  # no names of fields anywhere
    try:
        first.write(out)
    except UserError:
        assert not out.exists()
        return
    with nfsgeo.data.open(out) as last:
        assert last.component_names == first.component_names
        assert (last.static_names, last.forcing_names) == (k, first.forcing_names)


@pytest.mark.parametrize("ending", [".csv", ".pvd"])
def test_numbers_of_samples_become_static_inputs(tmp_path, ending):
    u, points = np.random.default_rng(0).random((3, 8, 2)), np.random.rand(8, 2)
    k = {"k": [1.5, 2.5, 3.5]}
    fields = nfsgeo.from_arrays(u, points, [0.0, 1.0], scalars=k)
    back = nfsgeo.data.open(fields.write(tmp_path / f"a{ending}"))
    assert back.static_names == ["k"]
    for sample in range(3):
        np.testing.assert_allclose(back.read_static(sample), 1.5 + sample)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_longitudes_keep_their_name(tmp_path, ending):
    rows = ["time,station,lon,lat,temperature"]
    for day in range(4):
        rows += [f"{day},{s},{5.5 + s},{50.5 - s},{day + s}" for s in range(3)]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    fields = nfsgeo.open(nfsgeo.open(tmp_path / "in.csv").write(tmp_path / "a.nc"))
    out = fields.write(tmp_path / f"out.{ending}")
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert list(table) == ["time", "station", "lon", "lat", "temperature"]
    again = nfsgeo.open(out)
    np.testing.assert_allclose(again.coordinates(0), fields.coordinates(0))


@pytest.mark.parametrize("ending", [".pvd", ".csv", ".npz", ".nc"])
@pytest.mark.parametrize("cause", ["infinite", "no room for the list"])
def test_nothing_stays_of_meshes_that_are_refused(
    ending, cause, tmp_path, one_line, monkeypatch
):
    """Meshes of different sizes, the last of them infinite, or a disk that is full."""
    fields = made([4, 6, 5], 3)
    if cause == "infinite":
        values = np.array(fields.dataset["p"].values)
        values.flat[-1] = np.inf
        spoilt = fields.dataset["p"].copy(data=values)
        fields = replace(fields, dataset=fields.dataset.assign(p=spoilt))
    else:
        monkeypatch.setattr("nfsgeo.files._sync", full)
    one_line(fields.write, tmp_path / f"out{ending}")
    assert not [*tmp_path.iterdir()]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_units_are_read_back_from_tables(tmp_path, ending):
    """Also those that a header cannot tell: the name stays, without a unit."""
    random = np.random.default_rng(0)
    u, h, q = (random.random((1, 8, 3, n)) for n in (4, 1, 1))
    names = ["T", "u", "low", "odd"]
    units = {"T": "K", "u": "m s-1", "low": "min", "odd": "of, two", "h": "m"}
    units |= {"Q": "W/m2", "time": "h", "x": "mm", "y": "mm"}
    fields = nfsgeo.from_arrays(
        *(u, random.random((8, 2)), [0.0, 2.5, 5.0]),
        component_names=names,
        static=h[:, :, 0],
        static_names=["h"],
        forcing=q,
        forcing_names=["Q"],
        units=units,
    )
    back = nfsgeo.open(fields.write(tmp_path / f"a.{ending}"))
    assert back.component_names == names
    assert (back.static_names, back.forcing_names) == (["h"], ["Q"])
    assert back.units == {k: unit for k, unit in units.items() if k != "odd"}
    values = back.read(0, slice(None)).ravel()  # of points in another order
    np.testing.assert_allclose(np.sort(values), np.sort(u.ravel()), rtol=1e-6)


def test_no_unit_changes_the_name_of_a_component(tmp_path):
    """As round brackets and units of no known form would."""
    u = np.random.default_rng(0).random((1, 8, 3, 2))
    units = {"p (mean)": "Pa", "q": "my own]"}
    fields = nfsgeo.from_arrays(
        *(u, np.random.default_rng(1).random((8, 2)), [0.0, 1.0, 2.0]),
        component_names=[*units],
        units=units,
    )
    back = nfsgeo.open(fields.write(tmp_path / "a.csv"))
    assert back.component_names == [*units]
    assert all(back.units.get(name, units[name]) == units[name] for name in units)
