"""Meshes as programs of the field write them, made here with the layout of each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.errors import UserError

meshio = pytest.importorskip("meshio")
vtk = pytest.importorskip("vtk")
from vtkmodules.util.numpy_support import numpy_to_vtk  # noqa: E402

RNG = np.random.default_rng(0)
SIZES = (4, 3, 2)  # points along x, y and z
GRID = np.stack(np.meshgrid(*map(np.arange, SIZES[::-1]), indexing="ij")[::-1], -1)
BOX = GRID.reshape(-1, 3).astype(float)  # numbered along x first
WRITERS = {
    "vtkUnstructuredGrid": ("vtu", "vtkXMLUnstructuredGridWriter"),
    "vtkPolyData": ("vtp", "vtkXMLPolyDataWriter"),
    "vtkStructuredGrid": ("vts", "vtkXMLStructuredGridWriter"),
    "vtkRectilinearGrid": ("vtr", "vtkXMLRectilinearGridWriter"),
    "vtkImageData": ("vti", "vtkXMLImageDataWriter"),
}


def with_arrays(data: Any, shift: float = 0, time: float | None = None) -> Any:
    """Add ``p`` and ``v`` at the points, ``q`` at the cells, and a time."""
    n, cells = data.GetNumberOfPoints(), data.GetNumberOfCells()
    wanted = [
        (data.GetPointData(), "p", np.arange(n) + shift),
        (data.GetPointData(), "v", np.arange(3.0 * n).reshape(-1, 3) + shift),
        (data.GetCellData(), "q", np.arange(cells) + shift),
    ]
    if time is not None:
        wanted.append((data.GetFieldData(), "TimeValue", np.array([time])))
    for where, name, values in wanted:
        array = numpy_to_vtk(values.astype(float), deep=True)
        array.SetName(name)
        where.AddArray(array)
    return data


def points(xyz: np.ndarray = BOX) -> Any:
    made = vtk.vtkPoints()
    made.SetData(numpy_to_vtk(xyz.astype(float), deep=True))
    return made


def unstructured(*cells: tuple[int, list[int]], xyz: np.ndarray = BOX) -> Any:
    grid = vtk.vtkUnstructuredGrid()
    grid.SetPoints(points(xyz))
    for kind, nodes in cells:
        ids = vtk.vtkIdList()
        for node in nodes:
            ids.InsertNextId(node)
        grid.InsertNextCell(kind, ids)
    return grid


def hexahedron(first: int, step: int = 1) -> list[int]:
    return [first + step * i for i in (0, 1, 5, 4, 12, 13, 17, 16)]


def polyhedron(first: int) -> list[int]:
    """A hexahedron by its faces, for ``InsertNextCell``."""
    c = hexahedron(first)
    sides = [(0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6)]
    sides.append((3, 0, 4, 7))
    return [6] + [node for side in sides for node in (4, *(c[i] for i in side))]


def surface(xyz: np.ndarray, *polygons: list[int]) -> Any:
    data, cells = vtk.vtkPolyData(), vtk.vtkCellArray()
    data.SetPoints(points(xyz))
    for polygon in polygons:
        cells.InsertNextCell(len(polygon), polygon)
    data.SetPolys(cells)
    return data


def image() -> Any:
    data = vtk.vtkImageData()
    data.SetDimensions(*SIZES)
    return data


def structured() -> Any:
    data = vtk.vtkStructuredGrid()
    data.SetDimensions(*SIZES)
    data.SetPoints(points())
    return data


def rectilinear() -> Any:
    data = vtk.vtkRectilinearGrid()
    data.SetDimensions(*SIZES)
    for axis, size in zip("XYZ", SIZES, strict=True):
        getattr(data, f"Set{axis}Coordinates")(numpy_to_vtk(np.arange(1.0 * size)))
    return data


def whole() -> Any:
    return unstructured((12, hexahedron(0)), (12, hexahedron(1)), (12, hexahedron(2)))


def save(data: Any, path: Path, mode: str = "appended", packed: str = "ZLib") -> Path:
    """Save as XML, or in the old format if the name ends like that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".vtk":
        writer = vtk.vtkDataSetWriter()
        writer.SetFileType(1 + (mode != "ascii"))
    else:
        writer = getattr(vtk, WRITERS[data.GetClassName()][1])()
        writer.SetDataMode({"ascii": 0, "binary": 1}.get(mode, 2))
        writer.SetEncodeAppendedData(mode != "raw")
        getattr(writer, f"SetCompressorTypeTo{packed}")()
    writer.SetInputData(data)
    writer.SetFileName(str(path))
    assert writer.Write()
    return path


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


