"""Windows that slide over the time steps: their parts, their order, their numbers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo
from nfsgeo.config import DataSection, RunConfig
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.training import load_config, prepare
from nfsgeo.training.complete_config import complete_config
from nfsgeo.training.run_data import RunData

NAMES = {"mesh": "all", "n_in": 3, "n_out": 2}


def write_series(path: Path, times: Any, num_series: int = 1) -> Path:
    """Stations, whose values tell the series, the station and the time step."""
    points = np.random.default_rng(0).random((6, 2))
    u = np.arange(len(times)) + 1000 * np.arange(6)[:, None]
    u = (u + 10**5 * np.arange(num_series)[:, None, None]).astype("f4")
    return nfsgeo.from_arrays(u, points, times).write(path)


@pytest.fixture
def series() -> Path:
    """One series of 60 time steps."""
    return write_series(Path("series.nc"), 0.5 * np.arange(60))


@settings(max_examples=50, deadline=None)
@given(
    num=st.integers(1, 300),
    n_in=st.integers(1, 8),
    n_out=st.integers(1, 8),
    apart=st.integers(1, 4),
    first=st.integers(0, 5),
    stride=st.integers(1, 9),
)
def test_parts_in_time_share_no_time_step(num, n_in, n_out, apart, first, stride):
    length = apart * (n_in + n_out - 1) + 1
    assume(num - first >= 3 * length)
    every = {"n_in": n_in, "n_out": n_out, "time_stride": apart, "first_step": first}
    every |= {"window_stride": stride, "evaluation_stride": 1, "split_by": "time"}
    data = DataSection(**every)
    file: Any = SimpleNamespace(path=Path("series"), times=np.arange(num))
    file.time_unit = ""
    file.num_samples, file.num_observed = 1, lambda: num
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
    return RunData(complete_config(load_config(overrides=chosen), file), file)


def test_windows_of_one_series_are_those_of_the_file(series):
    with nfsgeo.open(series) as file:
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
                np.testing.assert_array_equal(2 * item.times, first + np.arange(5))
            seen[part] = [int(2 * found[n].times[0]) for n in range(len(found))]
    # 0.7/0.1/0.2 of 60 time steps: 42, 6 and 12.
    assert seen["train"] == list(range(0, 38, 2))
    assert seen["valid"] == [42] and seen["test"] == [48, 50, 52, 54]


def test_windows_do_not_slide_over_gaps_in_time():
    times = np.delete(np.arange(80.0), [20, 33])
    path = write_series(Path("gaps.nc"), times)
    with nfsgeo.open(path) as file:
        found = used_of(file, window_stride=1).windows("train")
        for number in range(len(found)):
            assert np.diff(found[number].times).tolist() == [1.0] * 4
        assert len(found) == 54 - 4 - 2 * 4  # of 54 time steps, without 2 of them


def test_longer_windows_stay_in_their_part(series):
    """Rollouts of any length are scored on the time steps of the test part."""
    with nfsgeo.open(series) as file:
        used = used_of(file, window_stride=1, split_by="time")
        first, most = used.windows("test")[0].times[0], len(used.steps["test"]) - 3
        longest = used.windows("test", n_out=most)
        assert len(longest) == 1 and longest[0].times[0] == first
        assert len(longest[0].times) == 3 + most
        with pytest.raises(UserError, match=f"at most {most}, after 3 observed"):
            used.windows("test", n_out=most + 1)


@pytest.mark.parametrize("num_series", [1, 2])
def test_windows_slide_over_one_series_unless_told_otherwise(num_series):
    path = write_series(Path("series.nc"), np.arange(60), num_series)
    with nfsgeo.open(path) as file:
        data = used_of(file).config.data
        assert (data.split_by, data.window_stride) == ("time", 1)
        assert data == used_of(file, window_stride=1).config.data
        data = used_of(file, evaluation_stride=3).config.data
        assert (data.window_stride, data.evaluation_stride) == (1, 3)
        assert used_of(file, window_stride=7).config.data.window_stride == 7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split_by": "series"}, "1 samples.*data.split_by=time"),
        ({"split_by": "series", "window_stride": 12}, "1 samples.*data.split_by=time"),
        ({"n_in": 12, "n_out": 12}, "60 time steps.*by time for lack.*at least 72"),
        (
            {"n_in": 12, "n_out": 12, "window_stride": 1},
            "60 time steps.*by time for lack.*at least 72",
        ),
    ],
)
def test_series_that_cannot_be_divided_are_refused(series, settings, message):
    with nfsgeo.open(series) as file, pytest.raises(UserError, match=message):
        used_of(file, **settings)


def test_samples_of_one_part_stay_there(refuses):
    """Test samples of a published file become no training data."""
    path = write_series(Path("parts.nc"), np.arange(60.0), num_series=2)
    with nfsgeo.open(path) as file:
        file = file.with_split({"train": [0], "valid": [], "test": [1]})
        refuses("2 samples.*data.split_by=time", used_of, file)


def test_several_series_stay_whole_unless_told_otherwise():
    path = write_series(Path("many.nc"), np.arange(30.0), num_series=5)
    with nfsgeo.open(path) as file:
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


@pytest.mark.slow
def test_windows_of_a_sample_cycle_through_the_point_sets(waves):
    chosen = {"data.file": str(waves), "data.points": 20, "data.window_stride": 2}
    train = prepare(load_config(overrides=chosen)).data.parts["train"]
    assert len(train) == 14 * 3
    assert [train[number].mesh for number in range(6)] == [0, 1, 2, 1, 2, 3]
    train.epoch = 1
    assert [train[number].mesh for number in range(6)] == [1, 2, 3, 2, 3, 4]


def write_field(path: Path, kind: str, num_series: int) -> Path:
    """Waves in time, at points that all series share."""
    domain = Domain.sphere() if "sphere" in kind else Domain.unit(2)
    axes = [
        low + (np.arange(6) + 0.5) * length / 6
        for low, length in zip(domain.lower, domain.lengths, strict=True)
    ]
    cloud = np.random.default_rng(0).random((36, 2)) * domain.lengths + domain.lower
    u, times = np.sin(np.arange(36) / 5 + np.arange(30.0)[:, None] / 3), np.arange(30.0)
    u = (np.arange(1, num_series + 1)[:, None, None] * u).astype("f4")
    if "grid" not in kind:
        u = u.swapaxes(1, 2)
        return nfsgeo.from_arrays(u, cloud, times, domain=domain).write(path)
    arrays = [Array(u.reshape(num_series, 30, 6, 6), "ntxy", ["u"])]
    return build(path, arrays, times=times, domain=domain, axes=axes).write(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grid", "cloud", "sphere", "grid of a sphere"])
def test_any_number_of_series_has_all_point_sets(kind):
    def point_sets(num_series: int) -> Any:
        path = write_field(Path(f"{num_series}.nc"), kind, num_series)
        with nfsgeo.open(path) as file:
            used = used_of(file, mesh=None, points=12, window_stride=1)
            assert used.config.data.point_sets == 16
            return used.training_mesh.meshes  # type: ignore[attr-defined]

    expected = point_sets(20)
    for num_series in (1, 2, 3, 7, 16):
        meshes = point_sets(num_series)
        for mesh, same in zip(meshes, expected, strict=True):
            assert mesh.queries and same.queries and len(mesh.queries) == 16
            np.testing.assert_array_equal(mesh.index, same.index)
            np.testing.assert_array_equal(mesh.queries.index, same.queries.index)


@pytest.mark.slow
def test_a_run_on_one_series_is_evaluated(series, tiny):
    chosen = tiny | {f"data.{key}": value for key, value in NAMES.items()}
    chosen |= {"data.window_stride": 1, "trainer.epochs": 1}
    run = nfsgeo.fit(nfsgeo.prepare(series, chosen), Path("run"))
    scored = nfsgeo.evaluate(run)["scored"]
    assert scored["windows"] == 8 and scored["samples"] == 1
    copy = Path("copy.nc")
    copy.write_bytes(series.read_bytes())
    scored = nfsgeo.evaluate(run, data=copy, part="all")["scored"]
    assert (scored["windows"], scored["part"]) == (56, "all")
    for part in ("test", None):
        assert nfsgeo.evaluate(run, data=copy, part=part)["scored"]["windows"] == 8
