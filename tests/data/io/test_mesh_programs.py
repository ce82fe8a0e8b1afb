"""Meshes as programs of the field write them, made here with the layout of each."""

import json
from pathlib import Path

import numpy as np
import pytest
from vtk_meshes import (
    BOX,
    cgns,
    ensight,
    ensight_binary,
    hexahedron,
    named,
    polyhedron,
    pvd,
    save,
    surface,
    unstructured,
    whole,
    with_arrays,
)

import nfsgeo

meshio = pytest.importorskip("meshio")
vtk = pytest.importorskip("vtk")


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
