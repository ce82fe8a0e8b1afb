"""Data of cells, blocks and series of meshes: values in place, or one line."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_meshes import CORNERS, TRIANGLES, P, values

import nfsgeo.data
from nfsgeo.data.io import joining

meshio = pytest.importorskip("meshio")

FAST = settings(max_examples=15)


def saved(
    path: Path, points: Any = None, cells: Any = None, shift: float = 0, **options: Any
) -> Path:
    """A unit square of two triangles, with such data."""
    of_cells = {name: [values] for name, values in (cells or {}).items()}
    square = CORNERS + [shift, 0, 0]
    mesh = meshio.Mesh(square, [("triangle", TRIANGLES)], points or {}, of_cells)
    meshio.write(path, mesh, **options)
    return path


def listed(path: Path, names: Sequence[str], times: Sequence[float]) -> Path:
    """A list of files at times, the last first."""
    pairs = list(zip(names, times, strict=True))[::-1]
    if path.suffix == ".pvd":
        return pvd(path, [{"file": name, "timestep": str(t)} for name, t in pairs])
    files = [{"name": name, "time": time} for name, time in pairs]
    path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    return path


def pvd(
    path: Path,
    entries: Sequence[dict[str, str]],
    kind: str = "Collection",
    tag: str = "DataSet",
) -> Path:
    root = ElementTree.Element("VTKFile", type=kind, version="0.1")
    inside = ElementTree.SubElement(root, kind)
    for entry in entries:
        ElementTree.SubElement(inside, tag, entry)
    ElementTree.ElementTree(root).write(path, xml_declaration=True)
    return path


@FAST
@given(blocks=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_cells_of_several_types_in_any_order(tmp_path, blocks):
    random = np.random.default_rng(sum(blocks))
    points, kinds = random.random((9, 3)), ["triangle", "quad", "triangle"]
    corners, p = [3, 4, 3], [random.random(num) for num in blocks]
    nodes = [random.integers(0, 9, z) for z in zip(blocks, corners, strict=False)]
    cells = list(zip(kinds, nodes, strict=False))
    path = tmp_path / "a.vtu"
    meshio.Mesh(points, cells, cell_data={"p": p}).write(path)
    fields = nfsgeo.data.open(path)
    wanted = np.concatenate([points[each].mean(axis=1) for each in nodes])
    if sum(blocks) > 1:
        np.testing.assert_allclose(fields.coordinates(), wanted)
    np.testing.assert_array_equal(values(fields)[:, 0], np.concatenate(p))


def test_points_or_cells_have_to_be_chosen(tmp_path, one_line):
    q, ids = np.array([7.0, 8.0]), {"material": np.array([1, 2])}
    path = saved(tmp_path / "a.vtu", {"p": P}, {"q": q, **ids})
    message = one_line(nfsgeo.data.open, path)
    assert "p at the points and q" in message and "--at" in message
    for at, name, found in (("points", "p", P), ("cells", "q", q)):
        fields = nfsgeo.data.open(path, at=at)
        assert fields.component_names == [name]
        np.testing.assert_array_equal(values(fields)[:, 0], found)
    fields = nfsgeo.data.open(path, at="cells", columns={"static": "material"})
    assert fields.static_names == ["material"]
    out = nfsgeo.data.convert(path, tmp_path / "a.nc", at="cells")
    assert "leave --at out" in one_line(nfsgeo.data.open, out, at="cells")
    fields = nfsgeo.data.open(saved(tmp_path / "b.vtu", {"p": P}, ids))
    assert fields.component_names == ["p"] and fields.num_points() == 4
    assert "no data at" in one_line(nfsgeo.data.open, saved(tmp_path / "c.vtu"))


@pytest.mark.slow
@FAST
@given(
    kind=st.sampled_from(["i4", "i8", "u1", "f8"]),
    steps=st.integers(1, 3),
    types=st.lists(st.integers(0, 6), min_size=4, max_size=4),
)
def test_node_types_masks_and_numbers_of_meshes(tmp_path, kind, steps, types, sent):
    """They are inputs, and come back from the files that are written."""
    names = [f"s{k}.vtu" for k in range(steps)]
    marks = {"node_type": np.array(types, kind), "surf": np.array([0, 1, 1, 0], "u1")}
    for k, name in enumerate(names):
        path = saved(tmp_path / name, {"p": P + k, **marks}, binary=False)
        block = "".join(
            f'<DataArray type="Float64" Name="{name}" format="ascii">'
            f"{value}</DataArray>"
            for name, value in (("Re", 100.0), ("TimeValue", k / 4))
        )
        start = "<UnstructuredGrid>"
        whole = f"{start}<FieldData>{block}</FieldData>"
        path.write_text(path.read_text().replace(start, whole))
    source = listed(tmp_path / "a.pvd", names, np.arange(steps) / 4)
    fields = nfsgeo.data.open(path if steps == 1 else source)
    assert fields.component_names == ["p"] and [*fields.categories] == ["node_type"]
    assert fields.static_names == ["node_type", "surf"]
    assert fields.scalar_names == ["Re"] and fields.parameters["Re"] == [100]
    for number, name in enumerate(("a.nc", "b.pvd")):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}{number}{name}"
        for each in (fields, sent(fields), nfsgeo.data.open(fields.write(out))):
            assert each.dataset["node_type"].dtype.kind in "iu"
            found, numbers = each.read_inputs(0), [100] * 4
            expected = np.stack([types, [0, 1, 1, 0], numbers], 1)
            np.testing.assert_array_equal(found, expected)


def test_what_is_left_out_of_a_mesh_is_said_once(tmp_path, caplog):
    ids = {"material": np.array([1, 2])}
    for k in range(3):
        saved(tmp_path / f"s{k}.vtu", {"p": P + k}, ids)
    path = listed(tmp_path / "a.pvd", [f"s{k}.vtu" for k in range(3)], range(3))
    nfsgeo.data.open(path).read(0, slice(None))
    assert caplog.messages == [f"{path}: left out material"]


def blocks_of(path: Path, cuts: list[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A strip of quadrilaterals cut into blocks that share the points of a cut."""
    ends = [0, *np.cumsum(cuts)]
    x = np.arange(ends[-1] + 1.0)
    points = np.stack(np.meshgrid(x, [0.0, 2.0], [1.0], indexing="ij"), -1)
    p = np.random.default_rng(seed).normal(size=points.shape[:2])
    names = [f"{path.stem}_{number}.vtu" for number in range(len(cuts))]
    for name, start, stop in zip(names, ends, ends[1:], strict=False):
        part = slice(start, stop + 1)
        quads = 2 * np.arange(stop - start)[:, None] + [0, 2, 3, 1]
        data = {"p": p[part].ravel()}
        mesh = meshio.Mesh(points[part].reshape(-1, 3), [("quad", quads)], data)
        meshio.write(path.with_name(name), mesh)
    pvd(path, [{"file": name} for name in names], "vtkMultiBlockDataSet")
    return points.reshape(-1, 3)[:, :2], p.ravel()