def foam(folder: Path, steps: int = 2) -> Path:
    """The files of foamToVTK: a volume and its patches for each time, in a series."""
    files = []
    for k in range(steps):
        name, time = f"case_{k}", 0.5 * k
        volume = unstructured((12, hexahedron(0)), (42, polyhedron(1)))
        save(with_arrays(volume, k, time), folder / name / "internal.vtu")
        patch = surface(BOX[[0, 4, 16, 12]], [0, 1, 2, 3])
        blocks = ""
        for each in ("inlet", "walls"):
            save(with_arrays(patch, 9, time), folder / name / f"boundary/{each}.vtp")
            file = f"{name}/boundary/{each}.vtp"
            blocks += f"<DataSet name='{each}' file='{file}' />"
        (folder / f"{name}.vtm").write_text(
            "<?xml version='1.0'?>\n<VTKFile type='vtkMultiBlockDataSet' version='1.0'>"
            f"<vtkMultiBlockDataSet><DataSet name='internal' file='{name}/internal.vtu'"
            f" /><Block name='boundary'>{blocks}</Block></vtkMultiBlockDataSet>"
            "</VTKFile>"
        )
        files.append({"name": f"{name}.vtm", "time": time})
    about = {"file-series-version": "1.0", "files": files}
    (folder / "case.vtm.series").write_text(json.dumps(about, indent=2))
    return folder / "case.vtm.series"


@pytest.mark.parametrize("at", ["points", "cells"])
def test_openfoam(at, tmp_path, caplog, one_line, sent):
    path = foam(tmp_path / "VTK")
    assert "--at points, or --at cells" in one_line(nfsgeo.open, path)
    for fields in (opened := nfsgeo.open(path, at=at), sent(opened)):
        num = {"points": 24, "cells": 2}[at]
        expected = np.arange(num)[:, None] + np.arange(2.0)
        np.testing.assert_array_equal(fields.read(0, slice(None))[..., 0], expected)
        assert fields.times.tolist() == [0, 0.5]
    assert "boundary/inlet, boundary/walls" in caplog.text
    patch = nfsgeo.open(tmp_path / "VTK/case_1/boundary/walls.vtp", at="points")
    assert patch.num_points() == 4 and patch.times.tolist() == [0.5]


def test_openfoam_in_files_of_the_old_format_and_in_folders_of_time(tmp_path):
    for k in range(3):
        save(with_arrays(whole(), k, k / 4), tmp_path / f"VTK/case_{k * 50}.vtk")
        plane = with_arrays(surface(BOX[[0, 1, 5, 4]], [0, 1, 2, 3]), k, k / 4)
        save(plane, tmp_path / f"postProcessing/cut/{k / 4:g}/z.vtp")
    planes = sorted((tmp_path / "postProcessing/cut").glob("*/z.vtp"))
    for source in (tmp_path / "VTK", planes):
        fields = nfsgeo.open(source, series="time-steps", at="points")
        assert fields.times.tolist() == [0, 0.25, 0.5]
        assert fields.read(0, slice(None))[0, :, 0].tolist() == [0, 1, 2]


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


