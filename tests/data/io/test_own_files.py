"""nfsgeo's own file gives back what was written, or says in a line what is wrong."""

import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.data import Fields

TIMES = np.arange(50.0)
relaxed = settings(max_examples=20)


@pytest.mark.slow
@relaxed
@given(data=st.data())
def test_every_layout_comes_back(any_fields, contents, tmp_path, data):
    fields, samples = data.draw(any_fields)
    path, once, again = (tmp_path / f"{name}.nc" for name in "abc")
    for each in (path, once, again):
        each.unlink(missing_ok=True)
    told: list[tuple[str, int, int]] = []
    expected = contents(fields)
    fields.write(path, progress=lambda *report: told.append(report))
    assert told[-1] == ("writing samples", len(samples), len(samples))
    with nfsgeo.data.open(path) as found:
        assert contents(found) == expected
        assert found.domain_is_known == fields.domain_is_known
        assert found.reopens and set(found.dataset) >= set(fields.dataset)
        for name in ("u0", "start"):
            assert found.dataset[name].dtype == fields.dataset[name].dtype
        found.write(once)
        found.with_known(["u1"]).write(again)
    assert contents(once) == expected
    with nfsgeo.data.open(again) as found:
        assert sorted(found.forcing_names) == ["sun", "u1"]


RNG = np.random.default_rng(0)
DOCS = Path(__file__).parents[3] / "docs" / "formats.md"
LAYOUT = int(re.search(r"`nfsgeo_layout` of the file, (\d+)", DOCS.read_text())[1])
AT = {"point": 5, "obs": 7, "sample": 3, "time": 4, "x": 6, "y": 2}


def of(dims, role="field", **about):
    return (dims, RNG.random([AT[dim] for dim in dims]), {"role": role, **about})


def corners(*rows):
    return np.array(rows, "i4")