@FAST
@given(cuts=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 9))
def test_blocks_become_one_mesh(tmp_path, cuts, seed):
    points, p = blocks_of(tmp_path / "a.vtm", cuts, seed)
    _, later = blocks_of(tmp_path / "b.vtm", cuts, seed + 1)
    pieces = [{"Source": f"a_{number}.vtu"} for number in range(len(cuts))]
    pvd(tmp_path / "a.pvtu", pieces, "PUnstructuredGrid", "Piece")
    listed(tmp_path / "a.pvd", ["a.pvtu", "b.vtm"], [0, 1])
    for name, steps in (("a.vtm", [p]), ("a.pvtu", [p]), ("a.pvd", [p, later])):
        fields = nfsgeo.data.open(tmp_path / name)
        np.testing.assert_array_equal(fields.coordinates(), points)
        np.testing.assert_array_equal(values(fields).T, steps)
        quads = points[fields.cells()["quad"]]
        assert len(quads) == sum(cuts) and (np.ptp(quads, axis=1) == [1, 2]).all()


def test_blocks_that_contradict_each_other(tmp_path, one_line):
    path = tmp_path / "a.vtm"
    blocks_of(path, [2, 2], 0)
    for number in range(2):  # values that are missing at both do not
        mesh = meshio.read(tmp_path / f"a_{number}.vtu")
        mesh.point_data["p"][:] = np.nan
        mesh.write(tmp_path / f"b_{number}.vtu")
    files = [{"file": f"b_{k}.vtu"} for k in (0, 1)]
    pvd(tmp_path / "b.vtm", files, "vtkMultiBlockDataSet")
    assert np.isnan(values(nfsgeo.data.open(tmp_path / "b.vtm"))).all()
    (tmp_path / "a_1.vtu").unlink()
    assert "a_1.vtu" in one_line(nfsgeo.data.open, path)
    blocks_of(tmp_path / "other.vtm", [2, 2], 1)
    (tmp_path / "other_1.vtu").rename(tmp_path / "a_1.vtu")
    assert "a common point" in one_line(nfsgeo.data.open, path)
    saved(tmp_path / "a_1.vtu", {"q": P})
    assert "blocks of the same arrays" in one_line(nfsgeo.data.open, path)