def ensight(path: Path, binary: bool = False) -> Path:
    """EnSight Gold in text or as C binary, as Fluent, STAR-CCM+ and CFX write it."""
    path.write_text(
        "FORMAT\ntype: ensight gold\n\nGEOMETRY\nmodel: flow.geo\n\nVARIABLE\n"
        "scalar per node: 1 p flow.p**\nvector per node: 1 v flow.v**\n\nTIME\n"
        "time set: 1\nnumber of steps: 2\nfilename start number: 0\n"
        "filename increment: 1\ntime values: 0.0 0.5\n"
    )

    def written(name: str, *content: Any) -> None:
        """Lines of text, rows of whole numbers, and arrays of numbers."""
        parts = list[bytes]()
        for each in content:
            if isinstance(each, str):
                parts.append(
                    each.encode().ljust(80) if binary else f"{each}\n".encode()
                )
            elif binary:
                values = np.ravel(each)
                parts.append(
                    values.astype("<i4" if values.dtype.kind == "i" else "<f4")
                )
            elif isinstance(each, list):
                row = "".join(f"{number:10d}" for number in each)
                parts.append(f"{row}\n".encode())
            else:
                lines = (f"{value:12.5e}\n" for value in np.ravel(each))
                parts.append("".join(lines).encode())
        (path.parent / name).write_bytes(b"".join(map(bytes, parts)))

    head = ["C Binary"] * binary + ["made", "here", "node id assign"]
    head += ["element id assign", "part", [1], "fluid", "coordinates", [8], BOX[:8].T]
    written("flow.geo", *head, "quad4", [2], [1, 2, 6, 5], [2, 3, 7, 6])
    for k in range(2):
        for name, num in (("p", 8), ("v", 24)):
            values = np.arange(float(num)) + k
            written(f"flow.{name}{k:02d}", name, "part", [1], "coordinates", values)
    return path


def ensight_binary(path: Path) -> Path:
    return ensight(path, binary=True)


def cgns(path: Path, polyhedra: bool = False) -> Path:
    """A file of CGNS on HDF5 with one zone, as Fluent and STAR-CCM+ write it: two
    quadrilaterals with values at points, or two cells by their faces with values in
    them.
    """

    def node(parent: Any, name: str, label: str, data: Any = None, form: str = "MT"):
        made = parent.create_group(name)
        for key, value, size in (
            ("name", name, 33),
            ("label", label, 33),
            ("type", form, 3),
        ):
            made.attrs.create(key, np.bytes_(value), dtype=f"S{size}")
        made.attrs["flags"] = np.array([1], "i4")
        if data is not None:
            made.create_dataset(" data", data=data)
        return made

    def letters(word: str) -> np.ndarray:
        return np.frombuffer(word.encode(), "i1")

    with h5py.File(path, "w") as file:
        for key, value, size in (("name", "HDF5 MotherNode", 33), ("type", "MT", 3)):
            file.attrs.create(key, np.bytes_(value), dtype=f"S{size}")
        file.attrs.create("label", np.bytes_("Root Node of HDF5 File"), dtype="S33")
        file[" format"] = letters("IEEE_LITTLE_32\0")
        file[" hdf5version"] = letters("HDF5 Version 1.10.0".ljust(33, "\0"))
        version = np.array([3.4], "f4")
        node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", version, "R4")
        dims = np.array([2 + polyhedra, 3], "i4")
        base = node(file, "Base", "CGNSBase_t", dims, "I4")
        num = 24 if polyhedra else 8
        sizes = np.array([[num], [2], [0]], "i4")
        zone = node(base, "Zone", "Zone_t", sizes, "I4")
        node(zone, "ZoneType", "ZoneType_t", letters("Unstructured"), "C1")
        grid = node(zone, "GridCoordinates", "GridCoordinates_t")
        for axis, values in zip("XYZ", BOX[:num].T, strict=True):
            node(grid, f"Coordinate{axis}", "DataArray_t", values, "R8")

        def elements(name: str, kind: int, first: int, rows: Any) -> Any:
            made = node(zone, name, "Elements_t", np.array([kind, 0], "i4"), "I4")
            ends = np.array([first, first + len(rows) - 1], "i4")
            node(made, "ElementRange", "IndexRange_t", ends, "I4")
            values = np.concatenate(rows).astype("i4")
            node(made, "ElementConnectivity", "DataArray_t", values, "I4")
            ends = np.cumsum([0, *map(len, rows)]).astype("i4")
            node(
                made, "ElementStartOffset", "DataArray_t", ends, "I4"
            ) if kind > 20 else 0

        if polyhedra:
            faces = list[list[int]]()
            cells: list[list[int]] = [[], []]
            for first, cell in enumerate(cells):
                ids = polyhedron(first)[1:]
                for face in (ids[k + 1 : k + 5] for k in range(0, 30, 5)):
                    there = [k for k, f in enumerate(faces) if {*f} == {*face}]
                    cell.append(-1 - there[0] if there else len(faces) + 1)
                    faces += [] if there else [face]
            elements("NGON_n", 22, 1, [np.add(face, 1) for face in faces])
            elements("NFACE_n", 23, len(faces) + 1, cells)
        else:
            elements("Quads", 7, 1, [[1, 2, 6, 5], [2, 3, 7, 6]])
        solution = node(zone, "Solution", "FlowSolution_t")
        place = letters("CellCenter" if polyhedra else "Vertex")
        node(solution, "GridLocation", "GridLocation_t", place, "C1")
        values = np.arange(2.0 if polyhedra else 8.0)
        node(solution, "p", "DataArray_t", values, "R8")
    return path


