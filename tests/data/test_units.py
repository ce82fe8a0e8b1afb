"""Units in names of columns and in attributes of arrays."""

import re
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data.conventions import NAMED, counts_from_date, field_name, role_of
from nfsgeo.data.io.array_files import unit_of
from nfsgeo.data.times import EPOCH

SINCE = "hours since 2026-01-01"
POINTS, TIMES = np.random.default_rng(0).random((6, 2)), np.arange(3.0)

RATIOS = ["a/b", "a / b", "T/K", "p / T", "x / L", "x / d", "dT / ds", "q/(A T)"]
RATIOS += ["q/(T/V)", "u/(mean)", "a/b (mean)"]
RATIOS += ["u / ubar", "p / patm", "p / pbar", "E / kT"]
UNITS = st.lists(
    st.tuples(st.sampled_from(["m", "s", "kg", "K", "Pa", "mol"]), st.integers(-3, 3)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize(
    ("name", "field", "unit"),
    [
        ("temperature [°C]", "temperature", "°C"),
        ("u (m/s)", "u", "m/s"),
        ("p (hPa)", "p", "hPa"),
        ("flux (W m-2)", "flux", "W m-2"),
        ("q [kg kg-1]", "q", "kg kg-1"),
        ("discharge [m³/s]", "discharge", "m³/s"),
        ("stress (kg/(m s^2))", "stress", "kg/(m s^2)"),
        ("humidity [%]", "humidity", "%"),
        ("Velocity[i] (m/s)", "Velocity[i]", "m/s"),
        ("T(K)", "T(K)", ""),
        ("u(s)", "u(s)", ""),
        ("u [0]", "u [0]", ""),
        ("u [1]", "u [1]", ""),
        ("u (mean)", "u (mean)", ""),
        ("phase (B)", "phase (B)", ""),
        ("T (min)", "T (min)", ""),
        ("T (max)", "T (max)", ""),
        ("pH (cal)", "pH (cal)", ""),
        ("delay [min]", "delay", "min"),
        ("rate (L min-1)", "rate", "L min-1"),
        ("energy (kcal)", "energy", "kcal"),
        ("age (years)", "age", "years"),
        ("age (d)", "age", "d"),
        ("T / K", "T", "K"),
        ("u/(m/s)", "u", "m/s"),
        ("p/(kg m^-1 s^-2)", "p", "kg m^-1 s^-2"),
        ("p (kg m^(-1) s^(-2))", "p", "kg m^(-1) s^(-2)"),
        ("c / J/(kg K)", "c", "J/(kg K)"),
        ("u (mean) / (m/s)", "u (mean)", "m/s"),
        *((ratio, ratio, "") for ratio in RATIOS),
    ],
)
def test_units_are_told_from_other_words_in_brackets(name, field, unit):
    assert field_name(name) == (field, unit)


@given(parts=UNITS, power=st.sampled_from(["{}{}", "{}^{}", "{}**{}", "{}^({})"]))
def test_a_quantity_over_its_unit_is_read_as_one_with_brackets(parts, power):
    unit = " ".join(s if n == 1 else power.format(s, n) for s, n in parts)
    for name in (f"q ({unit})", f"q [{unit}]", f"q / {unit}", f"q/({unit})"):
        assert field_name(name) == ("q", unit)
    assert role_of("t / h") == "time" and role_of("x/(mm)") == "x"


PREFIXED = [prefix + name for name in NAMED.split("|") for prefix in ("", "k", "µ")]


@pytest.mark.parametrize("unit", [*PREFIXED, "%", "degC", "knots", "percent", "mmHg"])
def test_a_unit_is_known_in_brackets_and_below_a_slash(unit):
    for name in (f"q [{unit}]", f"q / {unit}", f"q/({unit})", f"q / m {unit}^-2"):
        assert field_name(name)[0] == "q", name


def table(path, *names):
    rows = [
        [t, *xy, *(k + t + n for n in range(len(names)))]
        for t in TIMES
        for k, xy in enumerate(POINTS)
    ]
    columns = ["t [h]", "x [km]", "y [km]", *names]
    pandas.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


def test_columns_are_called_with_and_without_their_unit(tmp_path):
    names = ["temperature [°C]", "rain (mm)", "u (mean)"]
    path = table(tmp_path / "a.csv", *names)
    fields = nfsgeo.open(path)
    assert fields.component_names == ["temperature", "rain", "u (mean)"]
    assert fields.units == {
        "temperature": "°C",
        "rain": "mm",
        "x": "km",
        "y": "km",
        "time": "h",
    }
    for name in ("rain", "rain (mm)"):
        fields = nfsgeo.open(path, columns={"field": "temperature"}, known=[name])
        assert fields.component_names == ["temperature"]
        assert fields.forcing_names == ["rain"]
        fields = nfsgeo.open(path, columns={"ignore": [name]})
        assert fields.component_names == ["temperature", "u (mean)"]


ROWS = "".join(f"{t},{x},{x * x},{t + x}.5\n" for t in range(3) for x in range(4))


@pytest.mark.parametrize("form", ["{}", "[{}]", "({})", "<{}>", "[ {} ]"])
@pytest.mark.parametrize("above", ["time,x,y,T\n", "% time,x,y,T\n% "])
def test_a_row_of_units_is_read_as_units_in_names(above, form, tmp_path, one_line):
    path = tmp_path / "a.csv"
    for x in ("m", "mm"):
        units = ",".join(map(form.format, ("s", x, "mm", "degC")))
        path.write_text(f"{above}{units}\n{ROWS}")
        if x == "m":
            assert "x in m and y in mm" in one_line(nfsgeo.open, path)
    read = nfsgeo.open(path).units
    assert read == {"time": "s", "x": "mm", "y": "mm", "T": "degC"}


def test_a_row_of_units_of_stations_and_of_dates(tmp_path, one_line):
    path, sites = tmp_path / "level.csv", tmp_path / "sites.csv"
    sites.write_text("station;lat;lon\nA;47;8\nB;48;9\nC;47;9\n")
    days = "".join(f"2026-01-0{d};{d};2.5;3\n" for d in (1, 2, 3))
    for units in (";cm;cm;cm", ";[cm];[cm];[cm]", "UTC;cm;cm;cm"):
        path.write_text(f"time;A;B;C\n{units}\n{days}")
        assert nfsgeo.open(path, columns={"points": sites}).units["level"] == "cm"
    for units, words in ((";cm;m;cm", "cm, m"), ("CET;cm;cm;cm", "dates in CET")):
        path.write_text(f"time;A;B;C\n{units}\n{days}")
        assert words in one_line(nfsgeo.open, path, columns={"points": sites})


@pytest.mark.parametrize("first", ["0", "0{}.03.2026 00:00", "1{}:00", "2026-03-0{}"])
def test_a_row_with_decimal_commas_has_no_units(first, tmp_path, one_line):
    rows = "".join(
        f"{first};0,{k};1,{k};2,5\n".replace("{}", str(k)) for k in (1, 2, 3)
    )
    (tmp_path / "a.csv").write_text(f"when;x [m];y [m];T\n{rows}")
    assert "'0,1' in column x [m], row 1" in one_line(nfsgeo.open, tmp_path / "a.csv")


def test_advice_on_decimal_commas_keeps_a_row_of_units(tmp_path, one_line):
    path = tmp_path / "a.csv"
    path.write_text(f"time,x,y,T\ns,m,m,K\n{ROWS}".replace(",", ";").replace(".", ","))
    call = re.search(r"pandas\.read_csv.*index=False\)", one_line(nfsgeo.open, path))[0]
    exec(call.replace("NAME.csv", str(path)), {"pandas": pandas})
    assert nfsgeo.open(path).units == {"time": "s", "x": "m", "y": "m", "T": "K"}


def test_units_that_tell_columns_apart_stay_in_their_names(tmp_path):
    names = ["T [K]", "T [°C]", "part [%]", "p [Pa]"]
    fields = nfsgeo.open(table(tmp_path / "a.csv", *names))
    assert fields.component_names == [*names[:3], "p"]


def test_columns_of_quantities_over_their_units(tmp_path, one_line):
    path = table(tmp_path / "a.csv", "T / K", "u/(m/s)")
    renamed = {"t [h]": "t / h", "x [km]": "x / km", "y [km]": "y/(km)"}
    pandas.read_csv(path).rename(columns=renamed).to_csv(path, index=False)
    expected = {"T": "K", "u": "m/s", "x": "km", "y": "km", "time": "h"}
    assert nfsgeo.open(path).units == expected
    assert nfsgeo.open(path, columns={"field": "T"}).component_names == ["T"]
    ratios = table(tmp_path / "b.csv", "F", "m", "F / m")
    assert "F / m" in one_line(nfsgeo.open, ratios)


@pytest.mark.parametrize("key", ["units", "unit", "Units", "UNITS", "Unit"])
def test_units_of_hdf5_and_netcdf(key, tmp_path):
    u, units = np.arange(18.0).reshape(3, 6), {"u": "m/s", "xy": "km", "t": "h"}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.update({"u": u, "xy": POINTS, "t": TIMES, "k": u[0]})
        for name, unit in (units | {"k": np.bytes_("m2")}).items():
            file[name].attrs[key] = unit
    columns = {"field": "u:tp", "points": "xy", "time": "t", "static": "k:p"}
    fields = nfsgeo.open(tmp_path / "a.h5", columns=columns)
    expected = {"u": "m/s", "x": "km", "y": "km", "time": "h"}
    assert fields.units == expected | {"k": "m2"}
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.update({"mesh_pos": POINTS, "u": u, "t": TIMES})
        file["node_type"] = np.zeros((6, 1), int)
        for name, unit in zip(("u", "mesh_pos", "t"), units.values(), strict=True):
            file[name].attrs[key] = unit
    assert nfsgeo.open(tmp_path / "b.h5").units == expected
    axes = {"x": ("p", POINTS[:, 0]), "y": ("p", POINTS[:, 1]), "time": TIMES}
    dataset = xarray.Dataset({"u": (("time", "p"), u, {key: "m/s"})}, axes)
    assert nfsgeo.from_xarray(dataset).units == {"u": "m/s"}


def test_units_of_several_spellings(tmp_path):
    assert unit_of({"Units": "K", "units": "m"}) == "m"
    assert unit_of({"units": " ", "Unit": "K", "UNITS": "K"}) == "K"
    assert unit_of({"Units": "K", "unit": "degC"}) == "K or degC"
    assert unit_of({"units": np.array([b"h"])}) == "h"  # as IDL writes text
    assert unit_of({"units": 1, "long_name": "u"}) == ""
    assert unit_of({"units": np.array([], str), "Unit": ["m", "s"]}) == ""
    axes = {"x": ("p", POINTS[:, 0], {"UNITS": "degrees_east"})}
    axes |= {"lat": ("p", POINTS[:, 1]), "w": ("t", TIMES, {"Units": SINCE})}
    dataset = xarray.Dataset({"u": (("t", "p"), np.ones((3, 6)))}, axes)
    fields = nfsgeo.from_xarray(dataset)
    assert fields.time_unit == EPOCH and fields.units["x"] == "degrees_east"
    assert "units" not in dataset["x"].attrs


@pytest.mark.parametrize("unit", [SINCE, EPOCH, "days since 1990-1-1", "s", "", None])
def test_one_function_tells_units_of_dates(unit):
    assert counts_from_date(unit) == ("since" in str(unit))
    sources = Path(nfsgeo.data.__file__).parent.rglob("*.py")
    asking = [path.name for path in sources if '"since" ' in path.read_text()]
    assert asking == ["conventions.py"]


def test_dates_of_hdf5_are_those_of_their_unit(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.update({"u": np.ones((3, 6)), "xy": POINTS, "t": TIMES})
        file["t"].attrs["units"] = SINCE
    columns = {"field": "u:tp", "points": "xy", "time": "t"}
    fields = nfsgeo.open(tmp_path / "a.h5", columns=columns)
    start = np.datetime64("2026-01-01", "s").astype(float)
    np.testing.assert_array_equal(fields.times, start + 3600 * TIMES)


@pytest.mark.parametrize(
    ("units", "fine"),
    [
        (("deg", "rad"), False),
        (("degrees", "radians"), False),
        (("deg", "degrees"), True),
        (("rad", "rad"), True),
        (("°", "deg"), True),
    ],
)
def test_angles_of_two_units_are_refused(units, fine, tmp_path, one_line):
    head = f"lon [{units[0]}],lat [{units[1]}],u"
    rows = [f"{x},{x * x},{x}" for x in (0.1, 0.2, 0.4)]
    (tmp_path / "a.csv").write_text("\n".join([head, *rows]) + "\n")
    if fine:
        assert nfsgeo.open(tmp_path / "a.csv").component_names == ["u"]
    else:
        assert all(unit in one_line(nfsgeo.open, tmp_path / "a.csv") for unit in units)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["F / m", "m"], {"F . m": "", "m": ""}),
        (["F / m", "m [kg]"], {"F . m": "", "m": "kg"}),
        (["F / m", "p"], {"F": "m", "p": ""}),
        (["T [K]", "T [°C]", "p [Pa]"], {"T [K]": "", "T [°C]": "", "p": "Pa"}),
    ],
)
def test_names_of_arrays_are_read_beside_the_others(names, expected, tmp_path):
    """A mesh and a data set tell ratios and like names as a table does."""
    meshio = pytest.importorskip("meshio")
    arrays = {name: np.arange(6.0) + k for k, name in enumerate(names)}
    corners = np.c_[POINTS, np.zeros(6)]
    cells = [("triangle", np.array([[0, 1, 2], [3, 4, 5]]))]
    meshio.Mesh(corners, cells, point_data=arrays).write(tmp_path / "a.vtu")
    for columns in (None, {"field": names}):
        fields = nfsgeo.open(tmp_path / "a.vtu", columns=columns)
        units = {name: fields.units.get(name, "") for name in fields.component_names}
        assert units == expected
    left = nfsgeo.open(tmp_path / "a.vtu", columns={"ignore": names[0]})
    assert left.component_names == [*expected][1:]
    axes = {"x": ("n", POINTS[:, 0]), "y": ("n", POINTS[:, 1]), "time": TIMES}
    fields = {n: (("time", "n"), TIMES[:, None] + v) for n, v in arrays.items()}
    if "." not in "".join(expected):
        fields = nfsgeo.from_xarray(xarray.Dataset(fields, axes))
        assert fields.component_names == [*expected]
