"""Names of coordinates that messages suggest: followed, the points are those meant."""

import shlex

import click
import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo_cli.terminal import COLUMNS

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.random((5, 3)).round(3)


def told(message):
    said = shlex.split(message.partition("--columns ")[2])[0].rstrip(",")
    return COLUMNS.convert(said, click.Option(["--columns"]), None)


@pytest.mark.parametrize(
    "names",
    [
        ("Points:0", "Points:1", "Points:2"),
        ("Points_0", "Points_1", "Points_2"),
        ("coords_0", "coords_1", "coords_2"),
        ("x-coordinate", "y-coordinate", "z-coordinate"),
        ("X_UTM", "Y_UTM", "Z_UTM"),
        ("cell lon", "cell lat"),
        ("TLONG", "TLAT"),
        ("geolon_c", "geolat_c"),
    ],
)
@pytest.mark.parametrize("times", [0, 3])
def test_columns_of_programs(names, times, tmp_path, one_line):
    rows = [
        ",".join(map(str, [k] * (times > 0) + [k + i, 7.5, *row[: len(names)]]))
        for k in range(times or 1)
        for i, row in enumerate(POINTS)
    ]
    head = ",".join(["Time"] * (times > 0) + ["U:0", "U:1", *names])
    (tmp_path / "a.csv").write_text("\n".join([head, *rows]) + "\n")
    columns = told(one_line(nfsgeo.open, tmp_path / "a.csv"))
    assert [columns[axis] for axis in "xyz"[: len(names)]] == [*names]
    with nfsgeo.open(tmp_path / "a.csv", columns=columns) as fields:
        found = {*map(tuple, fields.coordinates())}
        assert found == {*map(tuple, POINTS[:, : len(names)])}
        assert len(fields.times) == (times or 1)


@pytest.mark.parametrize("suffix", ["_rho", "Cell", "_c"])
def test_coordinates_of_a_data_set_without_units(suffix, one_line):
    """Messages suggest names that tell it, and axes in the order of the field."""
    axes = ("t", "s", "eta", "xi")
    u = RANDOM.random((3, 2, 4, 5))
    fields = {"zeta": (("t", "eta", "xi"), u[:, 0]), "temp": (axes, u)}
    lon, lat = np.meshgrid(np.arange(5.0), np.arange(50.0, 54.0))
    places = {f"lon{suffix}": (axes[2:], lon), f"lat{suffix}": (axes[2:], lat)}
    dataset = xarray.Dataset(fields, {"t": np.arange(3.0), **places})
    message = one_line(nfsgeo.from_xarray, dataset)
    columns = told(message)
    assert columns == {"x": f"lon{suffix}", "y": f"lat{suffix}"}
    fields = nfsgeo.from_xarray(dataset, columns=columns | {"field": "zeta"})
    np.testing.assert_array_equal(fields.coordinates()[:, 0], lon.ravel())
    numbered = told(message.partition("number the steps")[2])
    assert numbered == {"x": "xi", "y": "eta", "z": "s"}


@pytest.mark.parametrize(("separator", "unit"), [(":   ", "mm"), (",", "m")])
def test_the_unit_of_length_of_comsol(separator, unit, tmp_path):
    cut = "," if separator == "," else "    "
    rows = [cut.join(map(str, [x, y, 300 + x])) for x, y, _ in POINTS]
    head = ["% Model" + separator + "a.mph", f"% Length unit{separator}{unit}"]
    names = "% " + cut.join(["X", "Y", "T (K)"])
    (tmp_path / "a.txt").write_text("\n".join([*head, names, *rows]) + "\n")
    with nfsgeo.open(tmp_path / "a.txt") as fields:
        assert fields.units == {"x": unit, "y": unit, "T": "K"}
