"""Files of programs that are no fields on points, which are refused with a remedy."""

import shlex

import numpy as np
import pytest
import xarray

import nfsgeo

RANDOM = np.random.default_rng(0)
NORTH = {"units": "degree_north", "axis": "Y"}
EAST = {"units": "degree_east", "axis": "X"}


def argo():
    """Profiles, each at a time and a place of its own."""
    dims = ["N_PROF", "N_LEVELS"]
    about = {"units": "days since 1950-01-01 00:00:00 UTC", "standard_name": "time"}
    return xarray.Dataset(
        {
            "JULD": ("N_PROF", np.arange(6) * 10.0, about | {"axis": "T"}),
            "LATITUDE": ("N_PROF", RANDOM.random(6), NORTH),
            "LONGITUDE": ("N_PROF", RANDOM.random(6), EAST),
            "PRES": (dims, RANDOM.random((6, 4)), {"axis": "Z"}),
            "TEMP": (dims, RANDOM.random((6, 4))),
            "TEMP_QC": (dims, np.full((6, 4), b"1", "S1")),
        }
    )


def tabledap():
    """A table in NetCDF: all along one dimension."""
    time = {"units": "seconds since 1970-01-01T00:00:00Z", "axis": "T"}
    return xarray.Dataset(
        {
            "station": ("row", np.repeat(["a1", "b2"], 3).astype("S2")),
            "time": ("row", np.tile(np.arange(3) * 3600.0, 2), time),
            "latitude": ("row", np.repeat([1.0, 2.0], 3), {"units": "degrees_north"}),
            "longitude": ("row", np.repeat([4.0, 5.0], 3), {"units": "degrees_east"}),
            "wtmp": ("row", RANDOM.random(6)),
        }
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [(argo, "profiles or trajectories"), (tabledap, "to_dataframe().to_csv()")],
)
def test_programs_that_are_refused(program, words, tmp_path, one_line):
    program().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert words in one_line(nfsgeo.open, tmp_path / "a.nc")
    xarray.open_dataset(tmp_path / "a.nc", decode_times=False)
    table = xarray.open_dataset(tmp_path / "a.nc")
    if program is tabledap:  # the remedy
        table.to_dataframe().to_csv(tmp_path / "a.csv", index=False)
        fields = nfsgeo.open(tmp_path / "a.csv")
        assert fields.component_names == ["wtmp"] and len(fields.times) == 3


@pytest.mark.parametrize(
    ("name", "text", "called"),
    [
        (
            "a.dat",
            '# mesh\nTITLE = "a"\nVARIABLES = "X" "P"\nZONE I=1\n1 2\n',
            "Tecplot",
        ),
        ("b.plt", 'Variables="X","P"\n1 2\n', "Tecplot"),
        ("c.plt", "#!TDV112\x01\x00\x00\x00", "Tecplot"),
        ("d.msh", '(0 "GAMBIT to Fluent File")\n(2 2)\n', "Fluent"),
        ("e.ply", "ply\nformat ascii 1.0\nend_header\n", "PLY"),
    ],
)
def test_files_that_paraview_converts(name, text, called, tmp_path, one_line):
    (tmp_path / name).write_text(text)
    message = one_line(nfsgeo.open, tmp_path / name)
    assert called in message and "ParaView" in message


def test_comments_of_any_length_are_looked_at_in_no_time(tmp_path):
    (tmp_path / "a.txt").write_text("# " * 400_000 + "\nx y u\n1 2 3\n")
    with nfsgeo.open(tmp_path / "a.txt") as fields:
        assert fields.component_names == ["u"]


SURFACES = {
    "a.stl": "solid cube\n facet normal 0 0 1\n  outer loop\n   vertex 0 0 0\n",
    "b.obj": "# Blender\nmtllib a.mtl\no Cube\nv 1 1 -1\nv 1 -1 -1\nv 0 0 1\nf 1 2 3\n",
    "c.off": "OFF\n# made by hand\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
}
OTHERS = {
    "a.step": "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nENDSEC;\n",
    "a.inp": "** made by hand\n*Heading\n*Node\n1, 0.0, 0.0\n2, 1.0, 0.0\n",
    "a.bdf": "$ made by hand\nBEGIN BULK\nGRID,1,,0.0,0.0,0.0\n",
    "a.mesh": "MeshVersionFormatted 1\nDimension\n3\nVertices\n1\n0 0 0 1\n",
    "a.su2": "% made by hand\nNDIME= 2\nNELEM= 0\n",
}


@pytest.mark.parametrize(
    "name", ["a b.stl", "binary.stl", "d.obj", "d.off", *SURFACES, *OTHERS]
)
def test_meshes_without_fields_are_named(name, tmp_path, one_line):
    """Surfaces may be the boundary of other data, and the remedy says how."""
    path = tmp_path / name
    if text := {**SURFACES, **OTHERS}.get(name):
        path.write_text(text)
    else:
        meshio, corners = pytest.importorskip("meshio"), RANDOM.random((6, 3))
        mesh = meshio.Mesh(corners, [("triangle", np.arange(6).reshape(2, 3))])
        mesh.write(path, **({"binary": True} if name == "binary.stl" else {}))
    text = one_line(nfsgeo.open, path)
    assert "expected values at its points; " in text
    boundary = f"--obstacles {shlex.quote(str(path))}, or --region"
    todo = "export the fields of the solver" if name in OTHERS else boundary
    assert todo in text and ("surface of" in text) == (name not in OTHERS)


@pytest.mark.parametrize("name", ["solid", "v", "OFF", "grid", "o"])
@pytest.mark.parametrize("cut", [",", " "])
def test_tables_whose_names_begin_as_meshes_do(name, cut, tmp_path):
    rows = [cut.join(map(str, [k * k, k, k + 0.5])) for k in range(4)]
    (tmp_path / "a.txt").write_text("\n".join([cut.join([name, "x", "u"]), *rows, ""]))
    assert nfsgeo.open(tmp_path / "a.txt").component_names == [name, "u"]
