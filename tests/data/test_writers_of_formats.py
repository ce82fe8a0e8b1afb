"""Every format out, read back: values, times and coordinates are the same."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data import GridWriter, PointWriter
from nfsgeo.data.writers import WRITERS, writer_of
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

FAST = settings(max_examples=12, deadline=None)
ENDINGS = [ending for writer in WRITERS for ending in writer.endings]
SERIES = [ending for ending in ENDINGS if ending != ".vtu"]


def cloud(folder: Path, dim: int, sizes: list[int], steps: int, seed: int) -> Path:
    """A native file of samples on meshes of these sizes, equal ones on one mesh."""
    random = np.random.default_rng(seed)
    path, meshes = folder / "cloud.h5", {n: random.random((n, dim)) for n in sizes}
    with PointWriter(
        path,
        equation="waves",
        domain=Domain((0.0,) * dim, (2.0,) * dim, (True,) + (False,) * (dim - 1)),
        times=np.cumsum(random.random(steps) + 0.1),
        component_names=["p", "q"],
        static_names=["k"],
        static_role="coefficient",
        provenance={"units": {"p": "hPa"}},
        forcing_names=["sun"],
    ) as writer:
        numbers = {n: writer.add_mesh(mesh) for n, mesh in meshes.items()}
        for n in sizes:
            u, a = random.normal(size=(n, steps, 2)), random.normal(size=(n, 1))
            writer.write(u, numbers[n], a, forcing=random.normal(size=(n, steps, 1)))
    return path


def grid(folder: Path, shape: list[int], steps: int, samples: int, seed: int) -> Path:
    random, dim = np.random.default_rng(seed), len(shape)
    path = folder / "grid.h5"
    with GridWriter(
        path,
        equation="waves",
        domain=Domain((0.0,) * dim, (9.0,) * dim, (False,) * dim),
        axes=[np.cumsum(random.random(n) / n + 0.1) for n in shape],
        times=np.cumsum(random.random(steps) + 0.1),
        num_samples=samples,
        component_names=["p", "q"],
        static_names=["k"],
        static_role="coefficient",
        parameter_names=["nu"],
        scalar_names=["nu"],
        forcing_names=["sun"],
    ) as writer:
        u = random.normal(size=(samples, steps, *shape, 2))
        a = random.normal(size=(samples, *shape, 1))
        f = random.normal(size=(samples, steps, *shape, 1))
        writer.write(0, u, a, {"nu": np.arange(samples) / 3}, forcing=f)
    return path


def rows(file: nfsgeo.data.FieldFile, sample: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the order of their coordinates, with all that is at each of them."""
    points = file.coordinates(sample)
    order = np.lexsort(points.T[::-1])
    u, a = file.read_all(sample, slice(None)), file.read_static(sample)
    return points[order], np.c_[u.reshape(len(u), -1), a][order]


def check_same(path: Path, back: Path) -> None:
    with nfsgeo.data.open(path) as first, nfsgeo.data.open(back) as last:
        assert last.num_samples == first.num_samples
        assert last.component_names == first.component_names
        assert last.static_names == first.static_names == ["k"]
        assert last.static_role == "coefficient"
        assert last.forcing_names == first.forcing_names == ["sun"]
        if back.suffix in (".h5", ".hdf5", ".nc", ".nc4", ".npz") and first.axes:
            assert last.scalar_names == ["nu"]
        np.testing.assert_array_equal(last.times, first.times)
        for sample in range(first.num_samples):
            for one, other in zip(rows(first, sample), rows(last, sample), strict=True):
                np.testing.assert_array_equal(one, other)


