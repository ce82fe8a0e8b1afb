"""Predictions for files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.errors import UserError
from nfsgeo.evaluation import predict, read_points
from nfsgeo.geometry import Domain
from nfsgeo.training import RunPaths


def test_query_points_that_were_observed_change_nothing(
    run: RunPaths, waves: Path, tmp_path: Path
) -> None:
    predict(run.root, waves, tmp_path / "all.nc")
    with nfsgeo.data.open(tmp_path / "all.nc") as out:
        np.save(tmp_path / "q.npy", out.coordinates()[5:9])
        expected = out.read(2, slice(None))[5:9]
    predict(run.root, waves, tmp_path / "q.nc", query_points=tmp_path / "q.npy")
    with nfsgeo.data.open(tmp_path / "q.nc") as out:
        assert np.allclose(out.read(2, slice(None)), expected, atol=1e-5)
        assert out.mesh_id(0) == out.mesh_id(19)


def part_of(waves: Path, path: Path, times: list[int]) -> Path:
    """The grid of the file as a cloud, at some of its time steps."""
    with nfsgeo.data.open(waves) as file:
        u = [file.read(sample, slice(None))[:, times] for sample in range(2)]
        when, domain = file.times[times], file.domain
        fields = nfsgeo.from_arrays(u, file.coordinates(), when, domain=domain)
        return fields.write(path)


def read_both(path: Path, other: Path) -> tuple[np.ndarray, np.ndarray]:
    with nfsgeo.data.open(path) as one, nfsgeo.data.open(other) as two:
        assert np.allclose(one.times, two.times)
        return one.read(1, slice(None)), two.read(1, slice(None))


def test_the_last_snapshots_are_observed_and_what_follows_is_predicted(
    run: RunPaths, waves: Path, tmp_path: Path
) -> None:
    whole = part_of(waves, tmp_path / "whole.nc", list(range(24)))
    predict(run.root, whole, tmp_path / "ahead.nc")
    with nfsgeo.data.open(tmp_path / "ahead.nc") as out:
        # The file ends at 6; before, predictions began at 2.75 whatever its length.
        assert np.allclose(out.times, 6 + 0.25 * np.arange(1, 11))
    last = part_of(waves, tmp_path / "last.nc", list(range(14, 24)))
    predict(run.root, last, tmp_path / "from_last.nc")
    predict(run.root, whole, tmp_path / "from_14.nc", first=14)
    for name in ("from_last.nc", "from_14.nc"):
        found, expected = read_both(tmp_path / name, tmp_path / "ahead.nc")
        assert np.allclose(found, expected, atol=1e-6)


def test_snapshots_between_those_of_training_spacing_are_left_out(
    run: RunPaths, waves: Path, tmp_path: Path
) -> None:
    """A file of unequal steps, whose last ones of 0.25 are all there."""
    uneven = part_of(waves, tmp_path / "uneven.nc", [0, 1, 5, *range(10, 24)])
    predict(run.root, uneven, tmp_path / "a.nc")
    whole = part_of(waves, tmp_path / "whole.nc", list(range(24)))
    predict(run.root, whole, tmp_path / "c.nc")
    found, expected = read_both(tmp_path / "a.nc", tmp_path / "c.nc")
    assert np.allclose(found, expected, atol=1e-6)
    with pytest.raises(UserError, match=r"0.25 to 1.25 apart.*at least 10, 0.25 apart"):
        predict(run.root, uneven, tmp_path / "d.nc", first=0)


@pytest.mark.parametrize("first", [-1, 24, 20])
def test_a_first_snapshot_that_leaves_too_few(
    run: RunPaths, waves: Path, tmp_path: Path, first: int
) -> None:
    with pytest.raises(UserError, match="snapshot"):
        predict(run.root, waves, tmp_path / "out.nc", first=first)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_points_come_from_arrays_and_tables(tmp_path: Path, suffix: str) -> None:
    points = np.random.default_rng(0).random((7, 2))
    path = tmp_path / f"q{suffix}"
    if suffix == ".npy":
        np.save(path, points)
    elif suffix == ".npz":
        np.savez(path, pos=points, other=points[:1])
    else:
        np.savetxt(path, points, delimiter=",", header="x,y", comments="")
    assert np.array_equal(read_points(path, Domain.unit(2)), points)


def test_names_order_the_columns_of_points(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("lat,lon\n0.25,0.5\n0.75,1\n")
    found = read_points(tmp_path / "q.csv", Domain.unit(2, periodic=False))
    assert found.tolist() == [[0.5, 0.25], [1.0, 0.75]]
    for names in ("id,x,y", "p,q", "x,lon", "z,x", "y,z"):
        zeros = ",".join("0" for _ in names.split(","))
        (tmp_path / "q.csv").write_text(f"{names}\n{zeros}\n")
        with pytest.raises(UserError, match="columns"):
            read_points(tmp_path / "q.csv", Domain.unit(2))


@pytest.mark.parametrize(
    ("points", "complaint"),
    [
        ([[0.5, 0.5], [2.5, 0.5]], "point 1 at"),
        ([[0.5, float("nan")]], "point 0 at"),
        ([[0.5, 0.5, 0.5]], "one row of 2 coordinates"),
        ([0.5, 0.5], "one row of 2 coordinates"),
        (np.empty((0, 2)), "one row of 2 coordinates"),
        ([[0.5 + 1j, 0.5]], "q.npy of type complex128: expected real numbers"),
        ([{}], "an array of points"),
    ],
)
def test_points_that_cannot_be_used(
    tmp_path: Path, points: object, complaint: str
) -> None:
    np.save(tmp_path / "q.npy", np.array(points))
    with pytest.raises(UserError, match=complaint):
        read_points(tmp_path / "q.npy", Domain.unit(2))


def test_points_beside_a_periodic_axis_are_brought_back(tmp_path: Path) -> None:
    """As longitudes from 0 to 360 degrees, or the date line itself."""
    np.save(tmp_path / "q.npy", [[180.0, 10.0], [270.0, 90.0], [-190.0, 0.0]])
    found = read_points(tmp_path / "q.npy", Domain.sphere())
    assert found.tolist() == [[-180.0, 10.0], [-90.0, 90.0], [170.0, 0.0]]


@pytest.mark.parametrize("name", ["q.npy", "q.npz", "q.csv", "q.txt"])
def test_files_that_hold_no_points(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("no points here\n")
    with pytest.raises(UserError, match=name):
        read_points(tmp_path / name, Domain.unit(2))
    with pytest.raises(UserError, match="missing"):
        read_points(tmp_path / f"missing-{name}", Domain.unit(2))


def test_time_steps_without_values_are_not_observed(
    run: RunPaths, waves: Path, tmp_path: Path
) -> None:
    with nfsgeo.data.open(waves) as file:
        u = np.stack([file.read(s, slice(None)) for s in range(2)])
        u[:, :, 20:] = np.nan
        ahead = tmp_path / "ahead.nc"
        points, domain = file.coordinates(), file.domain
        nfsgeo.from_arrays(u, points, file.times, domain=domain).write(ahead)
    predict(run.root, ahead, tmp_path / "p.nc", first=10)
    with pytest.raises(UserError, match="20 observed .* time steps 11 to 20"):
        predict(run.root, ahead, tmp_path / "q.nc", first=11)
