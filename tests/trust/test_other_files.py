"""Files from strangers: no file but those beside them is read, and none elsewhere made.

A value in the file outside, 4242, would show that it was read.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo.files import safe_name
from nfsgeo.training import RunPaths
from nfsgeo_benchmarks.suites import read_suite, runs_of
from nfsgeo_benchmarks.suites.data import DataFiles
from nfsgeo_benchmarks.suites.suite import read_scales

SECRET = 4242.0
TRIANGLE = """<VTKFile type="UnstructuredGrid"><UnstructuredGrid>
<Piece NumberOfPoints="3" NumberOfCells="1"><PointData>
<DataArray type="Float64" Name="u" format="ascii">{0} {0} 2</DataArray></PointData>
<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">
0 0 0 1 0 0 0 1 0</DataArray></Points><Cells>
<DataArray type="Int64" Name="connectivity" format="ascii">0 1 2</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">3</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">5</DataArray>
</Cells></Piece></UnstructuredGrid></VTKFile>"""
PVD = '<VTKFile type="Collection"><Collection><DataSet timestep="0" file="{}"/>'
PVD += "</Collection></VTKFile>"
VTM = '<VTKFile type="vtkMultiBlockDataSet"><vtkMultiBlockDataSet>'
VTM += '<DataSet index="0" file="{}"/></vtkMultiBlockDataSet></VTKFile>'
PVTU = '<VTKFile type="PUnstructuredGrid"><PUnstructuredGrid><Piece Source="{}"/>'
PVTU += "</PUnstructuredGrid></VTKFile>"
SERIES = '{{"file-series-version": "1.0", "files": [{{"name": "{}", "time": 0}}]}}'
ITEM = '<DataItem Dimensions="{}" NumberType="{}" Precision="8" Format="{}">{}'
ITEM += "</DataItem>"
XDMF = '<Xdmf Version="3.0"><Domain><Grid><Topology TopologyType="Triangle">'
XDMF += ITEM.format("1 3", "Int", "XML", "0 1 2") + "</Topology>"
PLACES = ITEM.format("3 2", "Float", "XML", "0 0 1 0 0 1")
XDMF += f'<Geometry GeometryType="XY">{PLACES}</Geometry><Attribute Name="u" '
XDMF += 'Center="Node">' + ITEM.format("3", "Float", "HDF", "{}:/u")
XDMF += "</Attribute></Grid></Domain></Xdmf>"
CASE = """FORMAT
type: ensight gold
GEOMETRY
model: {}
"""
LISTS = {"pvd": PVD, "vtm": VTM, "pvtu": PVTU, "vtu.series": SERIES, "case": CASE}
SLOW = [name for name in LISTS if name != "vtm"]  # once is enough


def array(path: Path, value: float) -> Path:
    with h5py.File(path, "w") as file:
        file["u"] = np.array([value, value, 2.0])
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with files that no data file beside it may read."""
    (folder := tmp_path / "outside").mkdir()
    (folder / "a.vtu").write_text(TRIANGLE.format(SECRET))
    array(folder / "a.h5", SECRET)
    np.full(3, SECRET).tofile(folder / "a.bin")
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a stranger's data; commands run in another one."""
    for name in ("data", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "data"


def virtual(file: h5py.File, name: str, *sources: str, kind: Any = float) -> None:
    layout = h5py.VirtualLayout((len(sources), 3), kind)
    for number, source in enumerate(sources):
        layout[number] = h5py.VirtualSource(source, "u", (3,))
    file.create_virtual_dataset(name, layout)


def linked(file: h5py.File, name: str) -> None:
    file["group/far"] = h5py.ExternalLink(name, "/")
    file["u"] = h5py.SoftLink("/group/far/u")


NEEDS: dict[str, Callable[[h5py.File, str], Any]] = {
    "external link": lambda file, name: linked(file, name),
    "virtual dataset": lambda file, name: virtual(file, "u", name),
    "external storage": lambda file, name: file.create_dataset(
        "u", (3,), float, external=[(name.replace(".h5", ".bin"), 0, 24)]
    ),
}


@pytest.mark.parametrize("where", ["absolute", "above", "link", "link in part", "here"])
@pytest.mark.parametrize("need", NEEDS)
def test_hdf5_that_needs_files_elsewhere(need, where, data, outside, one_line):
    path, names = data / "x.nc", {"absolute": f"{outside}/a.h5"}
    names["above"] = "../outside/a.h5"
    if where == "link":
        for name in ("a.h5", "a.bin"):
            (data / name).symlink_to(outside / name)
    elif where == "here":  # HDF5 looks in the current folder
        for name in ("a.h5", "a.bin"):
            Path(name).symlink_to(outside / name)
    elif where == "link in part":
        with h5py.File(data / "a.h5", "w") as file:
            NEEDS[need](file, f"{outside}/a.h5")
    name = names.get(where, "a.h5")
    with h5py.File(path, "w") as file:
        kind = "external link" if where == "link in part" else need
        NEEDS[kind](file, name)
    line = one_line(nfsgeo.open, path)
    assert "a.h5" in line or "a.bin" in line
    # MATLAB 7.3 is HDF5 below 512 bytes of text.
    matlab = data / "x.mat"
    with h5py.File(matlab, "w", userblock_size=512) as file:
        NEEDS[kind](file, name)
    with matlab.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(512))
    assert one_line(nfsgeo.open, matlab)


