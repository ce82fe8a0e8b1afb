"""Opening and conversion: sources, folders, and what a file leaves open."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.data.io.opening import with_user_answers
from nfsgeo.geometry import Domain


def test_domains_that_do_not_hold_the_points(grid_case, tmp_path, one_line):
    out = tmp_path / "b.nc"
    small = Domain((0.0, 0.0), (0.1, 0.1), (False, False))
    for wrong in (small, Domain((0.0,), (1.0,), (False,))):
        one_line(nfsgeo.data.convert, grid_case.path, out, domain=wrong)
    wide = Domain((-1.0, -1.0), (5.0, 2.0), (False, True))
    nfsgeo.data.convert(grid_case.path, out, domain=wide, equation="new")
    with nfsgeo.data.open(out) as fields:
        assert fields.domain == wide and fields.equation == "new"
    assert {each.name for each in tmp_path.iterdir()} == {"grid.nc", "b.nc"}


def test_options_that_do_not_exist(grid_case, tmp_path, one_line):
    for wrong in ({"series": "others"}, {"at": "edges"}):
        with pytest.raises(ValueError, match="expected"):
            nfsgeo.data.open(grid_case.path, **wrong)
    one_line(nfsgeo.data.open, grid_case.path, columns={"x": "lon"})
    one_line(nfsgeo.data.open, grid_case.path, at="points")
    for names in (["rain"], ["u", "v"]):
        out = tmp_path / "out.nc"
        one_line(nfsgeo.data.convert, grid_case.path, out, known=names)
        assert not out.exists()


def test_whether_a_file_opens_again_as_it_is(grid_case, tmp_path):
    assert nfsgeo.data.open(grid_case.path).reopens
    assert nfsgeo.data.open([grid_case.path]).reopens
    for told in ({"known": ["v"]}, {"times": np.arange(5.0)}, {"series": "samples"}):
        assert not nfsgeo.data.open(grid_case.path, **told).reopens
    copy = shutil.copy(grid_case.path, tmp_path / "copy.nc")
    assert not nfsgeo.data.open([grid_case.path, copy], series="samples").reopens


@pytest.mark.parametrize("west", [-180.0, 0.0])
@pytest.mark.parametrize("units", ["degrees_east", "radian"])
def test_longitudes_are_asked_whether_they_close(west, units, one_line):
    axes = [west + np.arange(0, 360, 20.0), np.linspace(-90, 90, 19)]
    u = Array(np.zeros((18, 19)), "xy", ["u"])
    fields = build(Path("a"), [u], axes=axes, units={"x": units}, times=[0.0])
    assert with_user_answers(fields, None, None, ()) is fields  # an axis like any other
    fields.dataset["x"].attrs["standard_name"] = "longitude"
    fields = build(Path("a"), [u], points={n: fields.dataset[n].variable for n in "xy"})
    message = one_line(with_user_answers, fields, None, None, ())
    assert "340 degrees" in message and "--sphere" in message
    if units == "radian":
        message = one_line(with_user_answers, fields, None, Domain.sphere(), ())
        assert "coordinates in radian" in message and "degrees" in message
        return
    assert with_user_answers(fields, None, Domain.sphere(), ()).domain == Domain.sphere(
        west
    )
    box = Domain((west, -90.0), (west + 360, 90.0), (True, False))
    assert with_user_answers(fields, None, box, ()).domain == box
    part = replace(fields, dataset=fields.dataset.isel(x=slice(9)))
    assert (
        with_user_answers(part, None, None, ()) is part
    )  # less than half of the globe
