"""The order of files that are joined, and of the times that they tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import nfsgeo
import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.errors import UserError


def snapshot(path: Path, times: Sequence[float | str], value: float) -> Path:
    """A table of two points whose field counts on from ``value``."""
    named = bool(times)
    rows = [f"x,{'t,' * named}u"]
    for step in range(len(times) or 1):
        time = f"{times[step]}," if named else ""
        rows += [f"{x},{time}{value + step + x / 4}" for x in (0.0, 1.0)]
    path.write_text("\n".join(rows))
    return path


def values(sources: list[Path] | Path, **options: object) -> list[float]:
    with open_sources(sources, series="time-steps", **options) as file:  # type: ignore[arg-type]
        return np.floor(file.read(0, slice(None))[0, :, 0]).tolist()


def test_a_list_as_a_shell_gives_it_is_in_the_order_of_the_numbers(
    tmp_path: Path,
) -> None:
    paths = [snapshot(tmp_path / f"step_{k}.csv", [], k) for k in range(12)]
    times = np.arange(12.0)
    for given in (sorted(paths, key=str), paths, tmp_path):
        assert values(given, times=times) == times.tolist()
    backwards = [float(k) for k in reversed(range(12))]
    assert values(paths[::-1], times=times) == backwards  # as somebody chose


def test_decimal_numbers_in_names(tmp_path: Path, one_line: Callable[..., str]) -> None:
    times = [0.25, 0.5, 0.75, 1.0]
    for k, time in enumerate(times):
        snapshot(tmp_path / f"u_{time}.csv", [], k)
    message = one_line(open_sources, tmp_path, series="time-steps", times=times)
    assert "u_0.5.csv and u_0.25.csv" in message and "as many digits" in message
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(f"u_{float(path.stem[2:]):.2f}.csv"))
    assert values(tmp_path, times=times) == [0, 1, 2, 3]


def test_times_tell_the_order(tmp_path: Path, one_line: Callable[..., str]) -> None:
    for k, month in enumerate(("jan", "feb", "mar", "apr")):
        snapshot(tmp_path / f"{month}.csv", [2 * k, 2 * k + 1], 2 * k)
    with open_sources(tmp_path, series="time-steps") as file:
        assert file.times.tolist() == list(range(8))
        assert np.floor(file.read(0, slice(3, 6))[0, :, 0]).tolist() == [3, 4, 5]
    snapshot(tmp_path / "may.csv", [7, 8], 7)
    message = one_line(open_sources, tmp_path, series="time-steps")
    assert "may.csv, which begins at t = 7" in message
    assert "apr.csv, which ends at t = 7" in message and "repeated" in message


def test_longitudes_of_any_file_are_asked_about(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for name, (low, high) in {"a": (0, 90), "b": (-179, 179)}.items():
        rows = [f"{x},{y},0,{y}" for x in (low, high) for y in (0, 1)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["lon,lat,t,u", *rows]))
    assert "358 degrees" in one_line(open_sources, tmp_path, series="samples")


def test_what_was_changed_in_memory_is_not_lost_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    file = nfsgeo.from_arrays(rng.normal(size=(10, 8, 6)), rng.random((8, 2)), range(6))
    own = {"train": [5, 6, 7, 8, 9], "valid": [3, 4], "test": [0, 1, 2]}
    file.split = {name: np.array(part) for name, part in own.items()}
    settings = {"data.n_in": 2, "data.n_out": 2, "model.name": "nfs"}
    with pytest.raises(UserError, match=r"changed in memory.*export"):
        nfsgeo.prepare(file, settings)
    stored = nfsgeo.open(nfsgeo.data.export(file, tmp_path / "own.h5"))
    experiment = nfsgeo.prepare(stored, settings)
    for name, part in own.items():
        assert stored.split[name].tolist() == part
    assert experiment.file.split["test"].tolist() == own["test"]