def test_cells_of_cgns_by_their_faces(tmp_path):
    fields = nfsgeo.open(cgns(tmp_path / "flow.cgns", polyhedra=True))
    assert fields.read(0, slice(None)).ravel().tolist() == [0, 1]
    assert fields.coordinates().ravel().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("write", [ensight, ensight_binary, cgns])
def test_ensight_and_cgns(write, tmp_path, sent, one_line):
    path = write(tmp_path / ("flow.cgns" if write is cgns else "flow.case"))
    for fields in (opened := nfsgeo.open(path), sent(opened)):
        values = fields.read(0, slice(None))[..., 0]
        expected = np.arange(8.0)[:, None] + np.arange(len(fields.times))
        np.testing.assert_array_equal(values, expected)
        assert len(fields.cells()["quad"]) == 2 and fields.num_points() == 8
    if write is not cgns:
        assert fields.times.tolist() == [0, 0.5]
        path.write_text(path.read_text().replace("flow.geo", "../flow.geo"))
        assert "beside it or below" in one_line(nfsgeo.open, path)


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


@pytest.mark.parametrize(
    ("ending", "form"), [("msh", "gmsh22"), ("msh", "gmsh"), ("med", "med")]
)
def test_gmsh_and_med(ending, form, tmp_path):
    cells = [("quad", np.array([[0, 1, 5, 4], [1, 2, 6, 5]]))]
    mesh = meshio.Mesh(BOX[:8], cells, {"p": np.arange(8.0)})
    mesh.write(path := tmp_path / f"a.{ending}", file_format=form)
    fields = nfsgeo.open(path)
    assert fields.read(0, slice(None)).ravel().tolist() == [*range(8)]
    assert fields.component_names == ["p"] and len(fields.cells()["quad"]) == 2


def test_dolfinx(tmp_path):
    """XDMF whose functions take their mesh from elsewhere in the file."""
    path = tmp_path / "u.xdmf"
    values = " ".join(map(str, range(8)))
    nodes = "0 1 5 1 2 6"
    xyz = " ".join(map(str, BOX[:8, :2].ravel()))
    mesh = "xpointer(/Xdmf/Domain/Grid[1]/*[self::Topology or self"
    steps = "".join(
        f"<Grid Name='u' GridType='Uniform'><xi:include xpointer='{mesh}::Geometry])'/>"
        f"<Time Value='{k / 2}'/><Attribute Name='u' AttributeType='Scalar' "
        "Center='Node'><DataItem Dimensions='8 1' Format='XML' Precision='8'>"
        f"{values}</DataItem></Attribute></Grid>"
        for k in range(2)
    )
    path.write_text(
        "<?xml version='1.0'?><Xdmf Version='3.0' "
        "xmlns:xi='https://www.w3.org/2001/XInclude'><Domain><Grid Name='mesh' "
        "GridType='Uniform'><Topology TopologyType='Triangle' NumberOfElements='2' "
        "NodesPerElement='3'><DataItem Dimensions='2 3' NumberType='Int' Format='XML'>"
        f"{nodes}</DataItem></Topology><Geometry GeometryType='XY'><DataItem "
        f"Dimensions='8 2' Format='XML'>{xyz}</DataItem></Geometry></Grid><Grid "
        f"Name='u' GridType='Collection' CollectionType='Temporal'>{steps}</Grid>"
        "</Domain></Xdmf>"
    )
    fields = nfsgeo.open(path)
    assert fields.times.tolist() == [0, 0.5] and fields.num_points() == 8


def named(data: Any, name: str, values: Any) -> Any:
    array = numpy_to_vtk(np.asarray(values), deep=True)
    array.SetName(name)
    data.GetPointData().AddArray(array)
    return data