@FAST
@given(
    ending=st.sampled_from(SERIES),
    dim=st.integers(1, 3),
    sizes=st.lists(st.integers(2, 7), min_size=1, max_size=4),
    steps=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_point_clouds_out_and_in_again(
    ending: str, dim: int, sizes: list[int], steps: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = cloud(Path(name), dim, sizes, steps, seed)
        back = nfsgeo.data.convert(path, Path(name) / f"out{ending}")
        check_same(path, back)
        assert not list(Path(name).glob("*partial*"))


@FAST
@given(
    ending=st.sampled_from(SERIES),
    shape=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    steps=st.integers(1, 3),
    samples=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_grids_out_and_in_again(
    ending: str, shape: list[int], steps: int, samples: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = grid(Path(name), shape, steps, samples, seed)
        check_same(path, nfsgeo.data.convert(path, Path(name) / f"out{ending}"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_time_step_of_one_sample(ending: str, tmp_path: Path) -> None:
    path = cloud(tmp_path, 2, [6], 1, 0)
    out = nfsgeo.data.convert(path, tmp_path / f"out{ending}")
    with nfsgeo.data.open(path) as first, nfsgeo.data.open(out) as last:
        for one, other in zip(rows(first, 0), rows(last, 0), strict=True):
            np.testing.assert_array_equal(one, other)


def test_netcdf_is_what_xarray_opens(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = cloud(tmp_path, 2, [5, 7], 3, 1)
    out = nfsgeo.data.convert(path, tmp_path / "out.nc")
    with xarray.open_dataset(out) as dataset, nfsgeo.data.open(path) as file:
        assert dict(dataset.sizes) == {"sample": 2, "time": 3, "point": 7}
        assert set(dataset.p.coords) == {"time", "x", "y"}
        assert dataset.sun.dims == dataset.p.dims
        assert dataset.p.attrs["units"] == "hPa"
        np.testing.assert_array_equal(
            dataset.q[0, :, :5].T, file.read(0, slice(None))[..., 1]
        )
        assert dataset.q[0, :, 5:].isnull().all()
    with nfsgeo.data.open(out) as back, nfsgeo.data.open(path) as file:
        assert (back.domain, back.equation) == (file.domain, file.equation)
        assert back.units == {"p": "hPa"}
        for part, samples in file.split.items():
            np.testing.assert_array_equal(back.split[part], samples)


def test_paraviews_files_are_what_meshio_reads(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    path = grid(tmp_path, [3, 4], 2, 2, 0)
    out = nfsgeo.data.convert(path, tmp_path / "out.pvd")
    listed = list(ElementTree.parse(out).getroot().iter("DataSet"))
    with nfsgeo.data.open(path) as file:
        times = [float(each.attrib["timestep"]) for each in listed]
        assert times == [*file.times, *file.times]
        mesh = meshio.read(tmp_path / listed[3].attrib["file"])
        np.testing.assert_array_equal(mesh.points[:, :2], file.coordinates(1))
        u = file.read(1, slice(None))
        np.testing.assert_array_equal(mesh.point_data["p"], u[:, 1, 0])
        np.testing.assert_array_equal(mesh.point_data["q"], u[:, 1, 1])
    (cells,) = mesh.cells
    assert cells.type == "quad" and len(cells.data) == 6
    corners = mesh.points[cells.data][..., :2]
    edges = np.roll(corners, -1, axis=1) - corners
    x, y = edges[..., 0], edges[..., 1]
    area = x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)
    assert (area > 0).all()  # each quadrilateral runs round, none crosses itself
    whole = np.ptp(mesh.points, axis=0)
    assert np.isclose(area[:, 0].sum(), whole[0] * whole[1])


def test_dates_stay_dates(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    dates = ["2026-01-01T00:00:00", "2026-01-01T00:00:00.250000", "2026-03-01T12:00:00"]
    lines = [f"{x},{date},{x + n}" for x in (0.0, 2.0) for n, date in enumerate(dates)]
    source.write_text("\n".join(["x,time,u", *lines]))
    for ending in SERIES:
        if ending in (".npz", ".pvd", ".hdf5", ".nc4"):
            continue
        out = nfsgeo.data.convert(source, tmp_path / f"out{ending}")
        table = nfsgeo.data.convert(out, tmp_path / f"again{ending}.csv")
        with table.open() as stream:
            found = [row["time"] for row in csv.DictReader(stream)][:3]
        assert np.array_equal(np.array(found, "M8[us]"), np.array(dates, "M8[us]"))


def test_times_given_as_dates_stay_dates(tmp_path: Path) -> None:
    """In archives of numpy, and in files of nfsgeo's own writers."""
    axes, dates = [np.arange(3.0), np.arange(2.0)], np.array(["2026-01-01"], "M8[D]")
    points, u = np.random.rand(6, 2), np.ones((1, 1, 3, 2, 1))
    np.savez(tmp_path / "a.npz", u=u, x=axes[0], y=axes[1], t=dates)
    np.savez(tmp_path / "b.npz", u=u.reshape(1, 6), coords=points, t=dates)
    about: dict[str, Any] = {
        "equation": "",
        "domain": Domain((0.0, 0.0), (2.0, 2.0), (False, False)),
        "times": dates,
        "component_names": ["u"],
        "provenance": {"units": {"u": "K"}},
    }
    with GridWriter(tmp_path / "c.h5", **about, axes=axes, num_samples=1) as grid:
        grid.write(0, u)
    with PointWriter(tmp_path / "d.h5", **about) as cloud:
        cloud.write(np.ones((6, 1, 1)), cloud.add_mesh(points))
    nfsgeo.data.convert(tmp_path / "c.h5", tmp_path / "e.npz")
    nfsgeo.data.convert(tmp_path / "d.h5", tmp_path / "f.npz")  # which holds no units
    for name in ("a.npz", "b.npz", "c.h5", "d.h5", "e.npz", "f.npz"):
        with nfsgeo.data.open(tmp_path / name) as file:
            assert file.time_unit == "seconds since 1970-01-01", name
            assert file.times.tolist() == [1767225600.0]
            assert file.units == ({"u": "K"} if "c" < name < "f" else {})


def test_names_that_would_be_taken_for_others(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    with PointWriter(
        tmp_path / "a.h5",
        equation="",
        domain=Domain.unit(1),
        times=[0.0],
        component_names=["time"],
    ) as writer:
        writer.write(np.zeros((3, 1, 1)), writer.add_mesh([[0.0], [0.2], [0.4]]))
    for ending in (".csv", ".nc", ".parquet"):
        message = one_line(
            nfsgeo.data.convert, tmp_path / "a.h5", tmp_path / f"b{ending}"
        )
        assert "a field named 'time'" in message
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


TRICKY = ["a", "a_", "a_k", "a_a_k", "forcing_", "forcing_sun", "T", "lat", "sample"]
TRICKY += ["y", "z", "x", "point", "a/b", "p,q", "a;b;c;d;e", " p", "", "#", "1", "p_0"]
TRICKY += [
    "vtkGhostType",
    "vtkValidPointMask",
    "<p>",
    "'p\"",
    "&amp;",
    "p\nq",
    "p [m/s]",
]
NAMES = st.sampled_from(TRICKY) | st.text("aà_ px0,;#\"'<&\t\n[](", max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    ending=st.sampled_from(ENDINGS),
    names=st.lists(NAMES, min_size=1, max_size=2, unique=True),
    static=st.lists(NAMES, max_size=2, unique=True),
    forcings=st.lists(NAMES, max_size=1),
    dim=st.integers(1, 3),
    single=st.booleans(),
)
def test_names_come_back_or_are_refused(
    ending: str,
    names: list[str],
    static: list[str],
    forcings: list[str],
    dim: int,
    single: bool,
) -> None:
    """Whatever they are: no file is written that is refused or misread later."""
    assume(not set(names) & set(forcings))
    steps = 1 if single or ending == ".vtu" else 2
    pos = np.random.default_rng(0).random((3, dim))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cloud.h5"
        with PointWriter(
            path,
            equation="",
            domain=Domain.unit(dim, periodic=False),
            times=np.arange(float(steps)),
            component_names=names,
            static_names=static,
            static_role="coefficient" if static else None,
            forcing_names=forcings,
        ) as writer:
            u, a, f = (np.ones((3, steps, len(n))) for n in (names, static, forcings))
            mesh = writer.add_mesh(pos)
            a = a[:, 0] if static else None
            writer.write(u, mesh, a, forcing=f if forcings else None)
        try:
            back = nfsgeo.data.convert(path, Path(name) / f"out{ending}")
        except UserError as error:
            assert ending not in (".h5", ".hdf5") and "\n" not in str(error)
            assert [each.name for each in Path(name).iterdir()] == ["cloud.h5"]
            return
        with nfsgeo.data.open(back) as file:
            assert file.component_names == names
            assert list(file.static_names) == static
            assert list(file.forcing_names) == forcings


@pytest.mark.parametrize("ending", [e for e in SERIES if e not in (".h5", ".hdf5")])
def test_what_is_wrong_with_a_name(
    ending: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    def message(name: str) -> str:
        path, out = tmp_path / "a.h5", tmp_path / f"b{ending}"
        path.unlink(missing_ok=True)
        with PointWriter(
            path,
            equation="",
            domain=Domain.unit(1),
            times=[0.0],
            component_names=[name],
        ) as writer:
            writer.write(np.zeros((3, 1, 1)), writer.add_mesh([[0.0], [0.2], [0.4]]))
        return one_line(nfsgeo.data.convert, path, out)

    assert "names without forcing_" in message("forcing_sun")
    if ending != ".npz":
        assert "names without '/'" in message("a/b")
    if ending in (".csv", ".parquet", ".pvd"):
        given = f"a field named 'a_flux' in {tmp_path / f'b{ending}'}: "
        assert given + "expected names other than a and a_" in message("a_flux")
    if ending in (".csv", ".parquet"):
        assert "a field named 'lat'" in message("lat")


@pytest.mark.parametrize("ending", [".nc", ".nc4"])
@pytest.mark.parametrize("kind", [cloud, grid])
def test_units_of_axes_come_back(
    ending: str, kind: Callable[..., Path], tmp_path: Path
) -> None:
    units = {"x": "km", "y": "degrees_north", "time": "h", "p": "degrees_east"}
    if kind is cloud:
        path = cloud(tmp_path, 2, [4, 5], 2, 0)
    else:
        path = grid(tmp_path, [3, 4], 2, 2, 0)
    with nfsgeo.data.open(path) as file:
        file.provenance["units"] = units
        out = nfsgeo.data.export(file, tmp_path / f"out{ending}")
    with nfsgeo.data.open(out) as back:
        assert back.provenance["units"] == units
        assert back.axis_units == ["km", "degrees_north"]


def test_what_does_not_fit_the_format(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = cloud(tmp_path, 2, [4], 3, 0)
    message = one_line(nfsgeo.data.convert, path, tmp_path / "out.vtu")
    assert "3 time steps" in message and "out.pvd" in message
    assert ".nc" in one_line(nfsgeo.data.convert, path, tmp_path / "out.grib")
    (tmp_path / "out").mkdir()
    assert "a new folder" in one_line(nfsgeo.data.convert, path, tmp_path / "out.pvd")


@pytest.mark.parametrize("ending", SERIES)
def test_what_is_there_stays(
    ending: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path, taken = cloud(tmp_path, 2, [4], 3, 0), tmp_path / f"taken{ending}"
    taken.write_text("mine")
    one_line(nfsgeo.data.convert, path, taken)
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("ending", [e for e in SERIES if e not in (".h5", ".hdf5")])
def test_nothing_is_left_of_a_writer_that_is_stopped(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cloud(tmp_path, 2, [4, 5], 3, 0)
    with nfsgeo.data.open(path) as file:
        whole = file.read_all

        def breaking(sample: int, steps: slice) -> Any:
            if sample == 1:
                raise KeyboardInterrupt
            return whole(sample, steps)

        monkeypatch.setattr(file, "read_all", breaking)
        with pytest.raises(KeyboardInterrupt):
            nfsgeo.data.export(file, tmp_path / f"out{ending}")
    assert [each.name for each in tmp_path.iterdir()] == ["cloud.h5"]


def test_missing_extras_are_named_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for writer in WRITERS:
        for package in writer.needs:
            monkeypatch.setitem(__import__("sys").modules, package, None)
            with pytest.raises(UserError, match=r"nfsgeo\[formats\]"):
                writer_of(tmp_path / f"out{writer.endings[0]}")
