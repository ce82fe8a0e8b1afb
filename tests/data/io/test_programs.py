"""Files as programs lay them out, and what docs/formats.md says of each."""

import numpy as np
import pytest
import xarray

import nfsgeo

RANDOM = np.random.default_rng(0)
TIMES = np.datetime64("2020-01-01", "ns") + np.arange(8) * np.timedelta64(6, "h")
SHAPE = (8, 4, 5)
LAT, LON = np.arange(50.0, 46, -1), np.arange(5.0)
Y, X = np.meshgrid(np.arange(4.0) + 40, np.arange(5.0) + 10, indexing="ij")
NORTH = {"units": "degrees_north", "standard_name": "latitude"}
EAST = {"units": "degrees_east", "standard_name": "longitude"}
PLACES = {"latitude": ("latitude", LAT, NORTH), "longitude": ("longitude", LON, EAST)}


def u(*dims, **about):
    """A field along dimensions with their sizes."""
    values = RANDOM.random([*dict(dims).values()]).astype("f4")
    return [name for name, _ in dims], values, about


def era5():
    """Of the Climate Data Store since 2024."""
    about = {"standard_name": "time", "long_name": "time"}
    dims = ("valid_time", 8), ("latitude", 4), ("longitude", 5)
    coords = {
        "valid_time": ("valid_time", TIMES, about),
        "number": ((), 0, {"standard_name": "realization", "units": "1"}),
        "expver": ("valid_time", np.array(["0001"] * 8, object)),
    }
    fields = {"t2m": u(*dims, units="K"), "lsm": u(*dims[1:])}
    return xarray.Dataset(fields, coords | PLACES)


def era5_levels():
    """With a field at the surface beside one at levels."""
    dims = ("valid_time", 8), ("pressure_level", 2), ("latitude", 4), ("longitude", 5)
    levels = {"standard_name": "air_pressure", "units": "hPa", "positive": "down"}
    whole = era5().assign(t=u(*dims))
    level = ("pressure_level", [850.0, 500.0], levels)
    return whole.assign_coords(pressure_level=level)


def cmip(calendar="noleap"):
    dims = ("time", 8), ("lat", 4), ("lon", 5)
    about = {"axis": "T", "bounds": "time_bnds", "standard_name": "time"}
    about |= {"units": "days since 1850-01-01", "calendar": calendar}
    return xarray.Dataset(
        {
            "tas": u(*dims, cell_measures="area: areacella", cell_methods="time: mean"),
            "lat_bnds": u(("lat", 4), ("bnds", 2)),
            "lon_bnds": u(("lon", 5), ("bnds", 2)),
            "time_bnds": u(("time", 8), ("bnds", 2)),
        },
        {
            "time": ("time", 0.5 + np.arange(8), about),
            "lat": ("lat", LAT[::-1], NORTH | {"axis": "Y", "bounds": "lat_bnds"}),
            "lon": ("lon", LON, EAST | {"axis": "X", "bounds": "lon_bnds"}),
            "height": ((), 2.0, {"axis": "Z", "units": "m", "positive": "up"}),
        },
    )


def wrf():
    """Without attributes of CF: places along time, times as text, staggered axes."""
    mass = ("Time", 8), ("south_north", 4), ("west_east", 5)
    edge = ("Time", 8), ("bottom_top", 3), ("south_north", 4), ("west_east_stag", 6)
    where = {"units": "degree_north"}, {"units": "degree_east"}
    dims, here = [name for name, _ in mass], np.ones((8, 1, 1), "f4")
    staggered, wide = [dims[0], dims[1], "west_east_stag"], np.arange(6.0)
    text = [f"2020-01-01_{hour:02d}:00:00" for hour in range(8)]
    return xarray.Dataset(
        {
            "Times": ("Time", np.array(text, "S19")),
            "XLAT": (dims, here * Y, where[0]),
            "XLONG": (dims, here * X, where[1]),
            "XLAT_U": (staggered, here * Y[:, :1] * np.ones(6, "f4"), where[0]),
            "XLONG_U": (staggered, here * np.arange(4)[:, None] * wide, where[1]),
            "T2": u(*mass, coordinates="XLONG XLAT XTIME", units="K"),
            "U": u(*edge, coordinates="XLONG_U XLAT_U XTIME"),
            "HGT": (dims, here * X),
            "ITIMESTEP": ("Time", np.arange(8, dtype="i4")),
        }
    )