TIME = {"time": ("time", np.arange(4.0))}
CLOUD = (
    TIME | {a: ("point", RNG.random(5)) for a in "xy"} | {"u": of(["time", "point"])}
)
GRID = TIME | {a: (a, np.arange(float(AT[a]))) for a in "xy"}
GRID |= {"u": of(["sample", "time", "x", "y"])}
RAGGED = TIME | {a: ("obs", RNG.random(7)) for a in "xy"} | {"u": of(["time", "obs"])}
RAGGED |= {"row_size": ("sample", [2, 3, 2])}
PAIRS = ("edge", "end"), corners([0, 1], [1, 0], [0, 1])
TRIANGLES = ("cell_triangle", "corner_triangle"), corners([0, 1, 2], [1, 2, 3])
LINES = ("cell_line", "corner_line"), corners([0, 1], [1, 2], [0, 1])
BOX = {"lower": 0.0, "upper": 8.0, "periodic": 0}
GLOBE = {"x": {"lower": 0.0, "upper": 360.0, "periodic": 1}}
GLOBE["y"] = {"lower": -90.0, "upper": 90.0, "periodic": 0}
SIDES = np.array([[5.0, 5.0], [6.0, 5.0], [5.0, 6.0]])
FACETS = ("facet", "corner", "axis"), np.stack([SIDES, np.roll(SIDES, 1, 0)], 1)
ROWS = [  # of the table in docs/formats.md: variables and attributes, and what is read
    (GRID | {"part": ("sample", [2, 0, 1])}, {}, lambda f: f.split["test"] == [0]),
    (
        GRID | {"part": ("sample", ["train", "unused", "valid"])},
        {},
        lambda f: f.split["valid"] == [2],
    ),
    (
        CLOUD | {"time": ("time", np.datetime64("2026-01-01") + np.arange(4))},
        {},
        lambda f: f.times[1] == 1767225600 + 86400,
    ),
    (GRID, {}, lambda f: f.shape == (6, 2) and f.num_samples == 3),
    (CLOUD, {}, lambda f: f.shape is None and f.num_points(0) == 5),
    (
        TIME
        | {
            a: (("sample", "point"), [[0.0, 1.0, np.nan], [2.0, 3.0, 4.0]])
            for a in "xy"
        }
        | {"u": (("sample", "point"), [[0, 1, np.nan], [2, 3, 4]], {"role": "field"})},
        {},
        lambda f: [f.num_points(n) for n in (0, 1)] == [2, 3],
    ),
    (
        RAGGED,
        {},
        lambda f: (
            [f.num_points(n) for n in range(3)] == [2, 3, 2]
            and (f[1].coordinates(0) == f.coordinates(1)).all()
            and (f[1:].read(0, slice(None)) == f.read(1, slice(None))).all()
        ),
    ),
    (
        CLOUD | {a: (*CLOUD[a], BOX) for a in "xy"},
        {},
        lambda f: f.domain.upper == (8.0, 8.0),
    ),
    (
        CLOUD | {a: (*CLOUD[a], GLOBE[a]) for a in "xy"},
        {"sphere": 1},
        lambda f: f.domain.curved,
    ),
    (
        CLOUD
        | {a: (*CLOUD[a], BOX) for a in "xy"}
        | {"region": (*FACETS, {"inside": 0})},
        {},
        lambda f: f.domain.region is not None,
    ),
    (
        CLOUD
        | {"f": of(["time", "point"], "known"), "re": of(["sample"], "known")}
        | {"k": of(["point"], "static"), "u0": of(["point"], "initial condition")}
        | {"nu": of(["sample"], "parameter")},
        {},
        lambda f: (
            (f.forcing_names, f.scalar_names, f.static_names) == (["f"], ["re"], ["k"])
            and f.names_of("parameter") == ["nu"]
            and f.names_of("initial condition") == ["u0"]
        ),
    ),
    (
        CLOUD | {"node_type": ("point", corners(*range(5)), {"role": "static"})},
        {},
        lambda f: "node_type" in f.categories,
    ),
    (
        CLOUD
        | {
            "wall": (
                "point",
                corners(0, 1, 1, 0, 0),
                {
                    "role": "static",
                    "flag_values": corners(0, 1),
                    "flag_meanings": "no yes",
                },
            )
        },
        {},
        lambda f: f.categories["wall"] == {0: "no", 1: "yes"},
    ),
    (CLOUD | {"cells_triangle": TRIANGLES}, {}, lambda f: len(f.triangles(0)) == 2),
    (
        RAGGED | {"cells_line": LINES, "row_size_line": ("sample", [1, 1, 1])},
        {},
        lambda f: (
            f.cells(1)["line"].tolist() == [[1, 2]]
            and f[1].cells(0)["line"].tolist() == [[1, 2]]
        ),
    ),
    (
        CLOUD | {"edges": PAIRS, "edge_weight": ("edge", [1.0, 2.0, 3.0])},
        {},
        lambda f: (
            f.graph(0)[0].tolist() == [[0, 1, 0], [1, 0, 1]]
            and f.graph(0)[1].tolist() == [1, 2, 3]
        ),
    ),
    (
        RAGGED | {"edges": PAIRS, "row_size_edge": ("sample", [1, 1, 1])},
        {},
        lambda f: (
            f.graph(1)[0].tolist() == [[1], [0]]
            and f[1].graph(0)[0].tolist() == [[1], [0]]
        ),
    ),
    (
        CLOUD | {"u": of(["time", "point"], units="K")},
        {},
        lambda f: f.units["u"] == "K",
    ),
]


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy", None])
@pytest.mark.parametrize(("variables", "attrs", "holds"), ROWS)
def test_files_that_xarray_writes_as_the_table_says(
    variables, attrs, holds, engine, tmp_path
):
    """Rows of the table of the documentation, of files without any other attribute."""
    dataset = xarray.Dataset(variables, attrs={"nfsgeo_layout": LAYOUT, **attrs})
    if engine is None:
        fields = nfsgeo.from_xarray(dataset)
    else:
        dataset.to_netcdf(tmp_path / "a.nc", engine=engine)
        fields = nfsgeo.open(tmp_path / "a.nc")
    assert holds(fields) and fields.component_names == ["u"]
    again = nfsgeo.open(fields.write(tmp_path / "b.nc"))
    assert holds(again)


def test_names_of_stations_of_each_sample_come_back(tmp_path):
    points = [np.arange(2.0)[:, None], np.arange(3.0)[:, None]]
    u = [np.zeros((2, 1)), np.zeros((3, 1))]
    names = ["Ost", "Süd", "Ost", "West", "Süd"]
    fields = build(tmp_path, [Array(u, "pc", ["u"])], points=points, stations=names)
    path = fields.write(tmp_path / "a.nc")
    opened = [nfsgeo.data.open(path), nfsgeo.from_xarray(xarray.open_dataset(path))]
    for i, found in enumerate(opened):
        again = nfsgeo.data.open(found.write(tmp_path / f"{i}.npz"))
        for each in (found, again):
            assert [*each.stations(0), *each.stations(1)] == names


def test_chunks_are_small_and_have_checksums(tmp_path):
    u = np.zeros((2, 600, 1000), "f4")
    axes, path = [np.arange(1000.0)], tmp_path / "a.nc"
    fields = build(path, [Array(u, "ntx", ["u"])], axes=axes, times=np.arange(600))
    fields.write(path)
    with h5py.File(path) as file:
        found = file["u"]
        assert found.fletcher32 and file["x"].fletcher32 and file["time"].fletcher32
        assert found.chunks[0] == 1 and 1e5 < 4 * np.prod(found.chunks) <= 2**19
    assert path.stat().st_size < 1.05 * u.nbytes


