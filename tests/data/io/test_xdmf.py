"""Meshes in XDMF."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from small_meshes import CORNERS, TRIANGLES, P, values

import nfsgeo.data

meshio = pytest.importorskip("meshio")


def xdmf(path: Path, form: str, *arrays: dict[str, np.ndarray]) -> Path:
    with meshio.xdmf.TimeSeriesWriter(path, data_format=form) as out:
        out.write_points_cells(CORNERS, [("triangle", TRIANGLES)])
        for k, data in enumerate(arrays):
            out.write_data(k / 4, point_data=data)
    return path


@pytest.mark.parametrize("form", ["XML", "HDF"])
def test_xdmf_in_time(form, tmp_path, one_line, sent):
    v = np.random.default_rng(0).normal(size=(3, 4, 3))
    steps = [{"v": v[k], "p": P * k, "a_k": P} for k in range(3)]
    fields = nfsgeo.data.open(xdmf(tmp_path / "a.xdmf", form, *steps))
    assert fields.times.tolist() == [0, 0.25, 0.5] and fields.static_names == ["k"]
    for each in (fields, sent(fields)):
        found = each.read(0, slice(None))
        np.testing.assert_array_equal(found[..., :3], v.swapaxes(0, 1))
        np.testing.assert_array_equal(found[..., 3], P[:, None] * np.arange(3))
        np.testing.assert_array_equal(each.read(0, slice(1, 2)), found[:, 1:2])
        np.testing.assert_array_equal(each.read_static(0)[:, 0], P)
        np.testing.assert_array_equal(each.cells()["triangle"], TRIANGLES)
    steps[2]["a_k"] = P + 1
    path = xdmf(tmp_path / "b.xdmf", form, *steps)
    assert "with a_k, which changes in time" in one_line(nfsgeo.data.open, path)


def test_xdmf_of_cells_in_time(tmp_path):
    with meshio.xdmf.TimeSeriesWriter(tmp_path / "a.xdmf", data_format="XML") as out:
        out.write_points_cells(CORNERS, [("triangle", TRIANGLES)])
        for k in range(3):
            out.write_data(k / 4, cell_data={"q": [np.arange(2.0) + k]})
    fields = nfsgeo.data.open(tmp_path / "a.xdmf")
    assert fields.times.tolist() == [0, 0.25, 0.5]
    assert values(fields).tolist() == [[0, 1, 2], [1, 2, 3]]


LIST = "<Time TimeType='List'><DataItem Dimensions='3'>0.5 1 4</DataItem></Time>"


SLAB = "<Time TimeType='HyperSlab'><DataItem Dimensions='3'>1 0.5 3</DataItem></Time>"


@pytest.mark.parametrize(("told", "times"), [(LIST, [0.5, 1, 4]), (SLAB, [1, 1.5, 2])])
def test_times_of_a_whole_series_of_xdmf(told, times, tmp_path, one_line):
    path = xdmf(tmp_path / "a.xdmf", "XML", *({"p": P + k} for k in range(3)))
    text = re.sub("<Time [^>]*/>", "", path.read_text())
    path.write_text(re.sub("(<Grid [^>]*Temporal[^>]*>)", rf"\1{told}", text))
    fields = nfsgeo.data.open(path)
    assert fields.times.tolist() == times
    np.testing.assert_array_equal(values(fields), P[:, None] + np.arange(3))
    path.write_text(path.read_text().replace(told, LIST.replace(" 4<", "<")))
    assert "2 times of 3 time steps" in one_line(nfsgeo.data.open, path)
    path.write_text(text)
    assert "without times" in one_line(nfsgeo.data.open, path)
    path.write_text(re.sub('Version="3[.0-9]*"', 'Version="2.0"', text))
    assert "version 2.0 of XDMF" in one_line(nfsgeo.data.open, path)


def test_a_single_grid_of_xdmf(tmp_path, one_line):
    path = tmp_path / "a.xdmf"
    meshio.Mesh(CORNERS, [("triangle", TRIANGLES)], {"p": P, "q": P}).write(
        path, data_format="XML"
    )
    text = path.read_text()
    path.write_text(text.replace("<Topology", "<Time Value='2.5'/><Topology"))
    fields = nfsgeo.data.open(path)
    assert fields.times.tolist() == [2.5] and fields.component_names == ["p", "q"]
    for old, new, words in (
        ('"q"', '"p"', "several arrays called p"),
        ('"Triangle"', '"2DCoRectMesh"', "2DCoRectMesh, which meshio does not know"),
        ("<DataItem ", '<DataItem ItemType="Function" ', "ItemType Function"),
        ('"XYZ"', '"X_Y"', "a geometry of type X_Y, which"),
        ("</Grid>", "</Grid><Grid Name='b' />", "2 grids that are not time steps"),
        ('"2 3"', '"6"', "without a row for each"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        assert words in one_line(nfsgeo.data.open, path)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("4 0 1 2 4 1 3 2", ""),
        ("4 0 1 2 5 0 1 3 2", ""),
        ("2 2 0 1 4 0 1 2", ""),
        ("1 1 3 4 0 1 2", "type Polyvertex among"),  # a point 3, or a polygon
        ("3 4 0 1 3 2", "type Polygon among"),
        ("2 3 0 1 2 4 0 1 2", "several lines among"),
        ("36 0 1 2 0 1 2", "type Triangle_6 among"),
        ("99 0", "number 99 among"),
    ],
)
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_mixed_cells_of_xdmf_and_names_in_any_case(
    nodes, words, version, tmp_path, one_line
):
    path, num = tmp_path / "a.xdmf", len(nodes.split())
    xy = " ".join(map(str, CORNERS[:, :2].ravel()))
    path.write_text(
        f"<Xdmf Version='{version}'><Domain><Grid><Geometry GeometryType='xy'>"
        f"<DataItem Dimensions='4 2'>{xy}</DataItem></Geometry>"
        f"<Topology TopologyType='MIXED'><DataItem Dimensions='{num}' "
        f"NumberType='Int'>{nodes}</DataItem></Topology>"
        "<Attribute Name='p'><DataItem Dimensions='4'>0 1 2 3</DataItem></Attribute>"
        "</Grid></Domain></Xdmf>"
    )
    if words:
        assert (
            words in (said := one_line(nfsgeo.data.open, path)) and "ParaView" in said
        )
    else:
        fields = nfsgeo.data.open(path)
        assert values(fields).ravel().tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(fields.coordinates(), CORNERS[:, :2])


def test_several_functions_and_meshes_of_xdmf(tmp_path, one_line):
    whole = ElementTree.parse(xdmf(tmp_path / "a.xdmf", "XML", {"p": P}, {"p": P + 1}))
    (series,) = whole.findall("Domain/Grid[@GridType='Collection']")

    def opened(*changes: tuple[str, str]) -> Any:
        text = ElementTree.tostring(series).decode()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        tree = ElementTree.fromstring(ElementTree.tostring(whole.getroot()))
        tree.find("Domain").append(ElementTree.fromstring(text))
        ElementTree.ElementTree(tree).write(tmp_path / "two.xdmf")
        return nfsgeo.data.open(tmp_path / "two.xdmf")

    fields = opened(('Name="p"', 'Name="q"'))
    assert fields.component_names == ["p", "q"] and fields.times.tolist() == [0, 0.25]
    other = 'Name="p"', 'Name="q"'
    for change, word in (
        (("0.25", "0.5"), "q twice, or at other times"),
        (('"Temporal"', '"Spatial"'), "grids that are not time steps"),
        (('Name="q"', 'Name="p"'), "p twice"),
        (('"Node"', '"Grid"'), "a mesh that meshio reads"),
        (("</Grid></Grid>", '</Grid><Attribute Name="a" /></Grid>'), "meshio reads"),
        (('"XML"', '"Binary"'), "binary data"),
    ):
        assert word in one_line(opened, other, change)
    item = series.find("Grid/Attribute/DataItem")
    moved = ElementTree.tostring(item).decode()
    last = (
        "</Grid></Grid>",
        f"</Grid><Grid><Geometry>{moved}</Geometry></Grid></Grid>",
    )
    assert "a mesh that moves" in one_line(opened, other, last)
    text, values_ = item.text, "101325.01 101325.02 101325.03 101325.04"
    changes = (other, (text, values_), ('Precision="8"', ""))
    assert opened(*changes).read(0, slice(None))[0, 0, 1] == 101325.01
    series[-1].append(ElementTree.fromstring(ElementTree.tostring(series[-1][-1])))
    series[-1][-1].set("Name", "r")  # at one of two times
    assert "p twice, or at other times" in one_line(opened, other)