def roms():
    def grid(letter, ny, nx):
        dims = (f"eta_{letter}", ny), (f"xi_{letter}", nx)
        names = (f"lat_{letter}", NORTH), (f"lon_{letter}", EAST)
        return {name: u(*dims, **about) for name, about in names}

    rho, time = (("eta_rho", 4), ("xi_rho", 5)), ("ocean_time", 8)
    about = {"standard_name": "ocean_s_coordinate_g2", "positive": "up"}
    about["formula_terms"] = "s: s_rho C: Cs_r eta: zeta depth: h depth_c: hc"
    mask = {"flag_values": np.array([0.0, 1.0]), "flag_meanings": "land water"}
    return xarray.Dataset(
        {
            "zeta": u(time, *rho, coordinates="lon_rho lat_rho ocean_time"),
            "temp": u(time, ("s_rho", 3), *rho, coordinates="lon_rho lat_rho s_rho"),
            "u": u(time, ("s_rho", 3), ("eta_u", 4), ("xi_u", 4)),
            "mask_rho": (["eta_rho", "xi_rho"], np.ones((4, 5)), mask),
            "h": u(*rho),
            "Cs_r": u(("s_rho", 3)),
            "hc": ((), 5.0),
            **grid("rho", 4, 5),
            **grid("u", 4, 4),
            **grid("psi", 3, 4),
        },
        {"ocean_time": TIMES, "s_rho": ("s_rho", [-0.8, -0.5, -0.1], about)},
    )


def nemo():
    """With axes called x and y that have no coordinates."""
    dims, depth = (("time_counter", 8), ("y", 4), ("x", 5)), ("deptht", 3)
    about = {"axis": "Z", "units": "m", "positive": "down", "bounds": "deptht_bounds"}
    where = {"coordinates": "time_centered nav_lat nav_lon"}
    time = {"standard_name": "time"}
    return xarray.Dataset(
        {
            "nav_lon": (["y", "x"], X.astype("f4"), EAST),
            "nav_lat": (["y", "x"], Y.astype("f4"), NORTH),
            "sossheig": u(*dims, **where),
            "votemper": u(dims[0], depth, *dims[1:], **where),
            "deptht_bounds": u(depth, ("axis_nbounds", 2)),
        },
        {
            "time_counter": ("time_counter", TIMES, time | {"axis": "T"}),
            "time_centered": ("time_counter", TIMES, time),
            "deptht": ("deptht", [0.5, 1.5, 2.5], about),
        },
    )


def griddap():
    dims = ("time", 8), ("altitude", 1), ("latitude", 4), ("longitude", 5)
    altitude = ("altitude", [0.0], {"axis": "Z", "positive": "up"})
    sst = u(*dims, _FillValue=np.float32(-9999999))
    return xarray.Dataset({"sst": sst}, {"time": TIMES, "altitude": altitude} | PLACES)


def mpas():
    text = np.array([f"0001-01-{day:02d}_00:00:00".ljust(64) for day in range(1, 9)])
    cell = ("nCells", 20)
    return xarray.Dataset(
        {
            "xtime": ("Time", text.astype("S64")),
            "latCell": u(cell, units="rad"),
            "lonCell": u(cell, units="rad"),
            "ssh": u(("Time", 8), cell),
            "temperature": u(("Time", 8), cell, ("nVertLevels", 3)),
            "normalVelocity": u(("Time", 8), ("nEdges", 30)),
            "areaCell": u(cell),
            "verticesOnCell": (["nCells", "maxEdges"], np.zeros((20, 6), "i4")),
        }
    )


def fvcom():
    """Nodes and cells with coordinates in degrees and in metres, and sigma levels."""
    time, node, nele, level = ("time", 8), ("node", 20), ("nele", 30), ("siglay", 3)
    return xarray.Dataset(
        {
            **{name: u(node, units="meters") for name in "xy"},
            **{name: u(nele, units="meters") for name in ("xc", "yc")},
            "lon": u(node, **EAST),
            "lat": u(node, **NORTH),
            "lonc": u(nele, **EAST),
            "latc": u(nele, **NORTH),
            "siglay": u(level, node, standard_name="ocean_sigma/general_coordinate"),
            "nv": (["three", "nele"], np.ones((3, 30), "i4")),
            "h": u(node, coordinates="lat lon"),
            "zeta": u(time, node, coordinates="time lat lon"),
            "temp": u(time, level, node, coordinates="time siglay lat lon"),
            "ua": u(time, nele, coordinates="time latc lonc"),
            "Times": ("time", TIMES.astype(str).astype("S26")),
        },
        {"time": TIMES},
    )


