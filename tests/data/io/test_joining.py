"""Several files as one: as samples or time steps, in order, all of one kind."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.config import DataSection
from nfsgeo.data import Fields
from nfsgeo.data.conventions import STATIC
from nfsgeo.data.io.from_memory import saved_path
from nfsgeo.data.io.joining import concatenated
from nfsgeo.data.io.opening import takes_columns
from nfsgeo.geometry import Domain
from nfsgeo.training.source import check_in_place, files_as_they_are, open_source

RNG = np.random.default_rng(0)


def cloud(
    path: Path, points: np.ndarray, steps: int = 2, num: int = 1, first: float = 0
) -> np.ndarray:
    """Samples of one component, ``[num, n, steps, 1]``."""
    u = RNG.normal(size=(num, len(points), steps, 1))
    times = first + np.arange(steps)
    build(path, [Array(u, "nptc", ["u"])], points=points, times=times).write(path)
    return u


def snapshot(path: Path, times: Sequence[float], value: float) -> Path:
    """A table of two points whose field counts on from ``value``."""
    rows = ["x,t,u" if times else "x,u"]
    for step, time in enumerate([f"{t}," for t in times] or [""]):
        rows += [f"{x},{time}{value + step + x / 4}" for x in (0.0, 1.0)]
    path.write_text("\n".join(rows))
    return path


def values(sources: list[Path] | Path, **options: Any) -> list[float]:
    fields = nfsgeo.data.open(sources, series="time-steps", **options)
    return np.floor(fields.read(0, slice(None))[0, :, 0]).tolist()


def test_a_list_as_a_shell_gives_it_is_in_the_order_of_the_numbers(tmp_path):
    paths = [snapshot(tmp_path / f"step_{k}.csv", [], k) for k in range(12)]
    times = np.arange(12.0)
    for given_ in (sorted(paths, key=str), paths, tmp_path):
        assert values(given_, times=times) == times.tolist()
    backwards = [float(k) for k in reversed(range(12))]
    assert values(paths[::-1], times=times) == backwards  # as somebody chose


def test_a_pattern_in_quotation_marks_is_the_files_that_it_matches(tmp_path, one_line):
    """Also as the data of a run; a file of such a name is that file alone."""
    times = np.arange(3.0)
    (folder := tmp_path / "run_0").mkdir()
    for number in (10, 2, 1):
        snapshot(folder / f"step_{number}.csv", [], number)
    for pattern in (folder / "step_*.csv", tmp_path / "run_*"):
        assert values(pattern, times=times) == [1, 2, 10]
        check_in_place(DataSection(file=pattern), tmp_path)
    (folder / "dead_1.csv").symlink_to(folder / "nothing")
    assert values(str(folder / "[ds]*_1*.csv"), times=times[:2]) == [1, 10]
    named = snapshot(folder / "step_[1].csv", [], 7)
    assert values(named, times=times[:1]) == [7]
    assert len(files_as_they_are(DataSection(file=folder / "step_?.csv"))) == 2
    assert "matches no file" in one_line(values, folder / "step_*.vtu")


def test_every_table_is_parsed_once(tmp_path, monkeypatch):
    """However many files and fields there are, and with a file of test samples."""
    parsed, read = list[Any](), pandas.read_csv

    def counted(source: Any, **options: Any) -> Any:
        parsed.append(source)
        return read(source, **options)

    monkeypatch.setattr(pandas, "read_csv", counted)
    for k in range(20):
        rows = [f"{x},{t},{x + t},{t - k},{x * t}" for x in range(3) for t in range(3)]
        (tmp_path / f"{k}.csv").write_text("\n".join(["x,t,u,v,w", *rows]))
    fields = nfsgeo.data.open(tmp_path)
    for sample in (*range(20), *range(20)):
        assert fields.read(sample, slice(None))[0, 0, 1] == -sample
    assert len(parsed) == 20
    rows = [f"{k},{x},{k + x}" for k in range(8) for x in range(3)]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_text("\n".join(["sample,x,u", *rows]))
    both = open_source(DataSection(file=files[0], test_file=files[1]))
    assert both.split["test"].tolist() == [*range(8, 16)]
    assert both.read(15, slice(None))[:, 0, 0].tolist() == [7, 8, 9]
    assert len(parsed) == 22


def test_times_tell_the_order(tmp_path, one_line):
    for k, month in enumerate(("jan", "feb", "mar", "apr")):
        snapshot(tmp_path / f"{month}.csv", [2 * k, 2 * k + 1], 2 * k)
    fields = nfsgeo.data.open(tmp_path, series="time-steps")
    assert fields.times.tolist() == list(range(8))
    assert np.floor(fields.read(0, slice(3, 6))[0, :, 0]).tolist() == [3, 4, 5]
    snapshot(tmp_path / "may.csv", [7, 8], 7)
    message = one_line(nfsgeo.data.open, tmp_path, series="time-steps")
    assert "apr.csv until t = 7 and " in message and "may.csv from t = 7 on" in message


def test_files_become_samples_in_the_order_of_their_numbers(tmp_path, sent):
    folder, made = tmp_path / "run", {}
    folder.mkdir()
    for number in (10, 2, 1):
        points = RNG.random((3 + number % 3, 2)) + number
        made[number] = points, cloud(folder / f"case_{number}.nc", points, num=2)
    fields = nfsgeo.data.open(folder)
    assert fields.reopens and fields.path == saved_path(fields) == folder
    assert not takes_columns(folder)
    copy = nfsgeo.data.open(fields.write(tmp_path / "out.nc"))
    for each in (fields, copy, sent(fields)):
        assert each.num_samples == 6
        for place, number in enumerate((1, 2, 10)):
            points, u = made[number]
            for k in range(2):
                sample = 2 * place + k
                np.testing.assert_array_equal(each.coordinates(sample), points)
                np.testing.assert_array_equal(each.read(sample, slice(None)), u[k])
                some = each.read(sample, slice(1, 2), np.array([2, 0]))
                np.testing.assert_array_equal(some, u[k][[2, 0], 1:])
        assert each.sample_mesh.tolist() == [0, 0, 1, 1, 2, 2]
        assert each.domain.lower[0] < 2 and each.domain.upper[0] > 10


def test_times_that_do_not_fit(tmp_path, one_line):
    paths = [snapshot(tmp_path / f"{k}.csv", [2 * k, 2 * k + 1], k) for k in range(3)]
    assert len(values(paths, times=2 * np.arange(6.0))) == 6
    for times in (np.arange(5.0), np.arange(6.0)[::-1], [0.0, np.nan, 2, 3, 4, 5]):
        one_line(nfsgeo.data.open, paths, times=times, series="time-steps")


@settings(max_examples=20)
@given(
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    timed=st.lists(st.booleans(), min_size=4, max_size=4),
    spaced=st.lists(st.sampled_from(["xy", "x", "yx"]), min_size=4, max_size=4),
)
def test_what_a_file_does_not_vary_along(steps, timed, spaced):
    """A variable may be constant in some files, or have its axes in another order."""
    axes, made, whole = [np.arange(3.0), np.arange(2.0)], {}, []
    for k, num in enumerate(steps):
        letters = "t" * timed[k] + spaced[k]
        full = {"t": num, "x": 3, "y": 2}
        u = RNG.normal(size=[full[letter] for letter in letters])
        times = sum(steps[:k]) + np.arange(float(num))
        path, v = Path(f"{k}.nc"), np.zeros(num) + k
        arrays = [Array(u, letters, ["u"]), Array(v, "t", ["v"])]
        made[path] = build(path, arrays, axes=axes, times=times)
        order = [letters.index(letter) for letter in "txy" if letter in letters]
        shape = [full[letter] if letter in letters else 1 for letter in "txy"]
        wide = np.broadcast_to(u.transpose(order).reshape(shape), (num, 3, 2))
        whole.append(wide.reshape(num, 6))
    fields = concatenated(list(made), made.__getitem__, "time-steps")
    found = fields.read(0, slice(None))[..., 0].T
    np.testing.assert_array_equal(found, np.concatenate(whole))
    assert fields.times.tolist() == list(range(sum(steps)))
    each = np.repeat(range(len(steps)), steps)
    for some in (slice(0, None, 2), slice(0, 5), slice(len(each) // 2, None, 3)):
        np.testing.assert_array_equal(fields.read(0, some)[3, :, 1], each[some])


def test_samples_have_the_same_times_and_grid_but_for_rounding(
    grid_case, tmp_path, one_line
):
    """Hours are less than a millionth of the seconds since 1970."""
    day, made = np.datetime64("2026-06-30"), []
    for name, hour in (("a", 0), ("b", 3)):
        times = day + (hour + np.arange(2)) * np.timedelta64(1, "h")
        made.append(grid_case.make(grid_case.u[:, :2], times=times))
        made[-1].write(tmp_path / f"{name}.nc")
    paths = [tmp_path / "a.nc", tmp_path / "b.nc"]
    assert "other times" in one_line(nfsgeo.data.open, paths)
    for shift, fine in ((1e-7, True), (1e-3, False)):
        axes = [np.arange(6) / 2 + shift, np.linspace(-1, 1, 4)]
        domain = Domain((0.0, -1.0), (3.0, 1.0), (True, False))
        moved = grid_case.make(axes=axes, domain=domain).write(tmp_path / f"{shift}.nc")
        if fine:
            fields = nfsgeo.data.open([grid_case.path, moved])
            u = grid_case.u[2].reshape(5, 24, 2).swapaxes(0, 1)
            np.testing.assert_array_equal(fields.read(9, slice(None)), u)
            nu = fields.parameters["nu"]
            np.testing.assert_array_equal(nu, np.tile(np.arange(7) / 10, 2))
        else:
            message = one_line(nfsgeo.data.open, [grid_case.path, moved])
            assert "other grid" in message


@pytest.mark.slow
def test_files_of_other_units_or_domains_are_refused(grid_case, tmp_path, one_line):
    first = grid_case.make(units={"u": "K"}).write(tmp_path / "first.nc")
    for options, words in (
        ({"units": {"u": "degC"}}, "other units of u (degC, not K)"),
        ({"units": {"u": "K", "time": "h"}}, "other units of time (h, not none)"),
        ({"domain": Domain((0.0, -1.0), (4.0, 1.0), (True, False))}, "other domain"),
        ({"domain": Domain((0.0, -2.0), (3.0, 1.0), (False, False))}, "other domain"),
    ):
        other = grid_case.make(**options).write(tmp_path / "other.nc")
        assert words in one_line(nfsgeo.data.open, [first, other])
        other.unlink()
    other = grid_case.make(units={"v": "Pa"}).write(tmp_path / "other.nc")
    assert nfsgeo.data.open([first, other]).units == {"u": "K"}


def test_fields_in_another_order_are_taken_by_name(tmp_path):
    (tmp_path / "0.csv").write_text("x,u,v\n1,0,4\n2,3,5")
    (tmp_path / "1.csv").write_text("x,v,u\n1,4,1\n2,5,3")
    fields = nfsgeo.data.open(tmp_path, series="samples")
    assert fields.component_names == ["u", "v"]
    for i in range(2):
        assert fields.read(i, slice(None))[:, 0].tolist() == [[i, 4], [3, 5]]


@pytest.mark.parametrize("second", ["bcd", "bc", "xy"])
def test_names_of_stations_are_those_of_each_file(tmp_path, second):
    """Also where they are other names of the same places."""
    for name, stations in (("0", "ab"), ("1", second)):
        rows = [f"{station},{i},7" for i, station in enumerate(stations)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["station,x,u", *rows]))
    fields = nfsgeo.data.open(tmp_path, series="samples")
    path = fields.write(tmp_path / "both.nc")
    copy = shutil.copy(path, tmp_path / "copy.nc")
    twice = nfsgeo.data.open([path, copy], series="samples")
    for each, samples in ((fields, (0, 1)), (twice, (0, 1, 2, 3))):
        names = ["".join(each.stations(sample)) for sample in samples]
        assert names == ["ab", second] * (len(samples) // 2)


def test_files_of_different_kinds_are_refused(
    grid_case, point_case, tmp_path, one_line
):
    opened, steps = nfsgeo.data.open, {"series": "time-steps"}
    assert "with other" in one_line(opened, [grid_case.path, point_case.path])
    for path in (grid_case.path, point_case.path):
        copy = shutil.copy(path, tmp_path / f"copy{path.suffix}")
        assert "one sample a file" in one_line(opened, [path, copy], **steps)
    a, b, points = tmp_path / "a.nc", tmp_path / "b.nc", RNG.random((4, 2))
    for first, second, options, words in (
        ({}, {"steps": 3}, {}, "other times"),
        ({}, {"first": 2}, {}, "--series time-steps"),
        ({}, {"first": 2}, steps | {"times": [0.0, 1.0]}, "times"),
        ({"steps": 1}, {"steps": 1}, {}, "--series samples or --series time-steps"),
    ):
        for path, made in ((a, first), (b, second)):
            path.unlink(missing_ok=True)
            cloud(path, points, **made)
        assert words in one_line(opened, [a, b], **options)
    with pytest.raises(ValueError, match="time-steps"):
        opened(a, series="others")
    (tmp_path / "empty").mkdir()
    line = one_line(opened, tmp_path / "empty")
    assert f"{tmp_path / 'empty'}: expected at least one file" in line


def test_inputs_do_not_change_in_time(one_line):
    def made(path: Path) -> Fields:
        k = float(path.stem)
        u, a = Array(np.arange(4.0), "p", ["u"]), Array(still[k], "p", ["k"], STATIC)
        about = {"parameters": {"nu": [1.0], "seed": [k]}, "points": np.eye(4, 2)}
        return build(path, [u, a], times=[k], **about).with_known(["nu"])

    still = {0: np.ones(4), 1: np.ones(4)}
    paths = [Path("1"), Path("0")]
    fields = concatenated(paths, made, "time-steps")
    assert fields.times.tolist() == [0, 1] and fields.static_names == ["k"]
    assert fields.parameters.keys() == {"nu"} and fields.scalar_names == ["nu"]
    assert concatenated(paths[:1], made, "time-steps").times.tolist() == [1]
    still[1] = np.zeros(4)
    message = one_line(concatenated, paths, lambda path: made(path), "time-steps")
    assert "1 with k, which changes in time" in message


def test_decimal_numbers_in_names(tmp_path, one_line):
    times = [0.25, 0.5, 0.75, 1.0]
    for k, time in enumerate(times):
        snapshot(tmp_path / f"u_{time}.csv", [], k)
    message = one_line(nfsgeo.data.open, tmp_path, series="time-steps", times=times)
    assert "u_0.5.csv and u_0.25.csv" in message and "as many digits" in message
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(f"u_{float(path.stem[2:]):.2f}.csv"))
    assert values(tmp_path, times=times) == [0, 1, 2, 3]


def test_names_with_and_without_a_number(tmp_path):
    for k, name in enumerate(("u", "u2", "u10")):
        snapshot(tmp_path / f"{name}.csv", [], k)
    assert values(tmp_path, times=[0, 1, 2]) == [0, 1, 2]


@pytest.mark.parametrize("names", ["r_0 p_1", "run_1/a run_2/a", "a-t0 b-t0"])
@pytest.mark.parametrize("meshes", [True, False])
def test_single_steps_on_other_points_are_asked_about(
    names, meshes, tmp_path, one_line
):
    """Meshes with numbers in their names may be a series, and points with times."""
    paths = [tmp_path / f"{name}.{'vtu' if meshes else 'nc'}" for name in names.split()]
    for time, (path, num) in enumerate(zip(paths, (4, 5), strict=True)):
        path.parent.mkdir(exist_ok=True)
        points, cells = RNG.random((num, 3)), [("triangle", [[0, 1, 2], [1, 2, 3]])]
        if meshes:
            fields = {"u": RNG.random(num)}
            pytest.importorskip("meshio").Mesh(points, cells, fields).write(path)
        else:
            cloud(path, points[:, :2], steps=1, first=time)
    message = one_line(nfsgeo.data.open, paths)
    assert "--series samples" in message and "--series time-steps" in message
    apart = nfsgeo.data.open(paths, series="samples")
    assert apart.num_samples == 2 and apart.own_meshes
    message = one_line(nfsgeo.data.open, paths, series="time-steps")
    assert "interpolate" in message and "--series samples" in message


def test_shapes_without_numbers_are_samples(tmp_path, caplog):
    paths = [tmp_path / f"{name}.nc" for name in ("wing", "tail")]
    for path, num in zip(paths, (4, 5), strict=True):
        cloud(path, RNG.random((num, 2)), steps=1)
    assert nfsgeo.data.open(paths).num_samples == 2
    assert "on different points, are samples" in caplog.text


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_points_in_another_order_are_matched_by_place(dim, tmp_path, one_line, caplog):
    points, paths = RNG.random((6, dim)), [tmp_path / f"{k}.nc" for k in range(3)]
    orders = [np.arange(6), RNG.permutation(6), np.arange(6)[::-1]]
    for k, (path, order) in enumerate(zip(paths, orders, strict=True)):
        u = (points[order, :1] + k)[None, :, None]
        build(path, [Array(u, "nptc", ["u"])], points=points[order], times=[k]).write(
            path
        )
    assert "on the same points" in one_line(nfsgeo.data.open, paths)
    fields = nfsgeo.data.open(paths, series="time-steps")
    np.testing.assert_array_equal(fields.coordinates(0), points)
    expected = points[:, :1] + np.arange(3)
    np.testing.assert_allclose(fields.read(0, slice(None))[..., 0], expected)
    assert "in another order" in caplog.text
