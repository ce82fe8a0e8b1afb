"""Meshes of the VTK library, which tests write as files."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

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


def named(data: Any, name: str, values: Any) -> Any:
    array = numpy_to_vtk(np.asarray(values), deep=True)
    array.SetName(name)
    data.GetPointData().AddArray(array)
    return data


def pvd(path: Path, *entries: tuple[float, int, str]) -> Path:
    lines = (f"<DataSet timestep='{t}' part='{p}' file='{f}'/>" for t, p, f in entries)
    path.write_text(f"<VTKFile type='Collection'>{''.join(lines)}</VTKFile>")
    return path
