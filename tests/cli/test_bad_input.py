"""User errors: exit status 2, one line that says what to do, and whole files."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from commands import refused

import nfsgeo as library
from nfsgeo.geometry import Domain


def spoilt(waves: Path, path: Path, spoil: Callable[[h5py.File], None]) -> Path:
    path.write_bytes(waves.read_bytes())
    with h5py.File(path, "r+") as file:
        spoil(file)
    return path


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("trian", "trian"),
        ("train --data no.nc", "no.nc|an existing file"),
        ("convert cut.nc --out c.nc", "cut.nc"),
        ("train --data a_1.nc a_2.nc", "2 names|--data 'a_*.nc'"),
        ("evaluate RUN --data WAVES ../b.nc --json", "2 names|--data '*.nc'"),
        ("predict --input a b --output c RUN", "2 names|--input '*'"),
        ("train --data WAVES --no-such-option", "--no-such-option"),
        ("train --data WAVES --epochs 0", "epochs=0"),
        ("train --data WAVES --mesh hexagonal", "hexagonal"),
        ("train --data WAVES --set trainer.epochs", "KEY=VALUE"),
        ("train --data WAVES --model nsf", "the nearest is nfs"),
        ("train --data WAVES --set trainer.epoch=3", "the nearest is trainer.epochs"),
        ("train --data WAVES --n-in 10 --n-out 40", "--n-out 40|at most the 24"),
        ("train --data WAVES --model fno --grid 12", "--grid 12|give --grid 8"),
        ("train --data WAVES --out file/run", "file"),
        ("train --data WAVES --out RUN", "a folder that is new or empty|--resume"),
        ("train --resume RUN --epochs 3", "--epochs 3|train --config"),
        ("train --resume .", "a run folder"),
        ("evaluate RUN --part all", "--data FILE"),
        ("evaluate RUN --data cube.nc", "cube.nc"),
        ("plot .", "a run folder"),
        ("export . --out x.pt2", "a run folder"),
        ("export RUN --out x --format tflite", "tflite"),
        ("export RUN --out mine.nc", "mine.nc"),
        ("convert WAVES --out mine.nc", "mine.nc"),
        ("convert WAVES --out /proc/new.nc", "/proc/new.nc|a usable path"),
        ("predict RUN --input WAVES --output mine.nc", "mine.nc"),
        ("convert WAVES --out c.nc --times 0:10", "--times 0:10|START:STOP:STEP"),
        ("convert WAVES --out c.nc --times 0:1e12:1", "START:STOP:STEP"),
        ("convert WAVES --out c.nc --times 0:1:0.3", "--times"),
        ("convert WAVES --out c.nc --times a,b", "--times"),
        (
            "convert WAVES --out c.nc --times 0:1:0.5",
            "3 times of 24 time steps|one for each",
        ),
        ("convert WAVES --out c.nc --columns time", "ROLE=NAME"),
        ("convert WAVES --out c.nc --axis 0", "LOW:HIGH"),
        ("convert WAVES --out c.nc --axis 0:1:round", "LOW:HIGH"),
        ("generate burgers --out mine.nc", "mine.nc"),
        ("generate burgers --out o --option time-stride=2", "nearest is time_stride"),
        ("generate burger --out o", "'burger'|the nearest is burgers"),
        ("generate all --out o --option nu=1", "--option nu=1 with all|one equation"),
        ("predict --input WAVES --output p.nc", "RUN or --model"),
        ("predict --model burger --input WAVES --output p.nc", "burgers-small"),
        (
            "predict --model burgers-small --input WAVES --output p.nc",
            "waves.nc|periodic along x, y",
        ),
        (
            "predict RUN --input WAVES --output p.nc --query-points q.npy",
            "q.npy|in the domain",
        ),
    ],
)
def test_what_cannot_be_done(nfsgeo, run, waves, tmp_path, command, words):
    (tmp_path / "cut.nc").write_bytes(waves.read_bytes()[:5000])
    (tmp_path / "mine.nc").write_text("precious")
    (tmp_path / "file").write_text("")
    np.save(tmp_path / "q.npy", np.array([[0.5, 2.5]]))
    u, pos, times = np.zeros((6, 30, 20)), np.eye(3), 0.25 * np.arange(20)
    cube = library.from_arrays(u[:, :3], 0.5 * pos, times, domain=Domain.unit(3))
    cube.write(tmp_path / "cube.nc")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    paths = {"WAVES": waves, "RUN": run}
    result = nfsgeo(*[paths.get(word, word) for word in command.split()])
    refused(result, *words.split("|"))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("bad", [-np.inf, np.inf])
@pytest.mark.parametrize("sample", [3, 15])  # of the training and validation parts
def test_values_that_are_infinite(nfsgeo, waves, bad, sample):
    def spoil(file: h5py.File) -> None:
        file["u"][sample, 12] = bad

    data = spoilt(waves, Path("bad.nc"), spoil)
    refused(nfsgeo("train", "--data", data), f"sample {sample} of", "finite")
    assert not Path("runs").exists()


def test_points_outside_the_domain(nfsgeo):
    random, path = np.random.default_rng(0), Path("cloud.nc")
    points, u = random.random((30, 2)), random.random((6, 30, 20))
    domain = Domain.unit(2, periodic=False)
    library.from_arrays(u, points, np.arange(20.0), domain=domain).write(path)
    with h5py.File(path, "r+") as file:
        file["x"][7] = 3.0
    refused(nfsgeo("train", "--data", "cloud.nc"), "cloud.nc", "domain")


def uneven(waves: Path, path: Path) -> Path:
    """Snapshots at t = 0, 1, ..., 11, 13, 15, ..."""

    def spoil(file: h5py.File) -> None:
        t = np.arange(24.0)
        file["time"][...] = np.where(t < 12, t, 2 * t - 11)

    return spoilt(waves, path, spoil)


def test_unequal_time_steps(nfsgeo, waves):
    data = uneven(waves, Path("uneven.nc"))
    words = "1 from t = 10 and 2 from t = 11 to 13", "first_step", "time_stride"
    refused(nfsgeo("train", "--data", data, "--n-in", 8, "--n-out", 8), *words)
    assert not Path("runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 11])
def test_equal_time_steps_within_the_window(waves, first):
    data = uneven(waves, Path("uneven.nc"))
    window = {"data.n_in": 6, "data.n_out": 6, "data.first_step": first}
    library.prepare(data, {"model.name": "nfs", **window})


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("convert WAVES --out", "p.vtp"),
        ("generate burgers --samples 3 --out", "p.csv"),
        ("predict RUN --input WAVES --output", "p.npy"),
        ("export RUN --out", "p.nc"),
        ("export RUN --out", "p.onnx"),
    ],
)
def test_names_that_end_in_another_format(nfsgeo, run, waves, tmp_path, command, name):
    paths = {"WAVES": waves, "RUN": run}
    result = nfsgeo(*[paths.get(word, word) for word in command.split()], name)
    refused(result, f"{name} to write", "a name that ends in")
    assert not list(tmp_path.glob("p.*"))


def test_a_checkpoint_of_another_model(nfsgeo, run):
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("width: 4", "width: 8"))
    refused(nfsgeo("evaluate", run), "best.ckpt", "a checkpoint of nfs")
    refused(nfsgeo("train", "--resume", run), "last.ckpt", "a checkpoint of nfs")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda(nfsgeo, run, waves):
    options = ("--data", waves, "--device", "cuda")
    refused(nfsgeo("train", *options), "--device cuda", "--device cpu")
    refused(nfsgeo("evaluate", run, "--device", "cuda"), "--device cuda")
