"""Which samples of which files a run is trained, validated and tested on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo
from nfsgeo.training import load_config, read_config
from nfsgeo.training.source import open_as, open_source

SIZES = {"data.n_in": 3, "data.n_out": 3}
POINTS = np.random.default_rng(0).random((12, 2))
TIMES = np.arange(6.0)
WAVE = np.sin(6 * POINTS[:, :1] + np.arange(20)[:, None, None] + TIMES / 4)


def written(path: Path, u: np.ndarray = WAVE, points: np.ndarray = POINTS) -> Path:
    domain = nfsgeo.from_arrays(WAVE, POINTS, TIMES).domain
    return nfsgeo.from_arrays(u, points, TIMES, domain=domain).write(path)


def parts(**data: Any) -> dict[str, list[int]]:
    chosen = {f"data.{key}": value for key, value in data.items()}
    with open_source(load_config(overrides=chosen).data) as fields:
        return {name: part.tolist() for name, part in fields.split.items()}


def sizes(**data: Any) -> list[int]:
    return list(map(len, parts(**data).values()))


def test_the_split_is_that_of_the_file_or_of_the_settings():
    own = {"train": [5, 3], "valid": [4], "test": [0, 1]}
    path = written(Path("a.nc"))
    assert sizes(file=path) == [14, 2, 4]
    with nfsgeo.open(path) as fields:
        other = fields.with_split(own).write(Path("b.nc"))
    assert parts(file=other) == {"train": [3, 5], "valid": [4], "test": [0, 1]}
    shares = [0.5, 0.25, 0.25], [10, 5, 5]
    for split, wanted in (shares, ([11, 4, 5],) * 2, ([4, 2, 3],) * 2):
        found = parts(file=other, split=split)
        assert [len(part) for part in found.values()] == wanted
        assert found["train"][0] == 0 and found["test"][-1] == 19
        assert len({n for part in found.values() for n in part}) == sum(wanted)


def test_a_test_file_of_its_own():
    train, test = (written(Path(f"{k}.nc"), k * WAVE) for k in (1, -1))
    found = parts(train_file=train, test_file=test)
    assert [len(part) for part in found.values()] == [18, 2, 20]
    assert found["test"] == list(range(20, 40))
    for split in ([0.75, 0.25, 0.0], [15, 5, 0]):
        assert sizes(file=train, test_file=test, split=split) == [15, 5, 20]
    both = load_config(overrides={"data.file": train, "data.test_file": test})
    with open_source(both.data) as fields:
        np.testing.assert_array_equal(fields.read(20, slice(None))[..., 0], -WAVE[0])


@pytest.mark.slow
def test_a_run_with_a_test_file_is_evaluated_on_it(tiny):
    train, test = (written(Path(f"{k}.nc").resolve(), k * WAVE) for k in (1, 3))
    chosen = tiny | {"data.n_in": 3, "data.n_out": 3, "trainer.epochs": 1}
    run, alone = (
        nfsgeo.fit(nfsgeo.prepare(train, chosen | more))
        for more in ({"data.test_file": test}, {})
    )
    assert read_config(run.config).data.test_file == test.resolve()
    found, other = nfsgeo.evaluate(run), nfsgeo.evaluate(alone, data=test)
    assert found["scored"]["samples"] == 20
    for name in ("persistence", "linear_extrapolation"):
        mae = other["baselines"][name]["mae"]
        assert found["baselines"][name]["mae"] == pytest.approx(mae)


NO_SPLITS = [[0.5, 0.5, 0.5], [1.5, 1, 1], [0.8, 0.2, 0.0], [0.5, 0.5], "half"]
NO_SPLITS += [[12, 5, 4], [0, 10, 10], [10, 0, 10], [-1, 10, 10]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"split": split}, "split") for split in NO_SPLITS]
    + [
        ({"columns": {"time": "t"}}, "columns of a.nc"),
        ({"test_file": "two.nc"}, "component"),
        ({"test_file": "none.nc"}, r"none\.nc"),
        ({"test_file": "a.nc", "split": [1.0, 0.0, 0.0]}, "20 samples.*train and val"),
        ({"test_file": "a.nc", "split": [0, 25, 0]}, "20 samples.*train and validate"),
    ],
)
def test_data_that_are_refused(settings, message, refuses):
    written(Path("two.nc"), np.stack([WAVE, WAVE], -1))
    chosen = SIZES | {f"data.{key}": value for key, value in settings.items()}
    refuses(message, nfsgeo.prepare, written(Path("a.nc")), chosen)


def test_further_files_of_arrays_are_read_by_the_columns_of_the_run(one_line):
    """Whatever format they seem to be of, unless they tell all by themselves."""
    u = WAVE[:, :, 0]
    columns = {"field": "u:np", "points": "coords"}
    data = load_config(overrides={"data.columns": columns}).data
    np.savez("few.npz", u=u[:5], coords=POINTS)
    with open_as(data, Path("few.npz")) as fields:
        assert (fields.num_samples, len(fields.times)) == (5, 1)
    np.savez("times.npz", u=WAVE, coords=POINTS, t=TIMES)
    for path in (written(Path("own.npz")), written(Path("a.nc")), Path("times.npz")):
        with open_as(data, path) as fields:
            assert (fields.num_samples, len(fields.times)) == (20, 6)
    np.savez("other.npz", u=u, place=POINTS)
    assert "no array 'coords' in other.npz" in one_line(
        open_as, data, Path("other.npz")
    )
