"""Opening and conversion: sources, folders, and what a file leaves open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.data.opening import settled
from nfsgeo.geometry import Domain

RNG = np.random.default_rng(0)


def cloud(path: Path, points: np.ndarray, records: int = 2) -> np.ndarray:
    u = RNG.normal(size=(1, len(points), records, 1)).astype(np.float32)
    np.savez(path, coords=points, u=u, t=np.arange(records))
    return u


def test_a_domain_is_drawn_or_given(tmp_path):
    points = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 2.0]])
    cloud(tmp_path / "a.npz", points)
    box = Domain((0.0, 0.0), (2.0, 8.0), (True, False))
    for number, (options, lower, upper) in enumerate(
        [({}, (-0.1, 0.8), (2.1, 5.2)), ({"domain": box}, (0.0, 0.0), (2.0, 8.0))]
    ):
        out = tmp_path / f"{number}.nc"
        assert nfsgeo.data.convert(tmp_path / "a.npz", out, **options) == out
        with nfsgeo.data.open(out) as fields:
            np.testing.assert_allclose(fields.domain.lower, lower)
            np.testing.assert_allclose(fields.domain.upper, upper)
            np.testing.assert_array_equal(fields.coordinates(), points)


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


def test_whether_a_file_opens_again_as_it_is(grid_case):
    assert nfsgeo.data.open(grid_case.path).reopens
    assert nfsgeo.data.open([grid_case.path]).reopens
    for told in ({"known": ["v"]}, {"times": np.arange(5.0)}, {"series": "samples"}):
        assert not nfsgeo.data.open(grid_case.path, **told).reopens
    assert not nfsgeo.data.open([grid_case.path] * 2, series="samples").reopens


@pytest.mark.parametrize("west", [-180.0, 0.0])
@pytest.mark.parametrize("units", ["degrees_east", "radian"])
def test_longitudes_are_asked_whether_they_close(west, units, one_line):
    axes = [west + np.arange(0, 360, 20.0), np.linspace(-90, 90, 19)]
    u = Array(np.zeros((18, 19)), "xy", ["u"])
    fields = build(Path("a"), [u], axes=axes, units={"x": units}, times=[0.0])
    assert settled(fields, None, None, ()) is fields  # an axis like any other
    fields.dataset["x"].attrs["standard_name"] = "longitude"
    fields = build(Path("a"), [u], points={n: fields.dataset[n].variable for n in "xy"})
    message = one_line(settled, fields, None, None, ())
    assert "340 degrees" in message and "--sphere" in message
    if units == "radian":
        message = one_line(settled, fields, None, Domain.sphere(), ())
        assert "coordinates in radian" in message and "degrees" in message
        return
    assert settled(fields, None, Domain.sphere(), ()).domain == Domain.sphere(west)
    box = Domain((west, -90.0), (west + 360, 90.0), (True, False))
    assert settled(fields, None, box, ()).domain == box
    part = build(
        Path("a"),
        [Array(np.zeros((9, 19)), "xy", ["u"])],
        points={n: fields.dataset[n].variable[:9] for n in "x"}
        | {"y": fields.dataset["y"].variable},
    )
    assert settled(part, None, None, ()) is part  # less than half of the globe