def ugrid():
    """D-Flow FM and others: fields at faces and edges of a mesh of UGRID."""
    time, face, edge = ("time", 8), ("faces", 20), ("edges", 30)
    places = {
        f"mesh_{at}_{axis}": u(dim, standard_name=f"projection_{axis}_coordinate")
        for at, dim in (("node", ("nodes", 25)), ("face", face), ("edge", edge))
        for axis in "xy"
    }
    about = {"cf_role": "mesh_topology", "topology_dimension": 2}
    about |= {"face_node_connectivity": "faces_of", "node_coordinates": "mesh_node_x"}
    return xarray.Dataset(
        {
            **places,
            "mesh": ((), np.int32(0), about),
            "faces_of": (["faces", "corners"], np.ones((20, 4), "i4")),
            "s1": u(time, face, coordinates="mesh_face_x mesh_face_y"),
            "u1": u(time, edge, coordinates="mesh_edge_x mesh_edge_y"),
            "bl": u(face, coordinates="mesh_face_x mesh_face_y"),
        },
        {"time": TIMES},
    )


def adcirc():
    """As ``fort.63.nc``, whose elements the mesh names."""
    node, about = ("node", 20), {"cf_role": "mesh_topology", "topology_dimension": 2}
    about |= {"node_coordinates": "x y", "face_node_connectivity": "element"}
    return xarray.Dataset(
        {
            "x": u(node, **EAST),
            "y": u(node, **NORTH),
            "element": (["nele", "nvertex"], np.ones((30, 3), "i4")),
            "adcirc_mesh": ((), np.int32(0), about),
            "depth": u(node, coordinates="time y x"),
            "zeta": u(("time", 8), node, coordinates="time y x"),
        },
        {"time": TIMES},
    )


def e3sm():
    time, cell = ("time", 8), ("ncol", 20)
    fields = {
        "TS": u(time, cell),
        "T": u(time, ("lev", 3), cell),
        "lat": u(cell, **NORTH),
        "lon": u(cell, **EAST),
        "area": u(cell),
        "hyam": u(("lev", 3)),
        "date": ("time", 20000101 + np.arange(8, dtype="i4")),
        "co2vmr": u(time),
        "time_bnds": u(time, ("nbnd", 2)),
    }
    coords = {"time": cmip().time, "lev": [100.0, 500.0, 1000.0]}
    return xarray.Dataset(fields, coords)


