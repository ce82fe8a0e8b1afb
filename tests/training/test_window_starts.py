"""Windows that slide over the time steps: their parts, their order, their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run
from nfsgeo.geometry import Domain
from nfsgeo.training import begin_run, fit, load_config, prepare
from nfsgeo.training.config import DataSection, RunConfig
from nfsgeo.training.resolution import resolved
from nfsgeo.training.run_data import RunData

NAMES = {"mesh": "all", "n_in": 3, "n_out": 2}


def write_series(path: Path, times: Any, num_series: int = 1) -> Path:
    """Station records, whose values tell the series, the station and the time step."""
    points = np.random.default_rng(0).random((6, 2))
    u = np.arange(len(times)) + 1000 * np.arange(6)[:, None]
    u = (u + 10**5 * np.arange(num_series)[:, None, None]).astype("f4")
    domain = Domain.bounding(points)
    arrays = [Array(u, "npt", ["u"])]
    return build(path, arrays, points=points, times=times, domain=domain).write(path)


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """One series of 60 time steps."""
    return write_series(tmp_path / "series.nc", 0.5 * np.arange(60))


class Series:
    """What the parts of a file are made from."""

    def __init__(self, times: Any) -> None:
        self.path, self.times, self.num_samples = Path("series"), np.array(times), 1

    def num_observed(self) -> int:
        return len(self.times)


@given(
    num=st.integers(1, 300),
    n_in=st.integers(1, 8),
    n_out=st.integers(1, 8),
    apart=st.integers(1, 4),
    first=st.integers(0, 5),
    stride=st.integers(1, 9),
)
def test_parts_in_time_share_no_time_step(
    num: int, n_in: int, n_out: int, apart: int, first: int, stride: int
) -> None:
    length = apart * (n_in + n_out - 1) + 1
    assume(num - first >= 3 * length)
    data = DataSection(
        n_in=n_in,
        n_out=n_out,
        time_stride=apart,
        first_step=first,
        window_stride=stride,
        evaluation_stride=1,
        split_by="time",
    )
    file: Any = Series(np.arange(num))
    run = RunData(RunConfig(data=data), file)
    parts, used = run.steps, []
    for part in SPLITS:
        starts = run.starts(part, n_in + n_out)
        steps = np.unique(starts[:, None] + apart * np.arange(n_in + n_out))
        assert len(starts) and set(steps) <= set(parts[part])
        used.append(set(steps))
        spread = set(np.diff(starts)) or {1}
        assert spread == ({stride} if part == "train" and len(starts) > 1 else {1})
    assert not (used[0] & used[1] or used[1] & used[2] or used[0] & used[2])
    assert [parts[part].start for part in SPLITS][0] == first
    assert parts["test"].stop == num
    # Not used are fewer time steps than a stride, where windows leave none out.
    assert parts["train"].stop - max(used[0]) <= stride


def used_of(file: Any, **settings: Any) -> RunData:
    chosen = {f"data.{k}": v for k, v in {**NAMES, **settings}.items()}
    return RunData(resolved(load_config(overrides=chosen), file), file)


def data_section(file: Any, **settings: Any) -> DataSection:
    return used_of(file, **settings).config.data


def test_windows_of_one_series_are_those_of_the_file(series: Path) -> None:
    with nfsgeo.data.open(series) as file:
        used, u = used_of(file, window_stride=2), file.read(0, slice(None))
        data, seen = used.config.data, {}
        assert (data.split_by, data.evaluation_stride) == ("time", 2)
        for part in SPLITS:
            found = used.windows(part)
            for number in range(len(found)):
                item = found[number]
                first = int(2 * item.times[0])
                np.testing.assert_array_equal(item.x, u[:, first : first + 3])
                np.testing.assert_array_equal(item.y, u[:, first + 3 : first + 5])
                assert (
                    item.times.tolist() == (0.5 * np.arange(first, first + 5)).tolist()
                )
            seen[part] = [int(2 * found[n].times[0]) for n in range(len(found))]
    # 0.7/0.1/0.2 of 60 time steps: 42, 6 and 12.
    assert seen["train"] == list(range(0, 38, 2))
    assert seen["valid"] == [42] and seen["test"] == [48, 50, 52, 54]


def test_windows_do_not_slide_over_gaps_in_time(tmp_path: Path) -> None:
    times = np.delete(np.arange(80.0), [20, 33])
    path = write_series(tmp_path / "gaps.nc", times)
    with nfsgeo.data.open(path) as file:
        found = used_of(file, window_stride=1).windows("train")
        for number in range(len(found)):
            assert np.diff(found[number].times).tolist() == [1.0] * 4
        assert len(found) == 54 - 4 - 2 * 4  # of 54 time steps, without 2 of them


def test_longer_windows_stay_in_their_part(series: Path) -> None:
    """Rollouts of any length are scored on the time steps of the test part."""
    with nfsgeo.data.open(series) as file:
        used = used_of(file, window_stride=1, split_by="time")
        first, most = used.windows("test")[0].times[0], len(used.steps["test"]) - 3
        longest = used.windows("test", n_out=most)
        assert len(longest) == 1 and longest[0].times[0] == first
        assert len(longest[0].times) == 3 + most
        with pytest.raises(UserError, match=f"at most {most}, after 3 observed"):
            used.windows("test", n_out=most + 1)


def test_windows_slide_over_one_series_unless_told_otherwise(tmp_path: Path) -> None:
    for num_series in (1, 2):
        path = write_series(tmp_path / f"{num_series}.nc", np.arange(60), num_series)
        with nfsgeo.data.open(path) as file:
            data = data_section(file)
            assert (data.split_by, data.window_stride) == ("time", 1)
            assert data == data_section(file, window_stride=1)
            data = data_section(file, evaluation_stride=3)
            assert (data.window_stride, data.evaluation_stride) == (1, 3)
            assert data_section(file, window_stride=7).window_stride == 7


def test_series_that_cannot_be_divided_are_refused(series: Path) -> None:
    with nfsgeo.data.open(series) as file:
        with pytest.raises(UserError, match="1 samples.*data.split_by=time"):
            data_section(file, split_by="series")
        with pytest.raises(UserError, match="1 samples.*data.split_by=time"):
            data_section(file, window_stride=12, split_by="series")
        for settings in ({}, {"window_stride": 1}):
            with pytest.raises(
                UserError, match="60 time steps.*by time for lack.*at least 72"
            ):
                data_section(file, n_in=12, n_out=12, **settings)


def test_samples_of_one_part_stay_there(tmp_path: Path) -> None:
    """Test samples of a published file become no training data."""
    path = write_series(tmp_path / "parts.nc", np.arange(60.0), num_series=2)
    with nfsgeo.data.open(path) as file:
        file = file.with_split({"train": [0], "valid": [], "test": [1]})
        with pytest.raises(UserError, match="2 samples.*data.split_by=time"):
            data_section(file)


def test_several_series_stay_whole_unless_told_otherwise(tmp_path: Path) -> None:
    path = write_series(tmp_path / "many.nc", np.arange(30.0), num_series=5)
    with nfsgeo.data.open(path) as file:
        used = used_of(file, window_stride=1)
        data = used.config.data
        assert (data.split_by, data.evaluation_stride) == ("series", None)
        train, test = map(used.windows, ("train", "test"))
        assert len(train) == 3 * 26 and train.samples[:27] == [0] * 26 + [1]
        assert len(test) == 1 and test[0].times.tolist() == [0, 1, 2, 3, 4]
        used = used_of(file, window_stride=1, evaluation_stride=5)
        assert len(used.windows("test")) == 6
        used = used_of(file, window_stride=1, split_by="time")
        assert set(used.windows("test").samples) == set(range(5))


def test_windows_of_a_sample_cycle_through_the_point_sets(waves: Path) -> None:
    chosen = {"data.file": str(waves), "data.points": 20, "data.window_stride": 2}
    train = prepare(load_config(overrides=chosen)).data.parts["train"]
    assert len(train) == 14 * 3
    assert [train[number].mesh for number in range(6)] == [0, 1, 2, 1, 2, 3]
    train.turn = 1
    assert [train[number].mesh for number in range(6)] == [1, 2, 3, 2, 3, 4]


def write_field(path: Path, kind: str, num_series: int) -> Path:
    """Travelling waves, at points that all series share."""
    domain = Domain.unit(2) if kind in ("grid", "cloud") else Domain.sphere()
    times, step = np.arange(30.0), 1 / 6
    axes = [
        low + (np.arange(6) + 0.5) * step * length
        for low, length in zip(domain.lower, domain.lengths, strict=True)
    ]
    random = np.random.default_rng(0)
    cloud = np.array(domain.lower) + random.random((36, 2)) * np.array(domain.lengths)
    u = np.sin(np.arange(36) / 5 + times[:, None] / 3)
    u = (np.arange(1, num_series + 1)[:, None, None] * u).astype("f4")
    where: Any = {"axes": axes} if "grid" in kind else {"points": cloud}
    u = u.reshape(num_series, 30, 6, 6) if "grid" in kind else u
    arrays = [Array(u, "ntxy" if "grid" in kind else "ntp", ["u"])]
    return build(path, arrays, times=times, domain=domain, **where).write(path)


@pytest.mark.parametrize("kind", ["grid", "cloud", "sphere", "grid of a sphere"])
def test_any_number_of_series_has_all_point_sets(tmp_path: Path, kind: str) -> None:
    def point_sets(num_series: int) -> list[Mesh]:
        path = write_field(tmp_path / f"{num_series}.nc", kind, num_series)
        with nfsgeo.data.open(path) as file:
            used = used_of(file, mesh=None, points=12, window_stride=1)
            assert used.config.data.point_sets == 16
            found: Any = used.training_mesh
            return list(found.meshes)

    expected = point_sets(20)
    for num_series in range(1, 17):
        meshes = point_sets(num_series)
        for mesh, same in zip(meshes, expected, strict=True):
            assert mesh.queries and same.queries and len(mesh.queries) == 16
            np.testing.assert_array_equal(mesh.index, same.index)
            np.testing.assert_array_equal(mesh.queries.index, same.queries.index)


@pytest.fixture
def sliding(series: Path, tiny: dict[str, Any]) -> dict[str, Any]:
    """Settings of a short run on windows of one series."""
    chosen = {f"data.{k}": v for k, v in NAMES.items()} | {"data.file": str(series)}
    return tiny | chosen | {"data.window_stride": 1}


def test_a_run_on_one_series_is_evaluated(
    sliding: dict[str, Any], tmp_path: Path
) -> None:
    experiment = prepare(load_config(overrides=sliding | {"trainer.epochs": 1}))
    whole = begin_run(experiment, tmp_path / "whole")
    fit(experiment, whole)
    summary = evaluate_run(whole.root)
    assert summary["scored"]["windows"] == 8 and summary["scored"]["samples"] == 1
    data = Path(str(sliding["data.file"]))
    copy = tmp_path / "copy.nc"
    copy.write_bytes(data.read_bytes())
    scored = evaluate_run(whole.root, data=copy)["scored"]
    assert (scored["windows"], scored["part"]) == (56, "all")
    scored = evaluate_run(whole.root, data=copy, part="test")["scored"]
    assert scored["windows"] == 8