@pytest.mark.parametrize("name", ["p%b.h5", "q%%.h5"])
def test_patterns_in_names_of_virtual_datasets(name, data, outside, one_line):
    """HDF5 replaces them by numbers and by a percent sign."""
    for part in ("p0.h5", "q%.h5"):
        (data / part).symlink_to(outside / "a.h5")
    with h5py.File(data / "x.nc", "w") as file:
        if "%%" in name:
            virtual(file, "u", name)
        else:
            plan, many = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5s.UNLIMITED
            space = h5py.h5s.create_simple((3, 3), (many, 3))
            space.select_hyperslab((0, 0), (many, 1), (1, 1), (1, 3))
            part = h5py.h5s.create_simple((1, 3))
            plan.set_virtual(space, name.encode(), b"u", part)
            space = h5py.h5s.create_simple((3, 3), (many, 3))
            h5py.h5d.create(file.id, b"u", h5py.h5t.IEEE_F64LE, space, plan)
    assert name in one_line(nfsgeo.open, data / "x.nc")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_virtual_datasets_that_lead_back(length, data, one_line):
    paths = [data / f"{number}.h5" for number in range(length)]
    for path, after in zip(paths, [*paths[1:], paths[0]], strict=True):
        with h5py.File(path, "w") as file:
            virtual(file, "u", "." if length == 1 else after.name)
    assert "back to itself" in one_line(nfsgeo.open, paths[0])


@pytest.mark.parametrize("name", ["1", "2.e", "-.5"])
def test_names_of_ensight_that_look_like_numbers(name, data, outside, one_line):
    (data / name).symlink_to(outside / "a.vtu")
    (data / "x.case").write_text(CASE.format(name))
    assert name in one_line(nfsgeo.open, data / "x.case")


def test_virtual_datasets_of_files_beside(data, one_line):
    u = np.arange(12.0).reshape(4, 3)
    for number in (0, 1, 3):
        array(data / f"{number}.h5", float(number))
    with h5py.File(data / "all.nc", "w") as file:
        file["x"], file["time"] = np.arange(3.0), np.arange(4.0)
        virtual(file, "u", *(f"{number}.h5" for number in range(4)))
        for dim, name in enumerate(("time", "x")):
            file[name].make_scale(name)
            file["u"].dims[dim].attach_scale(file[name])
    u = nfsgeo.open(data / "all.nc").read(0, slice(None))[..., 0].T
    assert u[:, 0].tolist()[:2] == [0, 1] and np.isnan(u[2]).all() and u[3, 0] == 3
    with h5py.File(data / "all.nc", "a") as file:
        virtual(file, "flag", "0.h5", "2.h5", kind=int)
    np.savez(data / "other.npz", u=u)
    columns = {"field": "u:tx", "x": "x", "time": "time"}
    with h5py.File(data / "all.h5", "w") as file:
        file["x"], file["time"] = np.arange(3.0), np.arange(4.0)
        virtual(file, "u", *(f"{number}.h5" for number in range(4)))
    again = nfsgeo.open(data / "all.h5", columns=columns).read(0, slice(None))
    np.testing.assert_array_equal(again[..., 0].T, u)


