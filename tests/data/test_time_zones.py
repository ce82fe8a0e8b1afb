"""Times with and without a time zone, read, written and predicted."""

import numpy as np
import pandas
import pytest

import nfsgeo

START, POINTS = np.datetime64("2026-01-31T22:00:00"), [(0.1, 0.2), (0.7, 0.4)]
HOURS = START + np.arange(4).astype("m8[h]")


def table(path, texts):
    rows = [(t, *xy, k + xy[0]) for k, t in enumerate(texts) for xy in POINTS]
    pandas.DataFrame(rows, columns=["time", "x", "y", "u"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet", "nc", "npz"])
@pytest.mark.parametrize(
    ("texts", "hours", "zone"),
    [
        ([f"{t}Z" for t in HOURS], 0, "Z"),
        ([f"{t}.250Z" for t in HOURS], 0, "Z"),
        ([f"{t} UTC" for t in HOURS], 0, "Z"),
        ([f"{t}+02:00" for t in HOURS], 2, "Z"),
        ([f"{t}" for t in HOURS], 0, ""),
    ],
)
def test_zones_come_back_as_z(texts, hours, zone, ending, tmp_path):
    fields = nfsgeo.open(table(tmp_path / "a.csv", texts))
    whole = HOURS - np.timedelta64(hours, "h")
    np.testing.assert_array_equal(np.floor(fields.times), whole.astype(float))
    written = nfsgeo.open(fields.write(tmp_path / f"b.{ending}"))
    first, *_ = written.write(tmp_path / "c.csv").read_text().splitlines()[1].split(",")
    assert first.startswith(str(whole[0])) and first.endswith(zone or "00")
    np.testing.assert_array_equal(written.times, fields.times)


def test_dates_with_a_zone_and_offsets_that_differ(tmp_path):
    days = [f"2026-01-{day:02d}" for day in range(1, 5)]
    fields = nfsgeo.open(table(tmp_path / "a.csv", [f"{day}Z" for day in days]))
    expected = np.array(days, "M8[s]").astype(float)
    np.testing.assert_array_equal(fields.times, expected)
    offsets = zip(HOURS, ("+00:00", "+00:00", "+01:00", "+01:00"), strict=True)
    times = [f"{t + np.timedelta64(o == '+01:00', 'h')}{o}" for t, o in offsets]
    fields = nfsgeo.open(table(tmp_path / "b.csv", times))
    np.testing.assert_array_equal(fields.times, HOURS.astype(float))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([f"{t}{'Z' * (k % 2)}" for k, t in enumerate(HOURS)], "all or none of them"),
        ([f"{t} CET" for t in HOURS], "offset of the zone from UTC"),
    ],
)
def test_zones_that_are_unclear_are_refused(texts, words, tmp_path, one_line):
    assert words in one_line(nfsgeo.open, table(tmp_path / "a.csv", texts))


def test_files_with_and_without_a_zone_are_told(tmp_path, caplog):
    table(tmp_path / "a.csv", [f"{t}Z" for t in HOURS[:2]])
    table(tmp_path / "b.csv", [f"{t}" for t in HOURS[2:]])
    fields = nfsgeo.open([tmp_path / "a.csv", tmp_path / "b.csv"], series="time-steps")
    np.testing.assert_array_equal(fields.times, HOURS.astype(float))
    assert "b.csv: times without a time zone are read as UTC" in caplog.text


def test_dates_of_python_keep_their_zone():
    times = pandas.DatetimeIndex(HOURS).tz_localize("UTC").to_pydatetime()
    u = np.ones((1, 2, 4, 1))
    fields = nfsgeo.from_arrays(u, POINTS, times)
    assert fields.dataset["time"].attrs["time_zone"] == "UTC"


@pytest.mark.parametrize(
    "header", ["time [CET]", "Time [UTC+2]", "time (UTC+01:00)", "time (local)"]
)
def test_a_zone_in_a_header_is_not_passed_over(header, tmp_path, one_line):
    path = table(tmp_path / "a.csv", [f"{t}" for t in HOURS])
    text = path.read_text().replace("time", header, 1)
    path.write_text(text)
    assert "offset" in one_line(nfsgeo.open, path)
    path.write_text(text.replace(":00,", ":00+01:00,"))  # the dates tell it
    whole = HOURS - np.timedelta64(1, "h")
    np.testing.assert_array_equal(nfsgeo.open(path).times, whole.astype(float))


def test_utc_in_a_header_is_written_as_z(tmp_path):
    path = table(tmp_path / "a.csv", [f"{t}" for t in HOURS])
    path.write_text(path.read_text().replace("time", "time (UTC)", 1))
    written = nfsgeo.open(path).write(tmp_path / "b.csv").read_text()
    assert f"{START}Z" in written