@relaxed
@given(share=st.floats(0, 1, exclude_max=True))
@pytest.mark.parametrize("kind", ["grid_case", "point_case"])
def test_truncated_files_are_refused(request, tmp_path, one_line, kind, share):
    raw = request.getfixturevalue(kind).path.read_bytes()
    (other := tmp_path / "broken.nc").write_bytes(raw[: int(share * len(raw))])
    assert "broken.nc" in one_line(nfsgeo.data.open, other)


def test_values_that_have_changed_are_refused(grid_case, contents, one_line):
    with h5py.File(grid_case.path) as file:
        place = file["u"].id.get_chunk_info(0).byte_offset
    raw = bytearray(grid_case.path.read_bytes())
    raw[place] ^= 1
    grid_case.path.write_bytes(raw)
    one_line(contents, grid_case.path)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["x"].write_direct(np.arange(6.0)[::-1].copy()),
        lambda f: f.attrs.update(nfsgeo_layout=5),
        lambda f: f.attrs.update(nfsgeo_layout="x"),
        lambda f: f["u"].attrs.__delitem__("role"),
    ],
)
def test_contradictions_are_found(grid_case, one_line, change):
    with h5py.File(grid_case.path, "r+") as file:
        change(file)
    assert str(grid_case.path) in one_line(nfsgeo.data.open, grid_case.path)


def test_other_files_are_refused(tmp_path, one_line):
    path = tmp_path / "other.h5"
    for content in (b"", b"not fields", b"\x89HDF\r\n\x1a\n"):
        path.write_bytes(content)
        one_line(nfsgeo.data.open, path)
    one_line(nfsgeo.data.open, tmp_path / "nowhere")
    for text in ("nfsgeo", b"nfsgeo"):  # before files were NetCDF
        with h5py.File(path, "w") as file:
            file.attrs["format"] = text
            file["fields/u"] = np.zeros((2, 3, 4, 1))
        assert "an older nfsgeo" in one_line(nfsgeo.data.open, path)


def test_names_that_are_not_free(grid_case, tmp_path, one_line):
    taken = tmp_path / "taken.nc"
    taken.write_text("mine")
    fields = grid_case.make()
    one_line(fields.write, taken)
    assert taken.read_text() == "mine"
    one_line(fields.write, tmp_path / "no" / "a.nc")
    message = one_line(fields.write, tmp_path / "out.words")
    assert ".nc" in message and "out.words" in message
    assert {each.name for each in tmp_path.iterdir()} == {"grid.nc", "taken.nc"}


def test_a_disk_that_fills_up(mounted, one_line):
    folder, axes = mounted("4m"), [np.arange(1000.0)]
    u = np.random.default_rng(0).random((40, 50, 1000))

    def fields(samples: int) -> Fields:
        return build(folder, [Array(u[:samples], "ntx", ["u"])], axes=axes, times=TIMES)

    def fill(*_: object) -> None:
        free = shutil.disk_usage(folder).free
        (folder / "other").write_bytes(b"0" * free)

    assert "16.0 MB" in one_line(fields(40).write, folder / "a.nc")
    assert not list(folder.iterdir())
    message = one_line(fields(5).write, folder / "a.nc", progress=fill)
    assert "disk is full" in message
    assert [each.name for each in folder.iterdir()] == ["other"]
    (folder / "other").unlink()
    assert fields(5).write(folder / "a.nc").exists()


def test_what_xarray_packed_and_counts_in_other_units_is_read_as_it_is(tmp_path):
    days = np.datetime64("2001-01-01") + np.arange(6)
    u = np.random.default_rng(0).random((2, 5, 6)).round(3)
    given = nfsgeo.from_arrays(u, np.random.default_rng(1).random((5, 2)), days)
    path = tmp_path / "again.nc"
    with xarray.open_dataset(given.write(tmp_path / "once.nc")) as found:
        encoding = {"u": {"dtype": "i4", "scale_factor": 0.001, "add_offset": 0.5}}
        encoding["time"] = {"units": "hours since 1900-01-01", "dtype": "f8"}
        found.drop_encoding().to_netcdf(path, encoding=encoding, engine="h5netcdf")
    with nfsgeo.open(path) as again:
        np.testing.assert_allclose(again.read(1, slice(None))[..., 0], u[1], atol=1e-9)
        assert again.times.tolist() == given.times.tolist()
        assert again.units == given.units
