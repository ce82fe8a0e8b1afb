"""Meshes in a plane of space, whole metres of UTM, and units of axes."""

from __future__ import annotations

import meshio
import numpy as np
import pytest

import nfsgeo

PLACES = np.random.default_rng(1).random((9, 2))


@pytest.mark.parametrize("ending", ["vtu", "csv", "pvd"])
@pytest.mark.parametrize("flat", [0, 1, 2])
@pytest.mark.parametrize("offset", [0.0, 7.5])
def test_a_plane_of_a_mesh_is_written_where_it_was(tmp_path, ending, flat, offset):
    points = np.insert(PLACES, flat, offset, axis=1)
    cells = [("vertex", np.arange(len(points))[:, None])]
    meshio.Mesh(points, cells, point_data={"T": PLACES[:, 0]}).write(tmp_path / "a.vtu")
    with nfsgeo.open(tmp_path / "a.vtu") as fields:
        assert fields.space == ("x", "y")
        fields.write(tmp_path / "own.nc")
        with nfsgeo.open(tmp_path / "own.nc") as own:
            for number, each in enumerate([fields, own]):
                folder = tmp_path / str(number)
                folder.mkdir()
                out = each.write(folder / f"b.{ending}")
                found = read_points(out)
                order = np.lexsort(found.T), np.lexsort(points.T)
                np.testing.assert_allclose(found[order[0]], points[order[1]])


def read_points(path):
    if path.suffix == ".csv":
        table = np.genfromtxt(path, delimiter=",", names=True)
        found = np.stack([table[a] for a in "xyz" if a in table.dtype.names], 1)
    else:
        path = path if path.suffix == ".vtu" else next(path.parent.rglob("*.vtu"))
        found = meshio.read(path).points
    if found.shape[1] == 2:  # z = 0 is not told
        found = np.insert(found, 2, 0.0, axis=1)
    return found


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("length", [6, 500])
def test_whole_metres_far_from_the_origin_keep_their_axes(tmp_path, width, length):
    rows = [
        f"{t},{500_000 + i},{5_000_000 + j},{np.sin(i + j + t):.3f}"
        for t in range(3)
        for i in range(length)
        for j in range(width + 1)
    ]
    path = tmp_path / "utm.csv"
    path.write_text("\n".join(["time,x,y,u", *rows]))
    with nfsgeo.open(path) as fields:
        np.testing.assert_array_equal(
            np.ptp(fields.extent, axis=0), [length - 1, width]
        )


@pytest.mark.parametrize(
    ("head", "units"),
    [
        (
            "t [h],x [mm],y [mm],u [m/s]",
            {"time": "h", "x": "mm", "y": "mm", "u": "m/s"},
        ),
        ("t (s),x (m),y (m),u", dict(time="s", x="m", y="m")),
        ("t (model),x (local),y (local),u", {}),
    ],
)
def test_units_of_axes_in_tables(tmp_path, head, units):
    rows = [f"{t},{x},{y},{x + t}" for t in range(4) for x, y in PLACES.round(4)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([head, *rows]))
    with nfsgeo.open(path) as fields:
        assert fields.units == units


def test_axes_in_different_lengths_are_refused(tmp_path, refuses):
    rows = [f"{t},{x},{y},{x + t}" for t in range(4) for x, y in PLACES.round(4)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["t,x [mm],y [m],u", *rows]))
    refuses("x in mm and y in m", nfsgeo.open, path)


def test_one_length_may_have_several_names(tmp_path):
    rows = [f"{t},{x},{y},{x + t}" for t in range(4) for x, y in PLACES.round(4)]
    for number, pair in enumerate(
        [("mm", "millimetres"), ("um", "µm"), ("meter", "m")]
    ):
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(["t,x [{}],y [{}],u".format(*pair), *rows]))
        with nfsgeo.open(path) as fields:
            assert fields.units == {"x": pair[0], "y": pair[1]}