def test_dolfinx_in_files_of_vtk(tmp_path):
    """A list of lists of pieces, of Lagrange cells."""
    entries = []
    for k in range(2):
        mesh = unstructured((69, [0, 1, 5]), (69, [0, 5, 4]), xyz=BOX[:8])
        save(named(mesh, "u", np.arange(8.0) + k), tmp_path / f"u_p0_{k:06d}.vtu")
        kind, piece = "PUnstructuredGrid", f"<Piece Source='u_p0_{k:06d}.vtu'/>"
        text = f"<VTKFile type='{kind}'><{kind}>{piece}</{kind}></VTKFile>"
        (tmp_path / f"u{k:06d}.pvtu").write_text(text)
        entries.append((k / 2, 0, f"u{k:06d}.pvtu"))
    fields = nfsgeo.open(pvd(tmp_path / "u.pvd", *entries))
    assert fields.times.tolist() == [0, 0.5] and len(fields.cells()["triangle"]) == 2
    assert fields.read(0, slice(None))[2].ravel().tolist() == [2, 3]


def test_deal_ii_where_each_cell_has_points_of_its_own(tmp_path, caplog):
    """A line tells of it, and the remedy that it names works."""
    values = np.array([0.0, 1, 5, 4, 1, 2, 6, 5])
    xyz = BOX[values.astype(int)]
    mesh = unstructured((9, [0, 1, 2, 3]), (9, [4, 5, 6, 7]), xyz=xyz)
    path = save(named(mesh, "u", values), tmp_path / "solution.vtu")
    assert nfsgeo.open(path).num_points() == 8
    assert "2 of 8 points are at places of others" in caplog.text
    clean = vtk.vtkStaticCleanUnstructuredGrid()
    clean.SetInputData(mesh)
    clean.Update()
    caplog.clear()
    fields = nfsgeo.open(save(clean.GetOutput(), tmp_path / "clean/solution.vtu"))
    assert fields.num_points() == 6 and not caplog.messages
    found = fields.read(0, slice(None)).ravel()
    np.testing.assert_array_equal(fields.coordinates() @ [1, 4], found)


def test_times_in_names_of_comsol(tmp_path, one_line):
    mesh = whole()
    for k in range(3):
        for name in ("T_@_t=", "p @ t="):
            named(mesh, f"{name}{k / 2:g}", np.arange(24.0) + k)
    path = save(mesh, tmp_path / "a.vtu", "ascii")
    fields = nfsgeo.open(path)
    assert fields.component_names == ["T", "p"] and fields.times.tolist() == [0, 0.5, 1]
    assert fields.read(0, slice(None))[4].tolist() == [[4, 4], [5, 5], [6, 6]]
    save(named(mesh, "a_k", np.arange(24.0)), path)
    assert nfsgeo.open(path).static_names == ["k"]
    save(named(mesh, "q", np.arange(24.0)), path)
    assert "q at other times" in one_line(nfsgeo.open, path)


@pytest.mark.parametrize("name", ["vtkOriginalPointIds", "GlobalNodeId", "PedigreeIds"])
def test_numbers_of_points_are_no_fields(name, tmp_path, caplog):
    path = save(named(with_arrays(whole()), name, np.arange(24)), tmp_path / "a.vtu")
    names = nfsgeo.open(path, at="points").component_names
    assert names == ["p", "v_0", "v_1", "v_2"] and name in caplog.text
    chosen = nfsgeo.open(path, at="points", columns={"field": name})
    assert chosen.component_names == [name]


def test_calculix(tmp_path):
    """Nodes and stresses of six components with names, by ccx2paraview."""
    mesh = named(whole(), "S", np.arange(144.0).reshape(24, 6))
    for k, name in enumerate(("xx", "yy", "zz", "xy", "yz", "zx")):
        mesh.GetPointData().GetArray(0).SetComponentName(k, name)
    fields = nfsgeo.open(save(mesh, tmp_path / "job.01.vtu"))
    assert fields.component_names == [f"S_{k}" for k in range(6)]
    assert fields.read(0, slice(None))[1, 0].tolist() == [6, 7, 8, 9, 10, 11]


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


NODES, BOTH = [*range(1, 10)], [1, 2]