@pytest.mark.parametrize(
    "name", ["vtm", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)]
)
def test_lists_of_files_elsewhere(name, data, outside, one_line):
    pytest.importorskip("vtk")
    (data / "link.vtu").symlink_to(outside / "a.vtu")
    (data / "down").symlink_to(outside)
    os.mkfifo(data / "pipe.vtu")
    names = [f"{outside}/a.vtu", "../outside/a.vtu", "link.vtu", "down/a.vtu"]
    quoted = ['"../outside/a.vtu"', "lin*.vtu", "/dev/zero", "pipe.vtu"]
    for listed in (*names, *quoted[2 * (name != "case") :]):
        path = data / f"x.{name}"
        path.write_text(LISTS[name].format(listed))
        line = one_line(nfsgeo.open, path)
        assert str(path) in line and listed.strip('"').rpartition("*")[2] in line
    if name != "case":
        (data / "b.vtu").write_text(TRIANGLE.format(7))
        path.write_text(LISTS[name].format("b.vtu"))
        assert nfsgeo.open(path).read(0, slice(None)).ravel().tolist() == [7, 7, 2]
        # A link to the data that the user names is another name for them.
        link = data.parent / "work" / path.name
        link.symlink_to(path)
        assert nfsgeo.open(link).read(0, slice(None)).ravel().tolist() == [7, 7, 2]


@pytest.mark.parametrize(
    "place", ["absolute", "../outside/a.h5", "link.h5", "far.h5", "http://h/a.h5"]
)
def test_xdmf(place, data, outside, one_line):
    pytest.importorskip("meshio")
    path, name = data / "x.xdmf", f"{outside}/a.h5" if place == "absolute" else place
    (data / "link.h5").symlink_to(outside / "a.h5")
    with h5py.File(data / "far.h5", "w") as file:
        file["u"] = h5py.ExternalLink(str(outside / "a.h5"), "u")
    path.write_text(XDMF.format(name))
    assert one_line(nfsgeo.open, path)
    array(data / "near.h5", 7)
    path.write_text(XDMF.format("near.h5"))
    assert nfsgeo.open(path).read(0, slice(None)).ravel().tolist() == [7, 7, 2]


@pytest.mark.parametrize("name", ["x.pvd", "x.vtu", "x.xdmf", "x.vtm"])
def test_entities_of_xml(name, data, outside, one_line):
    (outside / "a.txt").write_text("4242")
    texts = {".pvd": PVD, ".vtu": TRIANGLE, ".xdmf": XDMF, ".vtm": VTM}
    for entity in (f'SYSTEM "file://{outside}/a.txt"', '"lol"'):
        declared = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 {entity}>'
        for k in range(40):  # 2 ** 40 of them
            declared += f'<!ENTITY e{k + 1} "&e{k};&e{k};">'
        for used in ("&e0;", "&e40;"):
            text = texts[Path(name).suffix].format(used)
            (data / name).write_text(f"{declared}]>{text}")
            assert "4242" not in one_line(nfsgeo.open, data / name)


def test_links_in_stores_and_folders(data, outside, one_line):
    pytest.importorskip("zarr")
    u = xarray.DataArray(np.ones((4, 3)), dims=("time", "x"), name="u")
    places = {"time": np.arange(4.0), "x": np.arange(3.0)}
    u.assign_coords(places).to_zarr(data / "x.zarr", zarr_format=2)
    assert nfsgeo.open(data / "x.zarr").read(0, slice(None)).ravel()[0] == 1
    (chunk,) = (data / "x.zarr/u").glob("0*0")
    content = chunk.read_bytes()
    chunk.unlink()
    chunk.symlink_to(outside / "a.bin")
    assert str(chunk) in one_line(nfsgeo.open, data / "x.zarr")
    chunk.unlink()
    os.mkfifo(chunk)
    assert str(chunk) in one_line(nfsgeo.open, data / "x.zarr")
    chunk.unlink()
    (data / "x.zarr/kept").write_bytes(content)
    chunk.symlink_to("../kept")
    assert nfsgeo.open(data / "x.zarr").read(0, slice(None)).ravel()[0] == 1
    (folder := data / "tables").mkdir()
    (outside / "2.csv").write_text("time,x,u\n1,0,4242\n1,1,4242\n")
    (folder / "1.csv").write_text("time,x,u\n0,0,1\n0,1,1\n")
    (folder / "2.csv").symlink_to(outside / "2.csv")
    os.mkfifo(folder / "3.csv")
    assert "2.csv" in one_line(nfsgeo.open, folder, series="time-steps")
    # Names on the command line are those of the user.
    both = [folder / "1.csv", folder / "2.csv"]
    assert len(nfsgeo.open(both, series="time-steps").times) == 2


