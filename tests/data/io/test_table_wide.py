"""Tables with a column for each time."""

import numpy as np
import pytest
from small_tables import P, answer

import nfsgeo

DAYS = [1767225600.0, 1767312000.0, 1767398400.0]


@pytest.mark.parametrize(
    ("names", "form", "times", "fields"),
    [
        (["2026-01-01", "2026-01-02", "2026-01-03"], "*", DAYS, ["field"]),
        (["20260101", "20260102", "20260103"], "*", DAYS, ["field"]),
        (["2020", "2021", "2022"], "*", [2020, 2021, 2022], ["field"]),
        (["p_0.0", "p_0.1", "p_0.2"], "p_*", [0, 0.1, 0.2], ["p"]),
        (["t=1", "t=2", "t=3"], "t=*", [1, 2, 3], ["field"]),
        (["T_0 [K]", "T_1 [K]", "T_2 [K]", "T_3 [K]"], "T_* [K]", range(4), ["T"]),
        ([f"{n}{k}" for n in "uv" for k in range(24)], "u*+v*", range(24), ["u", "v"]),
    ],
)
def test_times_in_names_are_asked_about(names, form, times, fields, tmp_path, one_line):
    """Both answers can be given: the columns are fields, or one at several times."""
    values = np.random.default_rng(0).random((len(P), len(names))).round(3)
    rows = [[*place, *row] for place, row in zip(P, values, strict=True)]
    text = "\n".join(",".join(map(str, row)) for row in [["x", "y", *names], *rows])
    (tmp_path / "a.csv").write_text(text)
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    assert f"time={form}" in message
    as_fields = answer(message)
    assert as_fields.keys() == {"field"}
    found = nfsgeo.open(tmp_path / "a.csv", columns=as_fields)
    assert len(found.component_names) == len(names) and len(found.times) == 1
    found = nfsgeo.open(tmp_path / "a.csv", columns={"time": form})
    assert found.component_names == fields
    np.testing.assert_allclose(found.times, times)
    order = np.lexsort((P[:, 1], P[:, 0]))
    expected = values[order].reshape(len(P), len(fields), -1)
    read = found.read(0, slice(None)).transpose(0, 2, 1)
    np.testing.assert_allclose(np.sort(read, 0), np.sort(expected, 0), rtol=1e-6)


@pytest.mark.parametrize(
    "names", [["u_1", "u_2"], ["u_0", "u_1", "u_2"], ["pm2.5", "pm10", "no2"]]
)
def test_components_are_no_times(names, tmp_path):
    rows = "".join(f"{x},{y}{',1' * len(names)}\n" for x, y in P)
    (tmp_path / "a.csv").write_text(f"x,y,{','.join(names)}\n{rows}")
    assert nfsgeo.open(tmp_path / "a.csv").component_names == names


def test_days_and_months_in_names_are_asked_about(tmp_path, one_line):
    rows = "".join(f"{x},{y},1,2,3\n" for x, y in P)
    path = tmp_path / "a.csv"
    path.write_text(f"x,y,01.02.2026,02.02.2026,03.02.2026\n{rows}")
    assert "time=*" in one_line(nfsgeo.open, path)
    assert "dayfirst" in one_line(nfsgeo.open, path, columns={"time": "*"})
    assert "p_* of" in one_line(nfsgeo.open, path, columns={"time": "p_*"})
