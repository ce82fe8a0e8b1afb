"""Longitudes over half of the globe: every domain that the question offers fits."""

import re

import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo.geometry import Domain


@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize(
    ("longitudes", "closes"),
    [
        ([0, 90, 180, 270], True),
        ([-180, -90, 0, 90], True),
        ([20, 110, 200, 290], True),
        ([0, 90, 180, 359.9], False),
        ([0.1234567, 120, 240.7], True),
    ],
)
def test_every_answer_about_longitudes_works(
    levels, longitudes, closes, tmp_path, one_line
):
    lat, height = [40.0, 50.0], [10.0, 20, 30][:levels]
    dims, sizes = ("time", "lat", "lon"), (2, 2, len(longitudes))
    if levels:
        dims, sizes = (*dims, "level"), (*sizes, levels)
    at = {"time": [0.0, 1.0], "lat": lat, "lon": longitudes, "level": height}
    dataset = xarray.Dataset(
        {"u": (dims, np.random.default_rng(0).normal(size=sizes))},
        {name: (name, values) for name, values in at.items() if name in dims},
    )
    dataset.to_netcdf(path := tmp_path / "a.nc", engine="h5netcdf")
    options = {"columns": {"z": "level"}} if levels else {}
    message = one_line(nfsgeo.open, path, **options)
    assert ("--columns z=level --out" in message) == bool(levels)
    answers = re.findall(r"--sphere|--axis [^,]*", message)
    assert ("--sphere" in answers) == (closes and not levels)
    assert len(answers) == 1 + closes + (closes and not levels)
    for answer in answers:
        domain = Domain.sphere()
        if axes := [text.split(":") for text in answer.split("--axis ")[1:]]:
            ends = [(float(low), float(high)) for low, high, *_ in axes]
            domain = Domain(*zip(*ends, strict=True), [len(axis) > 2 for axis in axes])
        fields = nfsgeo.open(path, domain=domain, **options)
        assert fields.num_points() == len(longitudes) * 2 * (levels or 1)
