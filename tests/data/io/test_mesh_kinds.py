"""Kinds of meshes, encodings, names, pieces and damage of files of VTK."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vtk_meshes import (
    BOX,
    RNG,
    SIZES,
    WRITERS,
    cgns,
    ensight,
    ensight_binary,
    hexahedron,
    image,
    polyhedron,
    pvd,
    rectilinear,
    save,
    structured,
    surface,
    unstructured,
    whole,
    with_arrays,
)

import nfsgeo
from nfsgeo.errors import UserError

meshio = pytest.importorskip("meshio")
vtk = pytest.importorskip("vtk")
from vtkmodules.util.numpy_support import numpy_to_vtk  # noqa: E402


@pytest.mark.parametrize("packed", ["None", "ZLib", "LZ4", "LZMA"])
@pytest.mark.parametrize("mode", ["ascii", "binary", "appended", "raw"])
@pytest.mark.parametrize("make", [whole, structured, rectilinear, image])
def test_every_kind_in_every_encoding(make, mode, packed, tmp_path):
    data = with_arrays(make())
    ending, _ = WRITERS[data.GetClassName()]
    paths = [save(data, tmp_path / f"a.{ending}", mode, packed)]
    if packed == "None":
        paths.append(save(data, tmp_path / "a.vtk", mode))
    for path in paths:
        fields = nfsgeo.open(path, at="points")
        order = np.lexsort(fields.coordinates().T)  # of a grid, z last
        np.testing.assert_array_equal(fields.coordinates()[order], BOX)
        found = fields.read(0, slice(None))[order, 0]
        expected = np.column_stack([np.arange(24), np.arange(72).reshape(-1, 3)])
        np.testing.assert_array_equal(found, expected)
        inside = nfsgeo.open(path, at="cells")
        num = data.GetNumberOfCells()
        order = np.lexsort(inside.coordinates().T)
        assert inside.read(0, slice(None)).ravel()[order].tolist() == [*range(num)]
        assert inside.coordinates()[order][0].tolist()[0] == 0.5
    assert (fields.shape == SIZES) == (make in (rectilinear, image))


CENTRES: dict[str, tuple[tuple[int, list[int]], list[float]]] = {
    "voxel": ((11, [0, 1, 4, 5, 12, 13, 16, 17]), [0.5, 0.5, 0.5]),
    "pixel": ((8, [1, 2, 5, 6]), [1.5, 0.5, 0]),
    "strip": ((6, [0, 4, 1, 5]), [0.5, 0.5, 0]),
    "polyline": ((4, [0, 1, 2]), [1, 0, 0]),
    "polygon": ((7, [0, 1, 2, 6, 5, 4]), [1, 0.5, 0]),
    "polyhedron": ((42, polyhedron(1)), [1.5, 0.5, 0.5]),
    "wedge": ((13, [0, 4, 1, 12, 16, 13]), [1 / 3, 1 / 3, 0.5]),
    "pyramid": ((14, [0, 1, 5, 4, 12]), [0.4, 0.4, 0.2]),
    "vertex": ((1, [2]), [2, 0, 0]),
    "Lagrange triangle": ((69, [0, 1, 4]), [1 / 3, 1 / 3, 0]),
    "Lagrange triangle of third order": ((69, [*range(10)]), [1.3, 0.8, 0]),
}


@pytest.mark.parametrize("ending", ["vtu", "vtk"])
@pytest.mark.parametrize("name", CENTRES)
def test_values_of_every_cell(name, ending, tmp_path, caplog):
    """They are at the centre of the cell, whatever it is, and nothing is lost."""
    cell, centre = CENTRES[name]
    data = unstructured((12, hexahedron(0)), cell, (10, [3, 7, 11, 15]))
    path = save(with_arrays(data), tmp_path / f"a.{ending}")
    fields = nfsgeo.open(path, at="cells")
    assert fields.read(0, slice(None)).ravel().tolist() == [0, 1, 2]
    expected = [[0.5, 0.5, 0.5], centre, [3, 0.75, 0.25]]
    np.testing.assert_allclose(fields.coordinates(), expected, atol=1e-6)
    assert not caplog.messages
    fields = nfsgeo.open(path, at="points")
    assert fields.num_points() == 24
    unknown = name in ("polygon", "polyhedron", "Lagrange triangle of third order")
    assert bool(fields.cells()) != unknown
    assert unknown == any("cells" in message for message in caplog.messages)
    assert nfsgeo.open(fields.write(tmp_path / "b.pvd")).num_points() == 24


@pytest.mark.parametrize(("kind", "num"), [(26, 15), (27, 13), (25, 20), (29, 27)])
def test_cells_of_second_order(kind, num, tmp_path):
    xyz = RNG.random((27, 3))
    data = with_arrays(unstructured((kind, [*range(num)]), xyz=xyz))
    path = save(data, tmp_path / "a.vtu")
    fields = nfsgeo.open(path, at="points")
    (nodes,) = fields.cells().values()
    assert nodes.tolist() == [[*range(num)]]
    again = nfsgeo.open(fields.write(tmp_path / "b.vtu"))
    assert [*again.cells()] == [*fields.cells()]


def test_pieces_with_ghost_cells(tmp_path):
    """ParaView's and deal.II's parallel files, of which each has some of the others."""
    for number, (first, last) in enumerate([(0, 2), (1, 3)]):
        cells = [(12, hexahedron(k)) for k in range(first, last)]
        data = with_arrays(unstructured(*cells))
        data.GetCellData().GetArray("q").SetTuple1(0, first)
        data.GetCellData().GetArray("q").SetTuple1(1, first + 1)
        ghosts = numpy_to_vtk(np.array([0, 1] if not number else [0, 0], "u1"), deep=1)
        ghosts.SetName("vtkGhostType")
        data.GetCellData().AddArray(ghosts)
        save(data, tmp_path / f"a/a_{number}.vtu")
    pieces = "".join(f"<Piece Source='a/a_{k}.vtu'/>" for k in (0, 1))
    kind, path = "PUnstructuredGrid", tmp_path / "a.pvtu"
    path.write_text(f"<VTKFile type='{kind}'><{kind}>{pieces}</{kind}></VTKFile>")
    fields = nfsgeo.open(path, at="cells")
    assert sorted(fields.read(0, slice(None)).ravel().tolist()) == [0, 1, 2]
    assert nfsgeo.open(path, at="points").num_points() == 24


@pytest.mark.parametrize(
    ("kind", "ending", "pieces"),
    [
        ("PPolyData", "pvtp", "<Piece Source='a.vtp'/><Piece Source='b.vtp'/>"),
        (
            "vtkPartitionedDataSetCollection",
            "vtpc",
            "<Partitions index='0' name='one'><DataSet index='0' file='a.vtp'/>"
            "</Partitions><Partitions index='1'><DataSet file='b.vtp'/></Partitions>",
        ),
        (
            "vtkMultiBlockDataSet",
            "vtm",
            "<Block index='0'><Block><DataSet index='0' file='a.vtp'/></Block></Block>"
            "<Block index='1'/><Block><DataSet file='b.vtp'/></Block>",
        ),
    ],
)
def test_lists_of_files(kind, ending, pieces, tmp_path, one_line):
    for name, corners in (("a", [0, 1, 5, 4]), ("b", [1, 2, 6, 5])):
        data = surface(BOX[corners], [0, 1, 2, 3])
        p = numpy_to_vtk(np.array(corners, float), deep=True)
        p.SetName("p")
        data.GetPointData().AddArray(p)
        save(data, tmp_path / f"{name}.vtp")
    path = tmp_path / f"all.{ending}"
    path.write_text(f"<VTKFile type='{kind}'><{kind}>{pieces}</{kind}></VTKFile>")
    fields = nfsgeo.open(path)
    assert fields.read(0, slice(None)).ravel().tolist() == [0, 1, 5, 4, 2, 6]
    assert len(fields.cells()["quad"]) == 2
    for elsewhere in ("../b.vtp", str(tmp_path / "b.vtp"), "sub/../../b.vtp"):
        path.write_text(path.read_text().replace("b.vtp", elsewhere))
        assert "beside it or below" in one_line(nfsgeo.open, path)
        path.write_text(path.read_text().replace(elsewhere, "b.vtp"))
    path.write_text(path.read_text().replace("b.vtp", path.name))
    assert one_line(nfsgeo.open, path)


def test_lists_without_times(tmp_path, one_line):
    for k in range(2):
        save(with_arrays(whole(), k), tmp_path / f"s{k}.vtu")
    path, files = (
        tmp_path / "a.pvd",
        "".join(f"<DataSet file='s{k}.vtu'/>" for k in (0, 1)),
    )
    path.write_text(f"<VTKFile type='Collection'>{files}</VTKFile>")
    assert "--times" in one_line(nfsgeo.open, path, at="cells")
    fields = nfsgeo.open(path, at="cells", times=[0, 3])
    assert fields.read(0, slice(None))[0, :, 0].tolist() == [0, 1]


def test_vtkhdf_and_its_links(tmp_path, one_line):
    path = tmp_path / "a.vtkhdf"
    writer = vtk.vtkHDFWriter()
    writer.SetInputData(with_arrays(whole()))
    writer.SetFileName(str(path))
    writer.Write()
    fields = nfsgeo.open(path, at="points")
    assert fields.read(0, slice(None))[:, 0, 0].tolist() == [*range(24)]
    path.rename(tmp_path / "b.vtkhdf")
    (tmp_path / "sub").mkdir()
    with h5py.File(tmp_path / "sub/c.vtkhdf", "w") as file:
        file["VTKHDF"] = h5py.ExternalLink("../b.vtkhdf", "VTKHDF")
    assert "beside it or below" in one_line(nfsgeo.open, tmp_path / "sub/c.vtkhdf")


MADE: dict[str, Callable[[Path], Any]] = {
    **{
        f"{mode}.{ending}": lambda p, m=make, o=mode: save(with_arrays(m()), p, o)
        for mode in ("ascii", "binary", "raw")
        for ending, make in (
            ("vtu", whole),
            ("vtp", lambda: surface(BOX, [0, 1, 5, 4])),
            ("vti", image),
            ("vts", structured),
            ("vtr", rectilinear),
        )
    },
    "text.vtk": lambda p: save(with_arrays(whole()), p, "ascii"),
    "binary.vtk": lambda p: save(with_arrays(structured()), p),
    "flow.case": ensight,
    "binary.case": ensight_binary,
    "flow.cgns": cgns,
}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(MADE)), data=st.data())
def test_damaged_files_are_read_or_refused(name, data, tmp_path):
    """In one line, and never end the process; nor do healthy files after them."""
    path = tmp_path / name
    MADE[name](path)
    content = bytearray(path.read_bytes())
    healthy = bytes(content)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, max(len(content) - 1, 0)))
        content[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
    path.write_bytes(content)
    try:
        nfsgeo.open(path, at="points").read(0, slice(None))
    except UserError as error:
        assert "\n" not in str(error)
    path.write_bytes(healthy)
    fields = nfsgeo.open(path, at="points")
    assert fields.read(0, slice(0, 1))[0, 0, 0] == 0


@pytest.mark.parametrize("name", ["raw.vts", "raw.vti", "ascii.vtp", "binary.vtk"])
def test_shortened_files_are_never_half_read(name, tmp_path):
    MADE[name](path := tmp_path / name)
    content = path.read_bytes()
    start = max(content.find(b"POINT_DATA"), content.find(b"<AppendedData"), 300)
    for length in range(start + 50, len(content) - 20, 37):
        path.write_bytes(content[:length])
        with pytest.raises(UserError):
            nfsgeo.open(path, at="points")


NAMES = ["a/b", "x", "y", "z", "time", "point", "sample", "part", " u ", "v [m/s]"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", ["points", "cells"])
def test_names_that_fields_cannot_have(name, at, tmp_path, caplog):
    data = whole()
    where, num = (
        (data.GetPointData(), 24) if at == "points" else (data.GetCellData(), 3)
    )
    for each, values in ((name, np.arange(num)), ("p", 2 * np.arange(num))):
        array = numpy_to_vtk(values.astype(float), deep=True)
        array.SetName(each)
        where.AddArray(array)
    path = save(data, tmp_path / "a.vtu")
    fields = nfsgeo.open(path)
    assert fields.static_names == [] and fields.components == 2
    np.testing.assert_array_equal(fields.read(0, slice(None))[:, 0, 0], np.arange(num))
    assert fields.component_names[0] in caplog.text
    for columns in ({"ignore": name}, {"field": "p", "ignore": name}):
        assert nfsgeo.open(path, columns=columns).component_names == ["p"]
    assert nfsgeo.open(path, columns={"static": name}).component_names == ["p"]


def test_components_and_an_array_of_one_name(tmp_path):
    data = whole()
    for name, width in (("u", 2), ("u_0", 1)):
        array = numpy_to_vtk(np.full((24, width), float(width)), deep=True)
        array.SetName(name)
        data.GetPointData().AddArray(array)
    fields = nfsgeo.open(save(data, tmp_path / "a.vtu"))
    assert fields.component_names == ["u_0", "u_1", "u_0_field"]
    assert fields.read(0, slice(None))[0, 0].tolist() == [2, 2, 1]


SCALARS = "SCALARS u double 1\nLOOKUP_TABLE default\n1\n2\n3\n"


FIELD = "FIELD FieldData 1\nu 1 3 double\n4 5 6\n"


@pytest.mark.parametrize(
    ("parts", "at"),
    [
        (f"POINT_DATA 3\n{SCALARS}{SCALARS}", None),
        (f"POINT_DATA 3\n{SCALARS}{FIELD}", None),
        (f"POINT_DATA 3\n{FIELD}{FIELD}", None),
        (f"POINT_DATA 3\n{SCALARS}{SCALARS.replace('3', '3')}".lower(), None),
        (f"POINT_DATA 3\n{SCALARS}VECTORS u double\n{'1 2 3 ' * 3}\n", None),
        (f"POINT_DATA 3\n{SCALARS}CELL_DATA 1\n{SCALARS[:-4]}{SCALARS[:-4]}", None),
        (f"POINT_DATA 3\n{SCALARS}CELL_DATA 1\n{SCALARS[:-4]}", "points"),
    ],
)
def test_two_arrays_of_one_name_in_the_old_format(parts, at, tmp_path, one_line):
    path = tmp_path / "a.vtk"
    path.write_text(
        "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\nPOINTS 3 double\n"
        f"0 0 0\n1 0 0\n0 1 0\nPOLYGONS 1 4\n3 0 1 2\n{parts}"
    )
    if at is None:
        assert "several arrays called u" in one_line(nfsgeo.open, path)
        return
    assert nfsgeo.open(path, at=at).read(0, slice(None)).ravel().tolist() == [1, 2, 3]
    assert nfsgeo.open(path, at="cells").read(0, slice(None)).ravel().tolist() == [1]


def steps_of(folder: Path, moved: float = 0) -> list[str]:
    """Three time steps, of which the last one has a further field ``w``."""
    for k in range(3):
        xyz = BOX * (1 + moved * k)
        data = unstructured((12, hexahedron(0)), (12, hexahedron(1)), xyz=xyz)
        for name in ("p", "w")[: 1 + (k == 2)]:
            array = numpy_to_vtk(np.arange(24.0) + k, deep=True)
            array.SetName(name)
            data.GetPointData().AddArray(array)
        save(data, folder / f"s{k}.vtu")
    return [f"s{k}.vtu" for k in range(3)]


@pytest.mark.parametrize("listed", [False, True])
def test_a_field_of_later_steps_is_missing_in_others(listed, tmp_path, caplog):
    names = steps_of(tmp_path)
    source = [tmp_path / name for name in names]
    options = {"series": "time-steps", "times": [0, 1, 2]}
    if listed:
        source = pvd(tmp_path / "a.pvd", *((k, 0, n) for k, n in enumerate(names)))
        options = {}
    fields = nfsgeo.open(source, **options)
    found = fields.read(0, slice(None))
    assert fields.component_names == ["p", "w"] and "2 of 3" in caplog.text
    assert np.isnan(found[..., 1]).sum(0).tolist() == [24, 24, 0]
    np.testing.assert_array_equal(found[:, 2, 1], np.arange(24) + 2)
    for columns in ({"ignore": "w"}, {"field": "p"}):
        one = nfsgeo.open(source, columns=columns, **options)
        assert one.component_names == ["p"]
    again = nfsgeo.open(fields.write(tmp_path / "b.nc"))
    np.testing.assert_array_equal(again.read(0, slice(None)), found)


def test_pieces_and_parts_without_points(tmp_path, one_line):
    names = steps_of(tmp_path)[:2]
    save(unstructured(xyz=np.zeros((0, 3))), tmp_path / "e.vtu")
    kind, path = "PUnstructuredGrid", tmp_path / "a.pvtu"
    for files in (("s0", "e"), ("e", "s0")):
        pieces = "".join(f"<Piece Source='{file}.vtu'/>" for file in files)
        path.write_text(f"<VTKFile type='{kind}'><{kind}>{pieces}</{kind}></VTKFile>")
        assert nfsgeo.open(path).num_points() == 24
    parts = [
        (k, p, n) for k, name in enumerate(names) for p, n in ((0, name), (1, "e.vtu"))
    ]
    fields = nfsgeo.open(pvd(tmp_path / "a.pvd", *parts))
    assert fields.read(0, slice(None))[0].ravel().tolist() == [0, 1]
    path = pvd(tmp_path / "b.pvd", (0, 0, "e.vtu"), *((1, 0, n) for n in names[:1]))
    assert "e.vtu out of it" in one_line(nfsgeo.open, path)
    assert "no points" in one_line(nfsgeo.open, tmp_path / "e.vtu")


def test_points_that_move(tmp_path, one_line):
    """The ways that the message names do work."""
    names = steps_of(tmp_path, moved=0.1)
    path = pvd(tmp_path / "a.pvd", *((k, 0, n) for k, n in enumerate(names)))
    assert "Resample With Dataset" in one_line(nfsgeo.open, path)
    files = [tmp_path / name for name in names]
    apart = nfsgeo.open(files[:2], series="samples")
    assert apart.num_samples == 2 and apart.own_meshes
    for file in files:
        reader, source = (
            vtk.vtkXMLUnstructuredGridReader(),
            vtk.vtkXMLUnstructuredGridReader(),
        )
        for each, name in ((reader, files[0]), (source, file)):
            each.SetFileName(str(name))
            each.Update()
        probe = vtk.vtkResampleWithDataSet()
        probe.SetInputData(reader.GetOutput())
        probe.SetSourceData(source.GetOutput())
        probe.Update()
        save(probe.GetOutput(), tmp_path / f"r/{file.name}")
    path = pvd(tmp_path / "r/a.pvd", *((k, 0, n) for k, n in enumerate(names)))
    fields = nfsgeo.open(path, columns={"field": "p"})
    assert fields.times.tolist() == [0, 1, 2]
    assert not np.isnan(fields.read(0, slice(None))).all(axis=(0, 2)).any()
