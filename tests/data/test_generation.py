"""Generated files hold what the solvers give, and survive interruption."""

import shutil
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo.data
from nfsgeo.data.generation import generate
from nfsgeo.data.pde import EQUATIONS, find_equation
from nfsgeo.errors import UserError

SMALL: dict[str, dict[str, Any]] = {
    "burgers": {"resolution": 64, "num_steps": 5},
    "kdv": {"resolution": 64, "num_steps": 5},
    "darcy": {"resolution": 16},
    "navier-stokes": {"resolution": 32, "num_steps": 2},
    "elasticity": {"resolution": 4},
    "sphere-waves": {"resolution": 16, "num_steps": 3},
    "euler": {"resolution": 16, "num_steps": 3},
    "darcy-3d": {"resolution": 8, "num_steps": 1},
    "heat": {"resolution": 16},
    "ellipsoids": {"resolution": 4},
    "wake": {"resolution": 16, "num_steps": 2, "options": {"spin_up": 1}},
}
ROUGH = {"equation": "navier-stokes", "resolution": 64, "num_steps": 12}
ROUGH |= {"options": {"nu": 1e-8, "sigma2": 12e3}}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUATIONS)
def test_file_holds_the_solutions(name, tmp_path):
    small = SMALL[name]
    equation = find_equation(name, small.get("options"))
    path = generate(name, tmp_path / "x.nc", samples=6, seed=5, batch_size=4, **small)
    steps, resolution = small.get("num_steps", 1), small["resolution"]
    expected = equation.solve(5, range(6), resolution=resolution, num_steps=steps)
    with nfsgeo.data.open(path) as file:
        assert file.equation == name
        assert file.num_samples == 6
        axes = equation.axes(resolution)
        assert file.shape == (equation.shape(resolution) if axes else None)
        assert file.component_names == [*equation.component_names]
        assert file.dtype == np.float32
        assert file.domain == equation.domain
        np.testing.assert_array_equal(file.times, equation.times(steps))
        for found, axis in zip(file.axes or (), axes, strict=True):
            np.testing.assert_array_equal(found, axis)
        for sample in range(6):
            u = expected.u[sample].flatten(1, -2).transpose(0, 1)
            stored = file.read(sample, slice(0, steps))
            np.testing.assert_allclose(stored, u.numpy(), rtol=2e-7, atol=1e-9)
            for c, static in enumerate(equation.static_names):
                a, kept = expected.a[sample][..., c], file.dataset[static]
                fixed = equation.static_inputs or not equation.spacing
                role = "static" if fixed else "initial condition"
                assert kept.attrs["role"] == role
                stored = kept[sample] if axes else file.read_static(sample)[:, c]
                np.testing.assert_allclose(stored, a, rtol=2e-7, atol=1e-9)
            if expected.pos is not None:
                pos, cells = file.coordinates(sample), file.cells(sample)
                np.testing.assert_array_equal(pos, expected.pos[sample])
                np.testing.assert_equal(cells, equation.cells(resolution))
            if expected.scalars is not None:
                names, num = equation.static_names, len(equation.scalar_names)
                assert file.input_names == [*names, *equation.scalar_names]
                stored = file.read_inputs(sample)[:, -num:]
                scalars = expected.scalars[sample].expand(len(stored), num)
                np.testing.assert_allclose(stored, scalars, rtol=2e-7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"equation": "burger"}, "equation 'burger'.*the nearest is burgers"),
        ({"options": {"time-stride": 2}}, "time-stride.*nearest is time_stride"),
        ({"options": {"nu": "thick"}}, "nu='thick': expected a valid number"),
        ({"options": {"nu": -1}}, "nu=-1: expected greater than 0"),
        ({"options": {"time_stride": 1.5}}, "=1.5: expected a valid integer"),
        ({"equation": "kdv", "options": {"ic": "sin"}}, "ic='sin'.*'cos' or 'sech2'"),
        ({"equation": "elasticity", "options": {"nu": 0.5}}, "nu=0.5: expected less"),
        ({"samples": 0}, "samples=0: expected 1 or more"),
        ({"resolution": 2}, "resolution=2: expected 4 or more"),
        ({"num_steps": 0}, "records=0"),
        ({"workers": 0}, "workers=0"),
        ({"seed": -1}, "seed -1"),
        ({"device": "abacus"}, "device 'abacus': expected cpu"),
        ({"equation": "darcy", "num_steps": 2}, "records=2"),
        (ROUGH, "navier-stokes sample 0 with fraction of unresolved"),
    ],
)
def test_wrong_settings(settings, message, tmp_path):
    call: dict[str, Any] = {"equation": "burgers", "samples": 1} | dict(settings)
    with pytest.raises(UserError, match=message):
        generate(out=tmp_path / "x.nc", **call)
    assert not (tmp_path / "x.nc").exists()
    assert settings is ROUGH or not list(tmp_path.iterdir())


def make(path: Path, seen: list[int], name: str, stop_after: int = -1) -> None:
    def progress(what: str, done: int, total: int) -> None:
        if what == "making samples":
            seen.append(done)
            if done == stop_after:
                raise KeyboardInterrupt

    generate(name, path, samples=8, batch_size=2, progress=progress, **SMALL[name])


