"""Data of cells, blocks and series of meshes: values in place, or one line."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.errors import UserError

meshio = pytest.importorskip("meshio")

FAST = settings(max_examples=15, deadline=None)
TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]])
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float)


def saved(path: Path, points: dict | None = None, cells: dict | None = None) -> Path:
    """A unit square of two triangles, with such data."""
    of_cells = {name: [values] for name, values in (cells or {}).items()}
    mesh = meshio.Mesh(
        CORNERS, [("triangle", TRIANGLES)], point_data=points or {}, cell_data=of_cells
    )
    meshio.write(path, mesh)
    return path


@pytest.mark.parametrize("ending", [".vtu", ".vtk", ".xdmf"])
def test_data_of_cells_are_at_their_centroids(ending: str, tmp_path: Path) -> None:
    p, v = np.array([2.0, 3.0]), np.arange(6.0).reshape(2, 3)
    path = saved(tmp_path / f"a{ending}", cells={"p": p, "v": v})
    with nfsgeo.data.open(path) as file:
        centroids = CORNERS[TRIANGLES].mean(axis=1)[:, :2]
        np.testing.assert_allclose(file.coordinates(), centroids)
        np.testing.assert_array_equal(file.read(0, slice(None))[:, 0], np.c_[p, v])
        assert file.component_names == ["p", "v_0", "v_1", "v_2"] and not file.cells()


@settings(max_examples=15, deadline=None)
@given(blocks=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_cells_of_several_types_in_any_order(blocks: list[int]) -> None:
    random = np.random.default_rng(sum(blocks))
    points = random.random((9, 3))
    kinds = ["triangle", "quad", "triangle"]
    nodes = [
        random.integers(0, 9, (num, 3 if kind == "triangle" else 4))
        for num, kind in zip(blocks, kinds, strict=False)
    ]
    p = [random.random(num) for num in blocks]
    mesh = meshio.Mesh(
        points, list(zip(kinds, nodes, strict=False)), cell_data={"p": p}
    )
    with tempfile.TemporaryDirectory() as folder:
        meshio.write(Path(folder) / "a.vtu", mesh)
        with nfsgeo.data.open(Path(folder) / "a.vtu") as file:
            wanted = np.concatenate([points[each].mean(axis=1) for each in nodes])
            found = np.zeros_like(wanted)
            found[:, : file.domain.dim] = file.coordinates()
            assert np.allclose(found, wanted) or sum(blocks) == 1
            u = np.concatenate(p).astype(np.float32)
            np.testing.assert_array_equal(file.read(0, slice(None))[:, 0, 0], u)


def test_points_or_cells_have_to_be_chosen(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    p, q = np.arange(4.0), np.array([7.0, 8.0])
    path = saved(tmp_path / "a.vtu", {"p": p}, {"q": q, "material": np.array([1, 2])})
    message = one_line(nfsgeo.data.open, path)
    assert "p at the points and q" in message and "--at" in message
    for at, name, values in (("points", "p", p), ("cells", "q", q)):
        with open_sources(path, at=at) as file:
            assert file.component_names == [name]
            np.testing.assert_array_equal(file.read(0, slice(None))[:, 0, 0], values)
    out = nfsgeo.data.convert(path, tmp_path / "a.h5", at="cells")
    with nfsgeo.data.open(out) as file:
        assert file.num_points() == 2
    assert "leave at out" in one_line(open_sources, out, at="cells")


def test_numbers_of_materials_are_no_fields(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.vtu", {"p": np.arange(4.0)}, {"id": np.array([1, 2])})
    with nfsgeo.data.open(path) as file:
        assert file.component_names == ["p"] and file.num_points() == 4


def blocks_of(path: Path, cuts: list[int], seed: int) -> tuple[np.ndarray, ...]:
    """A strip of quadrilaterals cut into blocks that share the points of a cut."""
    ends = [0, *np.cumsum(cuts)]
    x = np.arange(ends[-1] + 1.0)
    points = np.stack(np.meshgrid(x, [0.0, 2.0], [1.0], indexing="ij"), -1)
    p = np.random.default_rng(seed).normal(size=points.shape[:2])
    entries = []
    for number, (start, stop) in enumerate(zip(ends, ends[1:], strict=False)):
        part = slice(start, stop + 1)
        left = 2 * np.arange(stop - start)[:, None]
        mesh = meshio.Mesh(
            points[part].reshape(-1, 3),
            [("quad", left + [0, 2, 3, 1])],
            point_data={"p": p[part].ravel()},
        )
        name = f"{path.stem}_{number}.vtu"
        meshio.write(path.with_name(name), mesh)
        entries.append(f'<DataSet index="{number}" file="{name}"/>')
    path.write_text(
        '<?xml version="1.0"?><VTKFile type="vtkMultiBlockDataSet" version="1.0">'
        f'<vtkMultiBlockDataSet><Block index="0">{"".join(entries)}</Block>'
        "</vtkMultiBlockDataSet></VTKFile>"
    )
    return points.reshape(-1, 3)[:, :2], p.ravel()


@FAST
@given(cuts=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 9))
def test_blocks_become_one_mesh(cuts: list[int], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.vtm"
        points, p = blocks_of(path, cuts, seed)
        with nfsgeo.data.open(path) as file:
            np.testing.assert_array_equal(file.coordinates(), points)
            u = file.read(0, slice(None))[:, 0, 0]
            np.testing.assert_array_equal(u, p.astype(np.float32))
            quads = points[file.cells()["quad"]]
            assert len(quads) == sum(cuts)
            assert (np.ptp(quads, axis=1) == [1, 2]).all()


def test_blocks_that_contradict_each_other(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "a.vtm"
    blocks_of(path, [2, 2], 0)
    (tmp_path / "a_1.vtu").rename(tmp_path / "b.vtu")
    assert "a_1.vtu, which a.vtm lists" in one_line(nfsgeo.data.open, path)
    blocks_of(tmp_path / "other.vtm", [2, 2], 1)
    (tmp_path / "other_1.vtu").rename(tmp_path / "a_1.vtu")
    assert "a common point" in one_line(nfsgeo.data.open, path)
    saved(tmp_path / "a_1.vtu", {"q": np.arange(4.0)})
    assert "block a_1.vtu of other fields" in one_line(nfsgeo.data.open, path)


@pytest.mark.parametrize("name", ["run.pvd", "run.vtm.series"])
def test_series_of_blocks(name: str, tmp_path: Path) -> None:
    fields = [blocks_of(tmp_path / f"b{k}.vtm", [2, 1], k)[1] for k in range(3)]
    times = [0.5, 0.75, 2.0]
    path = tmp_path / name
    if path.suffix == ".pvd":
        sets = [
            f'<DataSet timestep="{t}" file="b{k}.vtm"/>' for k, t in enumerate(times)
        ]
        path.write_text(
            f'<VTKFile type="Collection"><Collection>{"".join(sets)}'
            "</Collection></VTKFile>"
        )
    else:
        files = [{"name": f"b{k}.vtm", "time": t} for k, t in enumerate(times)]
        path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    with nfsgeo.data.open(path) as file:
        assert file.times.tolist() == times
        u = file.read(0, slice(None))[..., 0]
        np.testing.assert_array_equal(u, np.stack(fields, 1).astype(np.float32))


def test_series_of_cells(tmp_path: Path, one_line: Callable[..., str]) -> None:
    for k in range(2):
        saved(tmp_path / f"s{k}.vtu", {"p": np.arange(4.0)}, {"q": np.arange(2.0) + k})
    files = [{"name": f"s{k}.vtu", "time": k} for k in range(2)]
    path = tmp_path / "s.vtu.series"
    path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    other = tmp_path / "s.pvd"
    sets = "".join(f'<DataSet timestep="{k}" file="s{k}.vtu"/>' for k in range(2))
    other.write_text(
        f'<VTKFile type="Collection"><Collection>{sets}</Collection></VTKFile>'
    )
    for whole in (path, other):
        message = one_line(nfsgeo.data.open, whole)
        assert f"nfsgeo convert {whole} --out NAME.h5 --at points" in message
        assert "s0.vtu" not in message
        with open_sources(whole, at="cells") as file:
            assert file.read(0, slice(None))[..., 0].tolist() == [[0, 1], [1, 2]]


def test_static_inputs_stay_as_they_are(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    p, a = np.arange(4.0), np.array([1.0, 2.0, 2.0, np.nan])
    paths = [saved(tmp_path / f"s{k}.vtu", {"p": p, "a_k": a}) for k in range(2)]
    with open_sources(paths, series="time-steps", times=[0.0, 1.0]) as file:
        assert file.component_names == ["p"] and file.static_names == ["k"]
    saved(paths[1], {"p": p, "a_k": a + 1})
    message = one_line(open_sources, paths, series="time-steps", times=[0.0, 1.0])
    assert "s1.vtu with k, which changes in time" in message
    with open_sources(paths, series="samples") as file:
        assert file.static_names == ["k"] and file.num_samples == 2
    with meshio.xdmf.TimeSeriesWriter(tmp_path / "a.xdmf", data_format="XML") as out:
        out.write_points_cells(CORNERS, [("triangle", TRIANGLES)])
        for k in range(2):
            out.write_data(float(k), point_data={"p": p, "a_k": p + k})
    message = one_line(nfsgeo.data.open, tmp_path / "a.xdmf")
    assert "a.xdmf with a_k, which changes in time" in message
    message = one_line(nfsgeo.data.open, saved(tmp_path / "b.vtu", {"a_k": p}))
    assert "b.vtu with no field but a_k" in message


@FAST
@given(data=st.data())
def test_damage_gives_one_line(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.vtm"
        blocks_of(path, [2, 1], 0)
        broken = Path(folder) / data.draw(st.sampled_from(["a.vtm", "a_1.vtu"]))
        raw = broken.read_bytes()
        broken.write_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
        try:
            with nfsgeo.data.open(path) as file:
                file.read(0, slice(None))
        except UserError as error:
            assert "\n" not in str(error)


def test_groups_that_begin_with_one_file(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for name in ("init", "a", "b"):
        saved(tmp_path / f"{name}.vtu", {"p": np.arange(4.0)})
    sets = "".join(
        f'<DataSet timestep="{k}" group="{group}" file="{name}.vtu"/>'
        for group in "ab"
        for k, name in enumerate(("init", group))
    )
    path = tmp_path / "s.pvd"
    path.write_text(
        f'<VTKFile type="Collection"><Collection>{sets}</Collection></VTKFile>'
    )
    assert "begin with the same init.vtu" in one_line(nfsgeo.data.open, path)


def test_a_component_with_the_name_of_a_field(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    vectors = {"v": np.ones((4, 3)), "v_0": np.zeros(4)}
    path = saved(tmp_path / "a.vtu", vectors)
    assert "v_0 beside a component of v" in one_line(nfsgeo.data.open, path)


def test_blocks_with_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "a.vtm"
    _, fields = blocks_of(path, [2, 2], 0)
    with nfsgeo.data.open(path) as file:
        whole = file.read(0, slice(None))
    for number in range(2):
        part = meshio.read(tmp_path / f"a_{number}.vtu")
        (name,) = part.point_data
        part.point_data[name] = np.full_like(part.point_data[name], np.nan)
        meshio.write(tmp_path / f"a_{number}.vtu", part)
    with nfsgeo.data.open(path) as file:
        found = file.read(0, slice(None))
    assert found.shape == whole.shape and np.isnan(found).all()
