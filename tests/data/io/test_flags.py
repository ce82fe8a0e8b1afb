"""Quality flags and other variables that are no quantities."""

import numpy as np
import pytest
import xarray
from small_netcdf import DIMS, RANDOM, SHAPE, TIMES, grid, saved, values_of

import nfsgeo


def moorings(flags, **about):
    temp = np.random.default_rng(1).normal(12, 2, (48, 6))
    bad = flags == 4
    temp[bad] = 99.0
    owner = {"ancillary_variables": "TEMP_QC"} if about else {}
    variables = {
        "TEMP": (("time", "station"), temp, owner),
        "PSAL": (("time", "station"), temp + 1),
        "TEMP_QC": (("time", "station"), flags, about),
    }
    times = TIMES[0] + np.arange(48) * np.timedelta64(1, "h")
    places = {
        "lat": ("station", RANDOM.random(6)),
        "lon": ("station", RANDOM.random(6)),
    }
    return xarray.Dataset(variables, {"time": times, **places}), bad


FLAGS = np.where(np.random.default_rng(2).random((48, 6)) < 0.1, 4, 1).astype("i1")


MEANT = {"flag_meanings": "good probably_good probably_bad bad missing"}


MASKS = {
    "flag_masks": np.array([1, 1, 4, 4], "i1"),
    "flag_values": np.array([0, 1, 0, 4], "i1"),
    "flag_meanings": "night day clear cloud",
}


VALUES = {**MEANT, "flag_values": np.array([1, 2, 3, 4, 9], "i1")}


@pytest.mark.parametrize(
    ("flags", "about", "mask"),
    [
        (FLAGS, VALUES, "TEMP_QC"),
        (FLAGS, {**VALUES, "standard_name": "x status_flag"}, "TEMP_QC:3:4"),
        (FLAGS, VALUES, "TEMP_QC:bad"),
        (FLAGS, {}, "TEMP_QC:4"),
        (FLAGS.astype("S1"), {}, "TEMP_QC:4:9"),
        (FLAGS.astype("S1"), {**MEANT, "flag_values": "1, 2, 3, 4, 9"}, "TEMP_QC"),
        (np.where(FLAGS == 4, "B", "A").astype("S1"), {}, "TEMP_QC:B"),
        (
            np.where(FLAGS == 4, 6, 1).astype("i1"),
            {"flag_masks": np.array([1, 2, 4], "i1"), "flag_meanings": "day sun cloud"},
            "TEMP_QC:cloud",
        ),
        (
            np.where(FLAGS == 4, 6, 1).astype("i1"),
            {"flag_masks": np.array([1, 2, 4], "i1"), "flag_meanings": "day sun cloud"},
            "TEMP_QC:4",
        ),
        (
            np.where(FLAGS == 4, 13, 5).astype("i1"),
            {
                "flag_masks": np.array([1, 12, 12, 12], "i1"),
                "flag_values": np.array([1, 4, 8, 12], "i1"),
                "flag_meanings": "day thin thick bad",
            },
            "TEMP_QC:12:8",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["nc", "memory"])
def test_flags_are_left_out_and_mask(flags, about, mask, kind, tmp_path, caplog):
    dataset, bad = moorings(FLAGS, **about)
    dataset["TEMP_QC"] = (("time", "station"), flags, about)

    def opened(columns=None):
        if kind == "memory":
            return nfsgeo.from_xarray(dataset, columns=columns)
        return nfsgeo.open(saved(dataset, tmp_path), columns=columns)

    fields = opened()
    assert fields.component_names == ["TEMP", "PSAL"]
    assert values_of(fields).max() == 99 and "left out TEMP_QC (flags" in caplog.text
    fields = opened({"mask": mask})
    assert fields.component_names == ["TEMP", "PSAL"]
    assert "TEMP missing where TEMP_QC is" in caplog.text
    np.testing.assert_array_equal(np.isnan(values_of(fields)), bad.T)
    assert not np.isnan(values_of(fields, 1)).any()
    again = nfsgeo.open(fields.write(tmp_path / "b.nc"))
    np.testing.assert_array_equal(np.isnan(values_of(again)), bad.T)


@pytest.mark.parametrize(
    ("about", "mask", "words"),
    [
        ({}, "TEMP_QC", "to be told which flags"),
        (VALUES, "TEMP_QC:worst", "1 good, 2 probably_good"),
        (VALUES, "PRES_QC", "no column 'PRES_QC'"),
        (MASKS, "TEMP_QC:0", "one of 0 night, 1 day, 0 clear, 4 cloud"),
        (MASKS, "TEMP_QC:5", "one of 0 night, 1 day, 0 clear, 4 cloud"),
        ({"flag_masks": np.array([1, 4], "i1")}, "TEMP_QC:5", "one of 1, 4"),
    ],
)
def test_masks_that_do_not_tell_what_is_bad(about, mask, words, one_line):
    dataset, _ = moorings(FLAGS, **about)
    assert words in one_line(nfsgeo.from_xarray, dataset, columns={"mask": mask})


def test_what_else_is_no_quantity(caplog):
    about = {"standard_name": "sea_water_temperature standard_error"}
    dataset = grid(
        u=(DIMS, RANDOM.random(SHAPE)),
        u_error=(DIMS, RANDOM.random(SHAPE), about),
        nobs=(DIMS, np.ones(SHAPE), {"standard_name": "x number_of_observations"}),
        start=("time", np.arange(6), {"units": "hours since 2026-01-01"}),
        lat_bnds=(("lat", "two"), RANDOM.random((3, 2))),
    )
    fields = nfsgeo.from_xarray(dataset)
    assert fields.component_names == ["u"] and not fields.static_names
    assert "left out u_error, nobs, start, lat_bnds" in caplog.text
    fields = nfsgeo.from_xarray(dataset, columns={"field": "u_error"})
    assert fields.component_names == ["u_error"]