def icon():
    """With radians, and times as CDO writes them."""
    about = {"units": "day as %Y%m%d.%f", "axis": "T", "standard_name": "time"}
    cell, corners = ("ncells", 20), ("vertices", 3)
    radian = {"units": "radian"}
    return xarray.Dataset(
        {
            "t_2m": u(("time", 8), cell, coordinates="clat clon"),
            "clon": u(cell, **EAST | radian | {"bounds": "clon_bnds"}),
            "clat": u(cell, **NORTH | radian | {"bounds": "clat_bnds"}),
            "clon_bnds": u(cell, corners),
            "clat_bnds": u(cell, corners),
        },
        {"time": ("time", 20200101 + np.arange(8) / 4 % 1 + np.arange(8) // 4, about)},
    )


def copernicus():
    dims = ("time", 8), ("latitude", 4), ("longitude", 5)
    bits = {"flag_masks": np.array([1, 2, 4], "i1"), "flag_meanings": "water land ice"}
    error = "sea_surface_foundation_temperature standard_error"
    fields = {
        "analysed_sst": u(*dims),
        "analysis_error": u(*dims, standard_name=error),
        "mask": ([name for name, _ in dims], np.ones(SHAPE, "i1"), bits),
    }
    return xarray.Dataset(fields, {"time": TIMES} | PLACES)


def cfgrib(steps=False):
    """As cfgrib opens GRIB, of analyses or of forecasts."""
    dims = ("time", 8), ("latitude", 4), ("longitude", 5)
    dims = (dims[0], ("step", 3), *dims[1:]) if steps else dims
    step = np.arange(3) * np.timedelta64(6, "h").astype("m8[ns]")
    about = {"standard_name": "forecast_period"}
    coords = {
        "time": ("time", TIMES, {"standard_name": "forecast_reference_time"}),
        "step": ("step", step, about) if steps else ((), step[0], about),
        "number": ((), 0),
        "surface": ((), 0.0),
    }
    when = TIMES[:, None] + step if steps else TIMES
    valid = (["time", "step"][: 1 + steps], when, {"standard_name": "time"})
    coords |= {"valid_time": valid} | PLACES
    return xarray.Dataset({"t2m": u(*dims)}, coords)


@pytest.mark.parametrize("way", ["file", "memory"])
@pytest.mark.parametrize(
    ("program", "columns", "names", "shape", "step"),
    [
        (era5, {}, ["t2m"], (1, 20, 2), 21600),
        (era5_levels, {"field": "t2m"}, ["t2m"], (1, 20, 2), 21600),
        (era5_levels, {"field": "t", "z": "pressure_level"}, ["t"], (1, 40, 3), 21600),
        (cmip, {}, ["tas"], (1, 20, 2), 1),
        (wrf, {"field": "T2"}, ["T2"], (1, 20, 2), 3600),
        (wrf, {"field": "U", "z": "bottom_top"}, ["U"], (1, 72, 3), 3600),
        (roms, {"field": "zeta"}, ["zeta"], (1, 20, 2), 21600),
        (roms, {"field": "temp", "z": "s_rho"}, ["temp"], (1, 60, 3), 21600),
        (roms, {"field": "temp", "sample": "s_rho"}, ["temp"], (3, 20, 2), 21600),
        (nemo, {"field": "sossheig"}, ["sossheig"], (1, 20, 2), 21600),
        (nemo, {"field": "votemper"}, ["votemper"], (1, 60, 3), 21600),
        (griddap, {}, ["sst"], (1, 20, 2), 21600),
        (
            mpas,
            {"field": "ssh", "x": "lonCell", "y": "latCell"},
            ["ssh"],
            (1, 20, 2),
            86400,
        ),
        (fvcom, {"field": "zeta"}, ["zeta"], (1, 20, 2), 21600),
        (fvcom, {"field": "ua"}, ["ua"], (1, 30, 2), 21600),
        (fvcom, {"field": "temp", "sample": "siglay"}, ["temp"], (3, 20, 2), 21600),
        (fvcom, {"field": "temp", "z": "siglay"}, ["temp"], (1, 60, 3), 21600),
        (ugrid, {"field": "s1"}, ["s1"], (1, 20, 2), 21600),
        (ugrid, {"field": "u1"}, ["u1"], (1, 30, 2), 21600),
        (adcirc, {}, ["zeta"], (1, 20, 2), 21600),
        (e3sm, {"field": "TS"}, ["TS"], (1, 20, 2), 1),
        (e3sm, {"field": "T", "z": "lev"}, ["T"], (1, 60, 3), 1),
        (icon, {}, ["t_2m"], (1, 20, 2), 21600),
        (copernicus, {}, ["analysed_sst"], (1, 20, 2), 21600),
        (cfgrib, {}, ["t2m"], (1, 20, 2), 21600),
    ],
)
def test_programs_that_write_netcdf(
    program, columns, names, shape, step, way, tmp_path
):
    dataset = program()
    if way == "file":
        dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
        fields = nfsgeo.open(tmp_path / "a.nc", columns=columns)
    else:
        fields = nfsgeo.from_xarray(dataset, columns=columns)
    assert fields.component_names == names and not fields.forcing_names
    assert (fields.num_samples, *fields.coordinates().shape) == shape
    np.testing.assert_allclose(np.diff(fields.times), step)
    fields.check_known()
    name = names[0]
    wanted = np.sort(dataset[name].values.ravel())
    found = [fields.read(s, slice(None)) for s in range(fields.num_samples)]
    np.testing.assert_array_equal(np.sort(np.ravel(found)), wanted)


def test_forecasts_by_cfgrib():
    """A sample for each start, lead times as times."""
    columns = {"time": "step", "sample": "time"}
    fields = nfsgeo.from_xarray(cfgrib(steps=True), columns=columns)
    assert fields.num_samples == 8 and len(fields.times) == 3


@pytest.mark.parametrize("program", [icon, mpas])
def test_radians_become_degrees(program):
    columns = {"field": "ssh", "x": "lonCell", "y": "latCell"}
    dataset = program()
    fields = nfsgeo.from_xarray(dataset, columns=columns if program is mpas else None)
    name = "lonCell" if program is mpas else "clon"
    x = np.degrees(dataset[name].values)
    np.testing.assert_allclose(fields.coordinates()[:, 0], x, rtol=1e-6)


@pytest.mark.parametrize(("field", "grid"), [("T2", ""), ("T2", "_M"), ("U", "_U")])
@pytest.mark.parametrize("unit", [None, "degrees longitude"])
def test_places_of_wrf_without_units_of_cf(field, grid, unit, tmp_path):
    """Names tell longitudes and latitudes, as after NCO, and in files of geogrid."""
    dataset, columns = (
        wrf(),
        {"field": field, **({"z": "bottom_top"} if grid == "_U" else {})},
    )
    expected = nfsgeo.from_xarray(dataset, columns=columns)
    if grid == "_M":
        dataset = dataset.rename(XLAT="XLAT_M", XLONG="XLONG_M")
        dataset["T2"].attrs["coordinates"] = "XLONG_M XLAT_M"
    for name in (name for name in dataset if name.startswith("XL")):
        dataset[name].attrs = {"units": unit} if unit else {}
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    fields = nfsgeo.open(tmp_path / "a.nc", columns=columns)
    np.testing.assert_array_equal(fields.coordinates(), expected.coordinates())
    assert fields.dataset["x"].attrs["standard_name"] == "longitude"