@pytest.mark.parametrize("name", ["run.pvd", "run.vtu.series"])
def test_series(name, tmp_path, one_line, sent):
    times = [0.5, 0.75, 2.0]
    names = [f"s{k}.vtu" for k in range(3)]
    for k, each in enumerate(names):
        saved(tmp_path / each, {"p": P + k}, {"q": np.arange(2.0) + k})
    path = listed(tmp_path / name, names, times)
    message = one_line(nfsgeo.data.open, path)
    assert f"nfsgeo convert {path} --out NAME.nc --at points" in message
    for at, num in (("points", 4), ("cells", 2)):
        fields = nfsgeo.data.open(path, at=at)
        for each in (fields, sent(fields)):
            assert each.times.tolist() == times and each.path == path
            np.testing.assert_array_equal(
                values(each), np.arange(num)[:, None] + np.arange(3)
            )
    (tmp_path / names[1]).unlink()
    assert names[1] in one_line(nfsgeo.data.open, path, at="points")


def test_parts_and_groups_of_a_list(tmp_path, one_line):
    """Parts at one time are one mesh, groups are samples, which may begin alike."""
    entries = []
    for group, time, part in np.ndindex(2, 3, 2):
        first = time == 0
        name = f"{0 if first else group}-{time}-{part}.vtu"
        p = P + 100 * (0 if first else group) + 10 * time
        saved(tmp_path / name, {"p": p}, shift=2.0 * part)
        about = {"group": f"g{group}", "part": str(part), "timestep": str(time / 2)}
        entries.append(about | {"file": name})
    fields = nfsgeo.data.open(pvd(tmp_path / "a.pvd", entries))
    assert (fields.num_samples, fields.num_points()) == (2, 8)
    assert fields.times.tolist() == [0, 0.5, 1] and not fields.sample_mesh.any()
    assert values(fields, 1)[0].tolist() == [0, 110, 120]
    assert len(fields.cells(1)["triangle"]) == 4
    twice = [entries[0], entries[0] | {"file": entries[1]["file"]}]
    message = one_line(nfsgeo.data.open, pvd(tmp_path / "b.pvd", twice))
    assert "several files at one time" in message and "part" in message


def test_many_files_are_not_held_at_once(tmp_path, one_line, monkeypatch):
    """Where they would not fit into memory, but for the last ones."""
    monkeypatch.setattr(joining.OPENED, "max_bytes", 0)
    names = [f"s{k}.vtu" for k in range(40)]
    for k, name in enumerate(names):
        saved(tmp_path / name, {"p": P + k, "k": P})
    path = listed(tmp_path / "a.pvd", names, range(40))
    assert "k, which never changes" in one_line(nfsgeo.data.open, path)
    fields = nfsgeo.data.open(path, columns={"static": "k"})
    for name in names[1:35]:
        (tmp_path / name).write_text("no mesh")
    last = fields.read(0, slice(38, 40))[..., 0]
    np.testing.assert_array_equal(last, P[:, None] + [38, 39])
    assert "s3.vtu" in one_line(fields.read, 0, slice(3, 4))