def gmsh(
    path: Path, *views: tuple[str, str, float, list[int]], new: bool = False
) -> Path:
    """Nine nodes, two triangles and a line, with values 10 times the tag, plus time."""
    x, y = (axis.ravel() for axis in np.meshgrid(range(3), range(3)))
    nodes = [f"{i + 1} {x[i]} {y[i]} 0" for i in range(9)]
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", "9", *nodes]
    lines += ["$EndNodes", "$Elements", "3", "1 2 2 0 0 1 2 4", "2 2 2 0 0 2 5 4"]
    lines += ["3 1 2 0 0 1 2", "$EndElements"]
    if new:  # format 4.1, nodes of two entities, not in order
        lines = ["$MeshFormat", "4.1 0 8", "$EndMeshFormat", "$Nodes", "2 9 1 9"]
        for dim, tags in ((1, range(5, 10)), (2, range(1, 5))):
            lines += [f"{dim} 1 0 {len(tags)}", *map(str, tags)]
            lines += [nodes[tag - 1].partition(" ")[2] for tag in tags]
        lines += ["$EndNodes", "$Elements", "2 3 1 3", "2 1 2 2", "1 1 2 4", "2 2 5 4"]
        lines += ["1 1 1 1", "3 1 2", "$EndElements"]
    for kind, name, time, tags in views:
        lines += [f"${kind}Data", "1", f'"{name}"', "1", str(time), "3", "0", "1"]
        rows = [f"{tag} {10 * tag + time!r}" for tag in tags]
        lines += [str(len(tags)), *rows, f"$End{kind}Data"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("new", [False, True])
def test_views_of_gmsh(new, tmp_path, caplog):
    views = [("Node", "u", t, NODES[:: 1 - 2 * (t > 0)]) for t in (0, 0.5)]
    views += [("Element", "q", t, BOTH[:: 1 - 2 * (t > 0)]) for t in (0, 0.5)]
    path = gmsh(tmp_path / "a.msh", *views, new=new)
    fields = nfsgeo.open(path, at="points")
    assert fields.times.tolist() == [0, 0.5] and len(fields.cells()["triangle"]) == 2
    tags = 1 + fields.coordinates() @ [1, 3]
    expected = np.column_stack([10 * tags, 10 * tags + 0.5])
    np.testing.assert_array_equal(fields.read(0, slice(None))[..., 0], expected)
    fields = nfsgeo.open(path, at="cells")  # without the line, which has no value
    assert fields.read(0, slice(None))[..., 0].tolist() == [[10, 10.5], [20, 20.5]]
    assert "1 cells without values" in caplog.text
    one = nfsgeo.open(gmsh(tmp_path / "b.msh", ("Node", "u", 2.5, NODES[:4]), new=new))
    assert one.times.tolist() == [2.5]
    assert np.isnan(one.read(0, slice(None))).sum() == 5


@pytest.mark.parametrize(
    ("views", "words"),
    [
        ([("u", 0, NODES), ("u", 0, NODES)], "several arrays called u"),
        ([("u", 0, NODES), ("v", 1, NODES)], "fields at several times"),
        ([("u", 0, [*range(2, 11)])], "that do not exist"),
        ([("u", 0, [1, 2, 2])], "or twice"),
    ],
)
def test_what_no_field_can_be_of_gmsh_is_refused(views, words, tmp_path, one_line):
    path = gmsh(tmp_path / "a.msh", *(("Node", *view) for view in views))
    assert words in one_line(nfsgeo.open, path)


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


def pvd(path: Path, *entries: tuple[float, int, str]) -> Path:
    lines = (f"<DataSet timestep='{t}' part='{p}' file='{f}'/>" for t, p, f in entries)
    path.write_text(f"<VTKFile type='Collection'>{''.join(lines)}</VTKFile>")
    return path


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


@pytest.mark.parametrize("name", ["TimeValue", "TIME", "time"])
def test_field_data_tell_the_time(name, tmp_path):
    path = tmp_path / "a.vtk"
    path.write_text(
        "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\n"
        f"FIELD FieldData 1\n{name} 1 1 double\n2.5\nPOINTS 3 double\n"
        "0 0 0\n1 0 0\n0 1 0\nPOINT_DATA 3\nSCALARS u double 1\n"
        "LOOKUP_TABLE default\n1\n2\n3\n"
    )
    assert nfsgeo.open(path).times.tolist() == [2.5]
