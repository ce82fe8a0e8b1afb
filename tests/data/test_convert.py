"""Conversion: boundaries, series of files, interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data.convert import convert
from nfsgeo.data.native.grid_writer import GridWriter
from nfsgeo.data.numbers import EPOCH
from nfsgeo.data.opening import open_sources
from nfsgeo.data.writers import native
from nfsgeo.geometry import Domain

RNG = np.random.default_rng(0)


def cloud(
    path: Path, points: np.ndarray, records: int = 2, num: int = 1, first: float = 0
) -> np.ndarray:
    u = RNG.normal(size=(num, len(points), records, 1)).astype(np.float32)
    np.savez(path, coords=points, u=u, t=first + np.arange(records))
    return u


def test_box_is_padded_or_given(tmp_path: Path) -> None:
    points = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 2.0]])
    cloud(tmp_path / "a.npz", points)
    for number, (options, lower, upper) in enumerate(
        [
            ({}, (-0.1, 0.8), (2.1, 5.2)),
            ({"pad": 0.0}, (0.0, 1.0), (2.0, 5.0)),
            (
                {"domain": Domain((0.0, 0.0), (2.0, 8.0), (True, False))},
                (0.0, 0.0),
                (2.0, 8.0),
            ),
        ]
    ):
        out = convert(tmp_path / "a.npz", tmp_path / f"{number}.h5", **options)
        with nfsgeo.data.open(out) as file:
            np.testing.assert_allclose(file.domain.lower, lower)
            np.testing.assert_allclose(file.domain.upper, upper)
            found = file.coordinates()
    # On a periodic axis, x = 2 is x = 0.
    np.testing.assert_array_equal(found, [[0.0, 1.0], [0.0, 5.0], [1.0, 2.0]])


def test_points_outside_the_box_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    cloud(tmp_path / "a.npz", RNG.random((4, 2)))
    small = Domain((0.0, 0.0), (0.1, 0.1), (False, False))
    one_line(convert, tmp_path / "a.npz", tmp_path / "b.h5", domain=small)
    line = Domain((0.0,), (1.0,), (False,))
    one_line(convert, tmp_path / "a.npz", tmp_path / "b.h5", domain=line)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]


def test_grid_takes_a_domain_that_holds_it(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    wide = Domain((-1.0, -1.0), (5.0, 2.0), (False, True))
    out = convert(grid_case.path, tmp_path / "b.h5", domain=wide, equation="new")
    with nfsgeo.data.open(out) as file:
        assert file.domain == wide and file.equation == "new"
    for upper, periodic in ((2.0, False), (2.5, True)):
        tight = Domain((0.0, -1.0), (upper, 1.0), (periodic, False))
        one_line(convert, grid_case.path, tmp_path / "c.h5", domain=tight)


def test_files_become_samples_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    fields = {}
    for number in (10, 2, 1):
        points = RNG.random((3 + number % 3, 2)) + number
        fields[number] = points, cloud(folder / f"case_{number}.npz", points, num=2)
    out = convert(folder, tmp_path / "out.h5")
    with nfsgeo.data.open(out) as file:
        assert file.num_samples == 6
        for place, number in enumerate((1, 2, 10)):
            points, u = fields[number]
            for k in range(2):
                np.testing.assert_array_equal(file.coordinates(2 * place + k), points)
                found = file.read(2 * place + k, slice(None))
                np.testing.assert_array_equal(found, u[k])
        assert [file.mesh_id(i) for i in range(6)] == [0, 0, 1, 1, 2, 2]
        assert file.domain.lower[0] < 2 and file.domain.upper[0] > 10


def test_files_become_time_steps(tmp_path: Path, one_line: Callable[..., str]) -> None:
    points = RNG.random((4, 2))
    paths = [tmp_path / f"{k}.npz" for k in range(3)]
    parts = [cloud(p, points, k + 1, first=(0, 1, 3)[k]) for k, p in enumerate(paths)]
    whole = np.concatenate(parts, axis=2)[0]
    with open_sources(paths, series="time-steps") as file:
        assert file.num_samples == 1
        np.testing.assert_array_equal(file.times, np.arange(6))
        for steps in (slice(None), slice(1, 5), slice(0, 6, 2), slice(2, 6, 3)):
            np.testing.assert_array_equal(file.read(0, steps), whole[:, steps])
    for times in (np.arange(5.0), np.arange(6.0)[::-1], [0.0, np.nan, 2, 3, 4, 5]):
        one_line(open_sources, paths, series="time-steps", times=times)
    with open_sources(paths, series="time-steps", times=2 * np.arange(6.0)) as file:
        np.testing.assert_array_equal(file.times, 2 * np.arange(6.0))
    out = convert(paths, tmp_path / "out.h5", series="time-steps")
    with nfsgeo.data.open(out) as file:
        np.testing.assert_array_equal(file.read(0, slice(None)), whole)


def test_series_of_meshes_keeps_cells(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    for k in range(3):
        points = np.eye(3) + (k == 2)
        mesh = meshio.Mesh(points, [("triangle", [[0, 1, 2]])])
        mesh.point_data["p"] = np.arange(3.0) + k
        meshio.write(tmp_path / f"s{k}.vtu", mesh)
    out = convert(sorted(tmp_path.glob("*.vtu")), tmp_path / "out.h5")
    with nfsgeo.data.open(out) as file:
        assert [file.mesh_id(i) for i in range(3)] == [0, 0, 1]
        assert file.cells(2)["triangle"].tolist() == [[0, 1, 2]]
        np.testing.assert_array_equal(file.read(2, slice(None))[:, 0, 0], [2, 3, 4])


def test_gridded_files_are_joined(grid_case: Any, tmp_path: Path) -> None:
    twice = [grid_case.path, grid_case.path]
    with nfsgeo.data.open(convert(twice, tmp_path / "out.h5")) as file:
        assert file.num_samples == 14 and file.shape == (6, 4)
        found = file.read(9, slice(None)).swapaxes(0, 1).reshape(5, 6, 4, 2)
        np.testing.assert_array_equal(found, grid_case.u[2])
        np.testing.assert_array_equal(file.parameters["nu"][7:], np.arange(7) / 10)


def test_samples_have_the_same_times_and_grid_but_for_rounding(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    """Hours are less than a millionth of the seconds since 1970."""
    points, day = RNG.random((9, 2)), np.datetime64("2026-06-30")
    for name, first in (("a", day), ("b", day + np.timedelta64(3, "h"))):
        times = first + np.arange(2) * np.timedelta64(1, "h")
        np.savez(tmp_path / f"{name}.npz", coords=points, u=np.ones((1, 9, 2)), t=times)
    message = one_line(open_sources, [tmp_path / "a.npz", tmp_path / "b.npz"])
    assert "other times" in message
    for shift in (1e-7, 1e-3):
        moved, (x, y) = tmp_path / f"{shift}.h5", grid_case.options["axes"]
        with GridWriter(
            moved, **grid_case.options | {"axes": [x + shift, y]}
        ) as writer:
            writer.write(0, grid_case.u, grid_case.a, {"nu": np.arange(7) / 10})
    assert open_sources([grid_case.path, tmp_path / "1e-07.h5"]).num_samples == 14
    assert "other grid" in one_line(open_sources, [grid_case.path, moved])


def test_files_of_other_units_are_refused(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for number, units in enumerate(
        ({"u": "K"}, {"u": "degC"}, {"v": "Pa"}, {"u": "K", "time": "h"})
    ):
        options = grid_case.options | {"provenance": {"units": units}}
        with GridWriter(tmp_path / f"{number}.h5", **options) as writer:
            writer.write(0, grid_case.u, grid_case.a, {"nu": np.arange(7) / 10})
    paths = [tmp_path / f"{number}.h5" for number in range(4)]
    assert "other units of u (degC, not K)" in one_line(open_sources, paths[:2])
    assert open_sources([paths[0], paths[2]]).units == {"u": "K"}
    message = one_line(open_sources, [paths[0], paths[3]])
    assert "other units of time (h, not none)" in message


def test_files_of_different_kinds_are_refused(
    grid_case: Any, point_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    out = tmp_path / "out.h5"
    one_line(convert, [grid_case.path, point_case.path], out)
    one_line(convert, [grid_case.path, grid_case.path], out, series="time-steps")
    one_line(convert, [point_case.path] * 2, out, series="time-steps")
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    cloud(a, RNG.random((4, 2)))
    cloud(b, RNG.random((4, 2)), records=3)
    one_line(convert, [a, b], out)
    cloud(b, RNG.random((4, 2)), first=2)
    assert "--series time-steps" in one_line(convert, [a, b], out)
    cloud(b, RNG.random((4, 3)))
    one_line(convert, [a, b], out)
    empty = tmp_path / "empty"
    empty.mkdir()
    one_line(convert, empty, out)
    with pytest.raises(ValueError, match="time-steps"):
        convert(a, out, series="others")
    assert not out.exists() and not list(tmp_path.glob("*.partial"))


def test_interrupted_conversion_goes_on(
    grid_case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.h5"
    monkeypatch.setattr(native, "BATCH_BYTES", 1)

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("converting samples", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(grid_case.path, out, progress=stop)
    assert not out.exists()
    written, seen = [], []
    write = GridWriter.write

    def counted(self: GridWriter, start: int, *args: Any, **more: Any) -> None:
        written.append(start)
        write(self, start, *args, **more)

    monkeypatch.setattr(GridWriter, "write", counted)
    convert(grid_case.path, out, progress=lambda *report: seen.append(report))
    assert written == [3, 4, 5, 6]
    stages = ("converting samples", "packing samples")
    assert seen == [(what, done, 7) for what in stages for done in range(1, 8)]
    with nfsgeo.data.open(out) as file:
        for sample in range(7):
            found = file.read(sample, slice(None)).swapaxes(0, 1)
            same = found.reshape(grid_case.u.shape[1:])
            np.testing.assert_array_equal(same, grid_case.u[sample])


def test_other_times_have_no_unit_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dated.csv"
    path.write_text(
        "time,x,y,u\n2026-06-01T00:00,0,0,1\n2026-06-01T01:00,0,0,2\n"
        "2026-06-01T00:00,1,1,1\n2026-06-01T01:00,1,1,2\n"
    )
    with open_sources([path]) as file:
        assert file.time_unit == EPOCH
    with open_sources([path], times=[0.0, 1.0]) as file:
        assert file.time_unit == "" and file.times.tolist() == [0, 1]
    days = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    with open_sources([path], times=days) as file:
        assert file.time_unit == EPOCH and np.diff(file.times) == 86400