@pytest.mark.parametrize("name", ["burgers", "elasticity"])
def test_interrupted_generation_goes_on(name, tmp_path, contents):
    whole, parts = tmp_path / "whole.nc", tmp_path / "parts.nc"
    make(whole, [], name)
    for stop, seen_then in ((4, [0, 2, 4]), (6, [4, 6])):
        seen: list[int] = []
        with pytest.raises(KeyboardInterrupt):
            make(parts, seen, name, stop)
        assert seen == seen_then
        assert not parts.exists()
    seen = []
    make(parts, seen, name)
    assert seen == [6, 8]
    assert contents(whole) == contents(parts)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parts.nc", "whole.nc"]


def test_other_batches_take_room_and_a_file_made_meanwhile_stays(tmp_path, monkeypatch):
    path, how = tmp_path / "x.nc", {"samples": 8, **SMALL["burgers"]}
    with pytest.raises(KeyboardInterrupt):
        make(path, [], "burgers", stop_after=4)
    with pytest.raises(UserError, match="staged with the same settings"):
        generate("burgers", path, seed=1, **how)
    usage = shutil.disk_usage(tmp_path)._replace(free=7000)  # half of the samples
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match="the disk is full"):
        generate("burgers", path, batch_size=4, **how)
    assert not [*tmp_path.rglob("u-0-4.npy")]  # told before it is made
    with pytest.raises(UserError, match="a new file"):
        generate("burgers", path, batch_size=2, progress=lambda *_: path.touch(), **how)
    assert not path.read_bytes()


def test_a_cached_file_is_made_once():
    settings: dict[str, Any] = {"samples": 2, "options": {"nu": 0.1}}
    path = generate("burgers", None, **settings, **SMALL["burgers"])
    made = path.stat().st_mtime_ns
    assert generate("burgers", None, **settings, **SMALL["burgers"]) == path
    assert path.stat().st_mtime_ns == made and "nu=0.1" in path.name


def test_two_processes_make_one_file(tmp_path, monkeypatch):
    """One waits for a file of the cache that another makes, and none disturbs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    how, others = {"samples": 2, **SMALL["burgers"]}, list[Any]()

    def other(what: str, done: int, total: int) -> None:
        if what == "making samples" and done == total:
            others.append(pool.submit(generate, "burgers", out, **how))

    with ThreadPoolExecutor() as pool:
        out = None
        path = generate("burgers", None, progress=other, **how)
        assert others[0].result() == path
        out = tmp_path / "x.nc"
        # As if it had been killed before the first sample.
        (tmp_path / "x.nc.partial").mkdir()
        (tmp_path / "x.nc.partial/about.json.1.partial").touch()
        generate("burgers", out, progress=other, **how)
        with pytest.raises(UserError, match="no other process works on|a new file"):
            others[1].result()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nfsgeo", "x.nc"]
    assert [*(tmp_path / "nfsgeo").iterdir()] == [path]


SCRIPT = """
    import sys
    from nfsgeo.data.generation import generate

    def report(what, done, total):
        if what == "making samples":
            print(done, flush=True)

    if __name__ == "__main__":
        generate(
            "navier-stokes", sys.argv[1], samples=12, resolution=64, num_steps=8,
            workers=2, batch_size=2, progress=report,
        )
"""


@pytest.mark.slow
def test_killed_workers_and_parent(tmp_path):
    """SIGKILL leaves the finished batches, no worker, and the call goes on."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    path = tmp_path / "x.nc"
    command = [sys.executable, str(script), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() in ("", "0"):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        # The pipe closes when the last process that holds it has ended.
        process.communicate(timeout=30)
    assert not path.exists()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = [int(line) for line in again.stdout.split()]
    assert seen[0] >= 2 and seen[-1] == 12
    solution = EQUATIONS["navier-stokes"].solve(0, [0, 11], resolution=64, num_steps=8)
    with nfsgeo.data.open(path) as file:
        for row, sample in enumerate((0, 11)):
            stored = file.read(sample, slice(0, 8))[..., 0].T.reshape(8, 64, 64)
            made = solution.u[row, ..., 0].numpy()
            np.testing.assert_allclose(stored, made, rtol=2e-7, atol=1e-9)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", EQUATIONS)
def test_cuda_makes_the_same_file(name, tmp_path):
    for device in ("cpu", "cuda"):
        path = tmp_path / f"{device}.nc"
        generate(name, path, samples=3, device=device, workers=2, **SMALL[name])
    files = [nfsgeo.data.open(tmp_path / f"{device}.nc") for device in ("cpu", "cuda")]
    for sample in range(3):
        here, there = (file.read_all(sample, slice(None)) for file in files)
        np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-8)


def test_node_types_say_what_they_mean(tmp_path):
    out = generate("heat", tmp_path / "heat.nc", samples=2, resolution=16)
    about = nfsgeo.data.open(out).dataset["node_type"].attrs
    assert about["flag_meanings"].split() == ["interior", "wall", "inflow", "outflow"]
    assert about["flag_values"].tolist() == [0, 1, 2, 3]
