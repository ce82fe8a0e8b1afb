"""Point clouds of every format: values in their places, or one line."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.readers import READERS
from nfsgeo.errors import UserError

RNG = np.random.default_rng(1)
T = 3


@dataclass
class Cloud:
    """What a reader must find, a list with an entry for each sample."""

    pos: list[np.ndarray]
    u: list[np.ndarray]
    times: np.ndarray
    a: list[np.ndarray] | None = None
    cells: dict[str, np.ndarray] = field(default_factory=dict)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def npz_shared(path: Path) -> Cloud:
    pos, u, a = RNG.random((7, 2)), normal(4, 7, T, 2), normal(4, 7, 1)
    t = np.array([0.0, 0.5, 2.0])
    np.savez(path, coords=pos, u=u, a=a, t=t, names=["p", "q"])
    return Cloud([pos] * 4, list(u), t, list(a))


def npz_ragged(path: Path) -> Cloud:
    sizes = [5, 8, 6]
    pos, u = RNG.random((19, 3)), normal(19, T)
    ends = np.cumsum([0, *sizes])
    np.savez(path, coords=pos, u=u, offsets=ends, t=np.arange(3.0))
    cuts = np.cumsum(sizes)[:-1]
    fields = [part[..., None] for part in np.split(u, cuts)]
    return Cloud(np.split(pos, cuts), fields, np.arange(3.0))


def table_of(shuffle: bool = True) -> tuple[dict[str, np.ndarray], Cloud]:
    """Two samples of 5 and 4 points in 2-D, two components and a coefficient."""
    pos = [np.sort(RNG.random((n, 2)), axis=0) for n in (5, 4)]
    u, a = [normal(len(p), T, 2) for p in pos], [normal(len(p), 1) for p in pos]
    t, rows = np.array([0.0, 0.1, 0.3]), []
    for s in range(2):
        for i, (x, y) in enumerate(pos[s]):
            for k in range(T):
                rows.append([s, x, y, t[k], *u[s][i, k], a[s][i, 0]])
    names = ["sample", "x", "y", "t", "p", "q", "a_conductivity"]
    order = RNG.permutation(len(rows)) if shuffle else slice(None)
    columns = dict(zip(names, np.array(rows)[order].T, strict=True))
    return columns, Cloud(pos, u, t, a)


def csv(path: Path) -> Cloud:
    columns, cloud = table_of()
    lines = [",".join(columns)]
    lines += [",".join(map(repr, row)) for row in np.stack([*columns.values()], 1)]
    path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", ""))
    return cloud


def parquet(path: Path) -> Cloud:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns, cloud = table_of()
    parquet.write_table(pyarrow.table(columns), path)
    return cloud


def mesh(path: Path) -> Cloud:
    """A plane mesh of 5 points with a triangle and a quadrilateral."""
    meshio = pytest.importorskip("meshio")
    pos = np.c_[RNG.random((5, 2)), np.zeros(5)]
    cells = {"triangle": np.array([[0, 1, 2]]), "quad": np.array([[1, 2, 3, 4]])}
    p, v, a = normal(5), normal(5, 3), normal(5)
    data = {"p": p, "v": v, "a": a}
    if path.suffix == ".xdmf":
        # Its numbers go to an HDF5 file, which meshio puts into the current folder.
        with chdir(path.parent), meshio.xdmf.TimeSeriesWriter(path) as series:
            series.write_points_cells(pos, list(cells.items()))
            for k in range(T):
                series.write_data(0.5 * k, point_data={**data, "p": p + k})
        u = np.stack([np.c_[p + k, v] for k in range(T)], axis=1)
        times = 0.5 * np.arange(T)
    else:
        meshio.write(path, meshio.Mesh(pos, list(cells.items()), point_data=data))
        u, times = np.c_[p, v][:, None], np.zeros(1)
    return Cloud([pos[:, :2]], [u], times, [a[:, None]], cells)


def single_xdmf(path: Path) -> Cloud:
    meshio = pytest.importorskip("meshio")
    pos, p = RNG.random((4, 3)), normal(4)
    cells = {"tetra": np.array([[0, 1, 2, 3]])}
    whole = meshio.Mesh(pos, list(cells.items()), point_data={"p": p})
    meshio.xdmf.write(path, whole, data_format="XML")
    return Cloud([pos], [p[:, None, None]], np.zeros(1), None, cells)


def listed(path: Path) -> Cloud:
    """A list of ``.vtu`` files with their times, last one first."""
    meshio = pytest.importorskip("meshio")
    pos, p = RNG.random((5, 3)), normal(5, T)
    cells, times = {"tetra": np.array([[0, 1, 2, 3]])}, np.array([0.0, 0.5, 2.0])
    entries = []
    for k in reversed(range(T)):
        name = f"{path.name}_{k}.vtu"
        step = meshio.Mesh(pos, list(cells.items()), point_data={"p": p[:, k]})
        meshio.write(path.with_name(name), step)
        entries.append((times[k], name))
    if path.suffix == ".pvd":
        sets = [f'<DataSet timestep="{t}" part="0" file="{n}"/>' for t, n in entries]
        path.write_text(
            '<?xml version="1.0"?><VTKFile type="Collection" version="0.1">'
            f"<Collection>{''.join(sets)}</Collection></VTKFile>"
        )
    else:
        files = [{"name": name, "time": time} for time, name in entries]
        path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    return Cloud([pos], [p[..., None]], times, None, cells)


def authors_points(path: Path) -> Cloud:
    pos, u, a = RNG.random((6, 2)), normal(4, 6, 1), normal(4, 6)
    path.write_bytes(pickle.dumps({"u": u, "a": a, "x": pos}, protocol=3))
    return Cloud([pos] * 4, list(u[..., None]), np.zeros(1), list(a[..., None]))


CLOUDS: dict[str, Callable[[Path], Cloud]] = {
    "shared.npz": npz_shared,
    "ragged.npz": npz_ragged,
    "table.csv": csv,
    "table.parquet": parquet,
    "mesh.vtu": mesh,
    "mesh.vtk": mesh,
    "series.xdmf": mesh,
    "single.xdmf": single_xdmf,
    "points.pkl": authors_points,
    "listed.pvd": listed,
    "listed.vtu.series": listed,
}


@pytest.fixture(params=list(CLOUDS))
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Cloud]:
    return tmp_path / request.param, CLOUDS[request.param](tmp_path / request.param)


def check(file: nfsgeo.data.FieldFile, cloud: Cloud) -> None:
    assert file.shape is None and file.num_samples == len(cloud.u)
    np.testing.assert_allclose(file.times, cloud.times)
    for sample, (pos, u) in enumerate(zip(cloud.pos, cloud.u, strict=True)):
        np.testing.assert_allclose(file.coordinates(sample), pos, rtol=1e-7)
        assert file.num_points(sample) == len(pos)
        np.testing.assert_array_equal(file.read(sample, slice(None)), u)
        some = file.read(sample, slice(0, 1), np.array([3, 1]))
        np.testing.assert_array_equal(some, u[[3, 1], :1])
        if cloud.a is not None:
            np.testing.assert_array_equal(file.read_static(sample), cloud.a[sample])
        else:
            assert file.read_static(sample).shape == (len(pos), 0)
        found = file.cells(sample)
        assert sorted(found) == sorted(cloud.cells)
        for kind, nodes in cloud.cells.items():
            np.testing.assert_array_equal(found[kind], nodes)


def test_one_reader_and_no_other_knows_the_format(cloud: Any) -> None:
    assert sum(reader.recognise(cloud[0]) for reader in READERS) == 1


def test_values_are_in_their_places(cloud: Any) -> None:
    with copy.copy(nfsgeo.data.open(cloud[0])) as file:
        check(file, cloud[1])
        inside = (file.coordinates() > file.domain.lower).all()
        assert inside and not any(file.domain.periodic)


def test_conversion_keeps_everything(cloud: Any, tmp_path: Path) -> None:
    out = nfsgeo.data.convert(cloud[0], tmp_path / "out.h5")
    with nfsgeo.data.open(out) as file:
        assert isinstance(file, nfsgeo.data.NativeFile)
        check(file, cloud[1])
        with nfsgeo.data.open(cloud[0]) as source:
            assert file.component_names == source.component_names
            assert file.static_role == source.static_role
            same = [source.mesh_id(i) for i in range(source.num_samples)]
            assert [file.mesh_id(i) for i in range(file.num_samples)] == same


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damage_gives_one_line(cloud: Any, tmp_path: Path, data: st.DataObject) -> None:
    path, _ = cloud
    raw = path.read_bytes()
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        broken = raw[:place]
    else:
        noise = data.draw(st.binary(min_size=1, max_size=16))
        broken = raw[:place] + noise + raw[place + len(noise) :]
    other = tmp_path / f"broken_{path.name}"
    other.write_bytes(broken)
    try:
        with nfsgeo.data.open(other) as file:
            file.read(0, slice(None))
            file.read_static(0)
    except UserError as error:
        assert "\n" not in str(error)


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path, pos, u = tmp_path / "a.npz", np.zeros((7, 2)), np.zeros((4, 7, 3, 2))
    ends = np.array([0, 3, 7])
    for arrays in (
        {"coords": pos.T, "u": u},
        {"coords": pos, "u": u.swapaxes(0, 1)},
        {"coords": pos, "u": u.swapaxes(1, 2)},
        {"coords": pos, "u": u, "t": np.arange(4.0)},
        {"coords": pos, "u": u, "t": np.array([0.0, 2.0, 1.0])},
        {"coords": pos, "u": u, "a": np.zeros((7, 4))},
        {"coords": pos * np.nan, "u": u},
        {"coords": pos, "u": u[0], "offsets": ends + 1},
        {"coords": pos, "u": u[0], "offsets": ends[[0, 2, 1]]},
        {"coords": pos, "u": u[0].swapaxes(0, 1), "offsets": ends},
        {"coords": pos, "u": u.astype(object)},
        {"coords": np.zeros((7, 4)), "u": u},
    ):
        one_line(nfsgeo.data.open, saved(path, **arrays))
    few = {"coords": pos, "u": u, "a": np.zeros((4, 7, 3))}
    message = one_line(nfsgeo.data.open, saved(path, **few, names=["p"]))
    assert "1 name (p) for fields of shape (7, 3, 2): expected 2 names" in message
    message = one_line(nfsgeo.data.open, saved(path, **few, static_names=["k", "l"]))
    assert "2 names (k, l) for coefficient of shape (7, 3): expected 3" in message
    x = {"u": np.zeros((2, 1, 7, 2)), "x": np.arange(7.0)}
    about = json.dumps({"component_names": ["p"]})
    message = one_line(nfsgeo.data.open, saved(path, **x, about=about))
    assert "1 name (p) for fields of shape (2, 1, 7, 2): expected 2 names" in message


@pytest.mark.parametrize(
    "change",
    [
        lambda c: {k: v for k, v in c.items() if k not in "pq"},
        lambda c: {("z" if k == "y" else k): v for k, v in c.items()},
        lambda c: c | {"x": c["x"] + np.arange(len(c["x"]))},
        lambda c: c | {"a_conductivity": np.arange(float(len(c["x"])))},
        lambda c: c | {"t": c["t"] + c["sample"]},
        lambda c: c | {"t": c["t"] * np.nan},
        lambda c: c | {"p": np.full(len(c["x"]), "words")},
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_that_do_not_fit_are_refused(
    tmp_path: Path,
    one_line: Callable[..., str],
    change: Callable[[Any], Any],
    suffix: str,
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    table = pyarrow.table(change(table_of()[0]))
    path = tmp_path / f"a{suffix}"
    write = csv.write_csv if suffix == ".csv" else parquet.write_table
    write(table, path)
    message = one_line(nfsgeo.data.open, path)
    assert str(path) in message


def test_meshes_without_point_data_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    meshio = pytest.importorskip("meshio")
    whole = meshio.Mesh(np.eye(3), [("triangle", [[0, 1, 2]])])
    meshio.write(tmp_path / "a.vtu", whole)
    assert "no data" in one_line(nfsgeo.data.open, tmp_path / "a.vtu")


@pytest.mark.parametrize("name", ["mesh.vtu", "table.parquet"])
def test_missing_extras_are_named(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    one_line: Callable[..., str],
) -> None:
    CLOUDS[name](tmp_path / name)
    for package in ("meshio", "pyarrow"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    assert "nfsgeo[formats]" in one_line(nfsgeo.data.open, tmp_path / name)


def test_equal_names_are_refused(tmp_path: Path, one_line: Callable[..., str]) -> None:
    u, about = np.ones((1, 2, 3, 2)), json.dumps({"component_names": ["p", "p"]})
    np.savez(tmp_path / "a.npz", coords=np.eye(2), u=u, t=np.arange(3), names=["p"] * 2)
    np.savez(tmp_path / "b.npz", x=np.arange(3), u=u, t=np.arange(2), about=about)
    for name in ("a.npz", "b.npz"):
        message = one_line(nfsgeo.data.open, tmp_path / name)
        assert "the name 'p' given 2 times" in message
