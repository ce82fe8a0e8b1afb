"""Stations of tables, by their names and by points that are nearly equal."""

import re

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import R, stations

import nfsgeo
from nfsgeo.data.checks import nearly_equal
from nfsgeo.errors import UserError


def test_stations_under_other_names(tmp_path):
    """Leading zeros of numbers of stations are kept."""
    (tmp_path / "flow.csv").write_text(
        "date,0101,0102\n2026-01-01,1,2\n2026-01-02,2,3\n"
    )
    places = "gauge,other,la,lo\n0101,0101,47.2,-68.6\n0102,0102,44.6,-67.9\n"
    (tmp_path / "places.csv").write_text(places)
    told = {"points": str(tmp_path / "places.csv"), "x": "lo", "y": "la"}
    with pytest.raises(UserError, match="station=gauge"):
        nfsgeo.open(tmp_path / "flow.csv", columns=told)
    fields = nfsgeo.open(tmp_path / "flow.csv", columns=told | {"station": "gauge"})
    assert fields.stations() == ["0101", "0102"]
    (tmp_path / "long.csv").write_text(
        "nr,t,x,u\n07,0,1,2\n08,0,2,2\n07,1,1,3\n08,1,2,1\n"
    )
    fields = nfsgeo.open(tmp_path / "long.csv", columns={"station": "nr"})
    assert fields.stations() == ["07", "08"]


@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 3),
    num=st.integers(2, 40),
    seed=st.integers(0, 999),
    moved=st.floats(-6, 6),
)
def test_nearly_equal_points_are_those_of_brute_force(dim, num, seed, moved):
    random = np.random.default_rng(seed)
    points = random.random((num, dim)) * 10.0**moved + 3 * 10.0**moved
    copies = (
        points[: num // 2] + random.uniform(-2e-6, 2e-6, (num // 2, dim)) * 10.0**moved
    )
    points = np.unique(np.concatenate([points, copies]), axis=0)
    reach = 1e-6 * np.ptp(points, axis=0).max()
    apart = np.abs(points[:, None] - points).max(-1)
    expected = np.argwhere(np.triu(apart <= reach, 1))
    assert nearly_equal(points).tolist() == expected.tolist()


def test_a_station_with_other_digits_is_one(tmp_path, one_line):
    places = (R.random((6, 2)) * [4, 3] + [5, 47]).round(7)
    rows = [(t, *(p if t < 5 else p.round(6)), t) for t in range(10) for p in places]
    table = pandas.DataFrame(rows, columns=["t", "lon", "lat", "u"])
    table.to_csv(tmp_path / "a.csv", index=False)
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    digits = int(re.search(r"nearly the same.*to (-?\d+) digits", message)[1])
    table[["lon", "lat"]] = table[["lon", "lat"]].round(digits)
    table.to_csv(tmp_path / "a.csv", index=False)
    assert nfsgeo.open(tmp_path / "a.csv").num_points(0) == 6
    near = np.concatenate([places, places + 1e-6])  # a fine mesh: all are always there
    rows = [(t, *p, t) for t in range(3) for p in near]
    pandas.DataFrame(rows, columns=["t", "lon", "lat", "u"]).to_csv(
        tmp_path / "b.csv", index=False
    )
    assert nfsgeo.open(tmp_path / "b.csv").num_points(0) == 12


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("name", ["soil_class", "county", "network", "location_type"])
@pytest.mark.parametrize("text", [True, False])
def test_attributes_of_stations_are_what_users_say(name, text, ordered, tmp_path):
    for station in ("", "station,"):
        table = stations(
            station + name,
            lambda k, t, n, station=station: (
                f"S{k:02}," * bool(station) + ("AB"[k // 12] if text else str(k // 12))
            ),
        )
        head, *rows = table.splitlines()
        rows = rows if ordered else np.random.default_rng(1).permutation(rows).tolist()
        (tmp_path / "a.csv").write_text("\n".join([head, *rows]))
        for columns in ({"ignore": name}, {"field": "u"} if text else {"static": name}):
            fields = nfsgeo.open(tmp_path / "a.csv", columns=columns)
            assert fields.num_points(0) == 24 and fields.component_names == ["u"]
            assert fields.static_names == [name] * ("static" in columns)
