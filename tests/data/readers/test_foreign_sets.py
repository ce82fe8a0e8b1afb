"""Sets of CAMLab and of Geo-FNO: layouts of any size, times, splits, and damage."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.data.readers import READERS
from nfsgeo.data.splits import published_split, split_in_order
from nfsgeo.errors import UserError

RNG = np.random.default_rng(2)
unhurried = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}
sizes = st.integers(1, 5)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def camlab(path: Path, **arrays: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path


def elasticity(folder: Path, samples: int = 4, points: int = 7) -> Path:
    np.save(folder / "Random_UnitCell_sigma_10.npy", RNG.random((points, samples)))
    np.save(folder / "Random_UnitCell_XY_10.npy", RNG.random((points, 2, samples)))
    return folder / "Random_UnitCell_sigma_10.npy"


def on_grid(
    folder: Path,
    name: str = "Pipe",
    samples: int = 4,
    channels: int = 5,
    grid: tuple[int, int] = (3, 4),
) -> Path:
    np.save(folder / f"{name}_Q.npy", normal(samples, channels, *grid))
    for axis in "XY":
        np.save(folder / f"{name}_{axis}.npy", RNG.random((samples, *grid)))
    return folder / f"{name}_Q.npy"


@settings(max_examples=30, **unhurried)
@given(sizes, sizes, sizes, sizes, st.integers(1, 3), st.booleans(), st.integers(0, 2))
def test_camlab_of_any_size(
    tmp_path: Path,
    samples: int,
    steps: int,
    points: int,
    width: int,
    dim: int,
    shared: bool,
    static: int,
) -> None:
    u = normal(samples, steps, points, width)
    x = RNG.random((1 if shared else samples, 1, points, dim))
    c = normal(samples, 1, points, static)
    arrays = {"u": u, "x": x} | ({"c": c.repeat(steps, axis=1)} if static else {})
    path = camlab(tmp_path / "own.nc", **arrays)
    assert sum(reader.recognise(path) for reader in READERS) == 1
    with open_sources(path, times=np.arange(float(steps))) as file:
        assert (file.num_samples, file.components) == (samples, width)
        assert file.static_role == ("coefficient" if static else None)
        meshes = {file.mesh_id(sample) for sample in range(samples)}
        assert len(meshes) == len(x)
        for sample in range(samples):
            found = file.read(sample, slice(None)).swapaxes(0, 1)
            np.testing.assert_array_equal(found, u[sample])
            np.testing.assert_array_equal(file.read_static(sample), c[sample, 0])
            pos = file.coordinates(sample)
            np.testing.assert_array_equal(pos, x[sample % len(x), 0])
            assert (pos >= file.domain.lower).all()
            assert (pos <= file.domain.upper).all()


def test_times_domains_and_names_of_published_sets(tmp_path: Path) -> None:
    x = RNG.random((1, 1, 6, 2))
    u = normal(3, 21, 6, 5)
    for name, end, names in (
        ("NS-Gauss", 1.0, ["velocity_x", "velocity_y"]),
        ("ns_pwc", 1.0, ["velocity_x", "velocity_y"]),
        ("CE-Gauss", 1.0, ["density", "velocity_x", "velocity_y", "pressure"]),
        ("wave_c_sines", 0.1, ["u"]),
    ):
        with nfsgeo.data.open(camlab(tmp_path / f"{name}.nc", u=u, x=x)) as file:
            np.testing.assert_allclose(file.times, np.linspace(0, end, 21))
            assert file.component_names == names
            flow = "wave" not in name
            assert file.domain.periodic == (flow, flow)
            assert file.domain_is_known == flow
            found = file.read(1, slice(14, 15))[:, 0]
            np.testing.assert_array_equal(found, u[1, 14, :, : len(names)])
            again = copy.copy(file)  # opened anew, as in another process
            np.testing.assert_array_equal(again.read(1, slice(14, 15))[:, 0], found)
    c = normal(3, 1, 6, 1)
    path = camlab(tmp_path / "Poisson-Gauss.nc", u=u[:, :1, :, :1], x=x, c=c)
    with copy.copy(nfsgeo.data.open(path)) as file:
        assert file.times.tolist() == [0.0] and file.times_are_known
        assert file.static_names == ["source"]


def test_times_are_never_guessed(tmp_path: Path, one_line: Callable[..., str]) -> None:
    x = RNG.random((1, 1, 6, 2))
    for name, steps in (("own", 21), ("NS-Gauss", 15)):
        path = camlab(tmp_path / f"{name}.nc", u=normal(3, steps, 6, 2), x=x)
        assert "--times" in one_line(nfsgeo.data.open, path)
        out = tmp_path / f"{name}.h5"
        nfsgeo.data.convert(path, out, times=0.05 * np.arange(steps))
        with nfsgeo.data.open(out) as file:
            assert file.times[-1] == pytest.approx(0.05 * (steps - 1))


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("own", {"x": np.zeros((2, 1, 6, 2))}, "x of shape"),
        ("own", {"x": np.zeros((1, 2, 6, 2))}, "x of shape"),
        ("own", {"x": np.zeros((1, 1, 5, 2))}, "x of shape"),
        ("own", {"x": np.full((1, 1, 6, 2), np.nan)}, "own.nc"),
        ("own", {"c": np.zeros((3, 1, 5, 1))}, "c of shape"),
        ("own", {"c": np.zeros((3, 6))}, "c of shape"),
        ("own", {"c": np.arange(36.0).reshape(3, 2, 6, 1)}, "changes in time"),
        ("NS-SL", {"x": 2 + np.zeros((1, 1, 6, 2))}, "periodic"),
        ("NS-SL", {"u": np.zeros((3, 21, 6, 1))}, "velocity_y"),
        ("NS-SL", {"u": np.zeros((3, 1, 6, 2))}, "1 time steps"),
        ("Poisson-Gauss", {}, "no c"),
    ],
)
def test_sets_of_camlab_that_contradict_themselves(
    tmp_path: Path,
    one_line: Callable[..., str],
    name: str,
    change: dict[str, np.ndarray],
    word: str,
) -> None:
    steps = 21 if name == "NS-SL" else 1
    arrays = {"u": normal(3, steps, 6, 2), "x": RNG.random((1, 1, 6, 2))}
    path = camlab(tmp_path / f"{name}.nc", **(arrays | change))

    def read_all() -> None:
        with nfsgeo.data.open(path) as file:
            file.read_static(0)

    assert word in one_line(read_all)


@settings(max_examples=20, **unhurried)
@given(sizes, sizes, sizes, sizes)
def test_geo_fno_of_any_size(
    tmp_path: Path, samples: int, points: int, rows: int, columns: int
) -> None:
    path = elasticity(tmp_path, samples, points)
    stress, pos = np.load(path), np.load(tmp_path / "Random_UnitCell_XY_10.npy")
    wanted = [(path, "stress", stress.T[..., None], pos.transpose(2, 0, 1))]
    for name, channel, component in (
        ("Pipe", 0, "velocity_x"),
        ("NACA_Cylinder", 4, "mach"),
    ):
        path = on_grid(tmp_path, name, samples, 5, (rows, columns))
        fields = np.load(path)[:, channel].reshape(samples, -1, 1)
        axes = [np.load(tmp_path / f"{name}_{axis}.npy") for axis in "XY"]
        pos = np.stack(axes, -1).reshape(samples, -1, 2)
        wanted.append((path, component, fields, pos))
    for path, component, fields, pos in wanted:
        assert sum(reader.recognise(path) for reader in READERS) == 1
        with nfsgeo.data.open(path) as file:
            assert file.component_names == [component]
            assert file.static_names == ["x", "y"] and len(file.times) == 1
            for sample in range(samples):
                found = file.read(sample, slice(None))[:, 0]
                np.testing.assert_array_equal(found, fields[sample].astype(np.float32))
                np.testing.assert_array_equal(file.coordinates(sample), pos[sample])
                input_ = file.read_static(sample)
                np.testing.assert_array_equal(input_, pos[sample].astype(np.float32))


def test_a_set_is_opened_by_its_fields_and_needs_its_other_files(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    elasticity(tmp_path)
    message = one_line(nfsgeo.data.open, tmp_path / "Random_UnitCell_XY_10.npy")
    assert "Random_UnitCell_sigma_10.npy" in message
    path = on_grid(tmp_path)
    (path.parent / "Pipe_Y.npy").unlink()
    assert "without Pipe_Y.npy" in one_line(nfsgeo.data.open, path)
    (tmp_path / "pipe").mkdir()
    on_grid(tmp_path / "pipe")
    message = one_line(nfsgeo.data.convert, tmp_path / "pipe", tmp_path / "out.h5")
    assert "Pipe_Q.npy alone" in message and not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize(
    ("file", "shape"),
    [
        ("Pipe_Q.npy", (4, 12)),
        ("Pipe_Q.npy", (4, 0, 3, 4)),
        ("Pipe_X.npy", (3, 3, 4)),
        ("Pipe_Y.npy", (4, 4, 3)),
        ("NACA_Cylinder_Q.npy", (4, 4, 3, 4)),
        ("Random_UnitCell_XY_10.npy", (7, 3, 4)),
        ("Random_UnitCell_XY_10.npy", (4, 7, 2)),
        ("Random_UnitCell_sigma_10.npy", (4, 7)),
    ],
)
def test_arrays_of_geo_fno_that_do_not_fit(
    tmp_path: Path, one_line: Callable[..., str], file: str, shape: tuple[int, ...]
) -> None:
    paths = [
        elasticity(tmp_path),
        on_grid(tmp_path),
        on_grid(tmp_path, "NACA_Cylinder"),
    ]
    np.save(tmp_path / file, np.zeros(shape))
    (path,) = (each for each in paths if each.name[:4] == file[:4])
    assert "shape" in one_line(nfsgeo.data.open, path)


@settings(max_examples=60, **unhurried)
@given(data=st.data())
def test_damage_gives_one_line(tmp_path: Path, data: st.DataObject) -> None:
    u, x = normal(3, 1, 6, 2), RNG.random((3, 1, 6, 2))
    sets = {
        path: sorted(path.parent.glob(f"{path.name[:4]}*"))
        for path in (
            elasticity(tmp_path),
            on_grid(tmp_path),
            camlab(tmp_path / "Elasticity.nc", u=u, x=x, c=u),
        )
    }
    path = data.draw(st.sampled_from(sorted(sets)))
    victim = data.draw(st.sampled_from(sets[path]))
    raw = victim.read_bytes()
    place = data.draw(st.integers(0, len(raw) - 1))
    noise = data.draw(st.binary(max_size=16))
    rest = raw[place + len(noise) :] if noise else b""
    victim.write_bytes(raw[:place] + noise + rest)
    try:
        with nfsgeo.data.open(path) as file:
            for sample in range(file.num_samples):
                file.read(sample, slice(None))
                file.read_static(sample)
    except UserError as error:
        assert "\n" not in str(error)


def test_no_code_in_arrays_is_run(tmp_path: Path, one_line: Callable[..., str]) -> None:
    path = on_grid(tmp_path)
    np.save(path, np.array([print, "never"], dtype=object), allow_pickle=True)
    one_line(nfsgeo.data.open, path)


@given(st.integers(1, 3000), st.booleans())
def test_published_splits(num: int, test_last: bool) -> None:
    split = published_split(num, 1000, 100, 200, test_last=test_last)
    if num < 1300:
        expected: Any = split_in_order(num)
        assert {k: v.tolist() for k, v in split.items()} == {
            k: v.tolist() for k, v in expected.items()
        }
        return
    assert split["train"].tolist() == list(range(1000))
    first = num - 200 if test_last else 1000
    assert split["test"].tolist() == list(range(first, first + 200))
    assert len(set(np.concatenate(list(split.values())))) == 1300


def test_info_and_conversion(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from nfsgeo_cli import main

    path = on_grid(tmp_path, samples=6)
    told = CliRunner().invoke(main, ["info", str(path), "--json"])
    facts = json.loads(told.stdout)
    assert facts["points"] == 12 and facts["meshes"] == 6
    assert facts["static"] == {"x": "coefficient", "y": "coefficient"}
    out = str(tmp_path / "pipe.h5")
    assert CliRunner().invoke(main, ["convert", str(path), "--out", out]).exit_code == 0
    with nfsgeo.data.open(out) as file, nfsgeo.data.open(path) as source:
        for sample in range(6):
            values = file.read(sample, slice(None))
            np.testing.assert_array_equal(values, source.read(sample, slice(None)))