NAMES = [
    "../../x",
    "/abs",
    "..",
    ".",
    "",
    "a" * 400,
    "a\0b",
    "a/b\\c",
    "CON",
    "nul.txt",
]
NAMES += ["ü" * 200, "a\u202eb", "C:\\x", "a\nb", " ", "\ud800", "-", "x."]


def test_names_of_data_in_paths():
    made = [safe_name(name) for name in NAMES]
    assert len({*made}) == len(NAMES)
    for name in made:
        assert Path(name).name == name and len(os.fsencode(name)) <= 100
        assert name.isprintable() and not {*'/\\<>:"|?*'} & {*name}
        assert name.partition(".")[0].upper() not in ("CON", "NUL")
        assert safe_name(name) == name or name.startswith("-")
    for plain in ("navier-stokes", "nfs@wide=2", "heat, r=64", "Wärme"):
        assert safe_name(plain) == plain


@pytest.mark.parametrize("name", NAMES)
def test_run_folders_are_below_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        run = RunPaths.new(None, f"nfs-{name}")
        assert run.root.parent == Path("runs") and run.root.name.endswith(f"-{number}")
    assert [each.name for each in tmp_path.iterdir()] == ["runs"]


SUITE = """
title: A suite from elsewhere
problems:
  {problem}: {{data: d, at: {{tiny: {{}}}}}}
variants: {{{variant}: {{model.name: nfs}}}}
"""
SCALES = "tiny: {title: Tiny, data: {d: {equation: heat, samples: 3}}}"


@pytest.mark.parametrize("name", ["../../x", "/abs", "..", "", "a/../../../b", "CON"])
def test_names_in_suites_stay_below_the_folder_of_runs(name, tmp_path, monkeypatch):
    (tmp_path / "suite.yaml").write_text(
        SUITE.format(problem=json.dumps(name), variant=json.dumps(f"v{name}"))
    )
    (tmp_path / "scales.yaml").write_text(SCALES)
    scales = read_scales(tmp_path / "scales.yaml")
    monkeypatch.setattr("nfsgeo_benchmarks.suites.runs.shipped_scales", lambda: scales)
    for run in runs_of(read_suite(tmp_path / "suite.yaml"), "tiny"):
        folder = Path("out/runs") / run.name
        assert folder.parent == Path("out/runs") and ".." not in folder.parts


FILES_OF_SUITES = [
    {"files": ["../outside/a.h5"]},
    {"files": ["/etc/passwd"]},
    {"files": ["link.h5"]},
    {"files": ["b.h5"], "test_file": "../outside/a.h5"},
    {"files": ["b.h5"], "test_file": "link.h5"},
    {"files": ["b.h5"], "columns": {"points": "/etc/passwd"}},
    {"files": ["b.h5"], "settings": {"data.test_file": "/etc/passwd"}},
    {"files": ["b.h5"], "at": {"tiny": {"data": {"test_file": "/etc/passwd"}}}},
    {"files": ["b.h5"], "settings": {"data.graph": "/etc/passwd"}},
    {"files": ["b.h5"], "settings": {"model.start_from": "/home/other/run"}},
    {"files": ["b.h5"], "settings": {"model": {"start_from": "/home/other/run"}}},
]


@pytest.mark.parametrize("problem", FILES_OF_SUITES, ids=str)
def test_files_that_suites_name(problem, data, outside, one_line):
    (data / "link.h5").symlink_to(outside / "a.h5")
    array(data / "b.h5", 7)
    problem = {"at": {"tiny": {}}} | problem
    suite = {"title": "x", "problems": {"p": problem}, "variants": {"nfs": {}}}
    Path("suite.yaml").write_text(json.dumps(suite))

    def read() -> None:
        content = read_suite(Path("suite.yaml")).problems["p"]
        names = content.model_dump(include={"files", "columns", "test_file"})
        files = DataFiles(**names, folder=data)
        files.absent()
        files.obtain()

    assert one_line(read)