def test_arrays_of_some_pieces(tmp_path, one_line):
    path = saved(tmp_path / "a.vtu", {"p": P}, binary=False)
    piece = re.search("<Piece.*</Piece>", path.read_text(), re.S).group()
    array = '<DataArray type="Float64" Name="q" format="ascii">1 2 3 4</DataArray>'
    more = piece.replace("<PointData>", "<PointData>" + array)
    path.write_text(path.read_text().replace(piece, piece + more))
    assert "a.vtu (q broken, or in some of its" in one_line(nfsgeo.data.open, path)


def test_components_that_never_change_and_names_that_are_not_there(tmp_path, one_line):
    for k in range(3):
        v = np.stack([P * k, P, 0 * P], axis=1)
        saved(tmp_path / f"u_{k}.vtu", {"v": v})
    how = {"series": "time-steps", "times": range(3)}
    assert "v_1, which never changes" in one_line(nfsgeo.data.open, tmp_path, **how)
    kinds = {"static": "v_1", "ignore": "w"}
    assert "'w'" in one_line(nfsgeo.data.open, tmp_path, columns=kinds, **how)
    fields = nfsgeo.data.open(tmp_path, columns={"static": "v_1"}, **how)
    assert fields.component_names == ["v_0", "v_2"]


@pytest.mark.parametrize("ending", [".vtu", ".vtk", ".xdmf"])
@pytest.mark.parametrize("center", ["points", "cells"])
@pytest.mark.parametrize("name", ["vtkValidPointMask", "vtkGhostType"])
def test_what_paraview_marks(name, center, ending, tmp_path, one_line):
    p = P if center == "points" else P[:2]
    fine = int(name == "vtkValidPointMask")
    marks = np.full(len(p), fine, np.int32)
    data = {"p": p, "a_k": p, name: marks}
    fields = nfsgeo.data.open(saved(tmp_path / f"0{ending}", **{center: data}))
    assert fields.component_names == ["p"] and fields.static_names == ["k"]
    np.testing.assert_array_equal(values(fields)[:, 0], p)
    marks[1] = 1 - fine
    path = saved(tmp_path / f"1{ending}", **{center: data})
    if not fine:
        message = one_line(nfsgeo.data.open, path)
        assert f"1 of {len(p)} values missing" in message
    else:
        fields = nfsgeo.data.open(path)
        expected = np.where(np.arange(len(p)) == 1, np.nan, p)
        np.testing.assert_array_equal(values(fields)[:, 0], expected)
        np.testing.assert_array_equal(fields.read_static(0)[:, 0], p)


def test_times_in_files(tmp_path, one_line):
    times, paths = [0.0, 0.25, 0.75], []
    for number, time in enumerate(times):
        path = saved(tmp_path / f"s_{number}.vtu", {"p": P + number}, binary=False)
        about = 'type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii"'
        data = f"<FieldData><DataArray {about}>{time}</DataArray></FieldData>"
        path.write_text(path.read_text().replace("<Piece", f"{data}<Piece"))
        paths.append(path)
    fields = nfsgeo.data.open(paths, series="time-steps")
    assert fields.times.tolist() == times and values(fields)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["a.pvd", "a.vtu.series"])
def test_the_answer_of_the_user_goes_before_that_of_a_list(name, tmp_path, one_line):
    names = [f"s{k}.vtu" for k in range(2)]
    for k, file in enumerate(names):
        saved(tmp_path / file, {"p": P + k}, shift=0.5 * k)
    path = listed(tmp_path / name, names, [0.0, 1.0])
    assert "--series samples" in one_line(nfsgeo.data.open, path)
    fields = nfsgeo.data.open(path, series="samples")
    assert fields.num_samples == 2 and fields.own_meshes


def test_times_that_a_list_has_twice(tmp_path, one_line):
    for name in "abc":
        saved(tmp_path / f"{name}.vtu", {"p": P})
    path = listed(tmp_path / "a.pvd", ["c.vtu", "b.vtu", "a.vtu"], [1.0, 1.0, 0.0])
    message = one_line(nfsgeo.data.open, path)
    assert "t = 1" in message and "such as those of b.vtu" in message
