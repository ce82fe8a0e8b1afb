"""User errors: exit status 2, one line that says what to do, and whole files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from click.testing import Result

from nfsgeo import from_arrays
from nfsgeo.geometry import Domain

Command = Callable[..., Result]


def refused(result: Result, *words: str) -> None:
    """Exit 2, nothing on stdout, one line on stderr with the given words."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for word in words:
        assert word in line


def spoilt(waves: Path, path: Path, spoil: Callable[[h5py.File], None]) -> Path:
    path.write_bytes(waves.read_bytes())
    with h5py.File(path, "r+") as file:
        spoil(file)
    return path


def test_a_missing_file(nfsgeo: Command, tmp_path: Path) -> None:
    refused(nfsgeo("train", "--data", "no.nc"), "no.nc", "an existing file")
    refused(nfsgeo("info", "no.nc"), "no.nc", "an existing file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["train --data", "info", "convert --out c.nc"])
def test_a_truncated_file(
    nfsgeo: Command, waves: Path, tmp_path: Path, verb: str
) -> None:
    content = waves.read_bytes()
    (tmp_path / "cut.nc").write_bytes(content[: len(content) // 2])
    refused(nfsgeo(*verb.split(), "cut.nc"), "cut.nc")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.nc"]


@pytest.mark.parametrize("content", [b"", b"not HDF5 at all", b"\x89HDF\r\n\x1a\n"])
def test_a_file_that_is_not_native(
    nfsgeo: Command, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "odd.nc").write_bytes(content)
    refused(nfsgeo("train", "--data", "odd.nc"), "odd.nc")


def test_hdf5_of_someone_else(nfsgeo: Command, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.nc", "w") as file:
        file["measurements"] = np.zeros(3)
    refused(nfsgeo("train", "--data", "other.nc"), "other.nc")


@pytest.mark.parametrize("bad", [-np.inf, np.inf])
@pytest.mark.parametrize("sample", [3, 15])  # of the training and validation parts
def test_values_that_are_infinite(
    nfsgeo: Command, waves: Path, tmp_path: Path, bad: float, sample: int
) -> None:
    def spoil(file: h5py.File) -> None:
        file["u"][sample, 12] = bad

    data = spoilt(waves, tmp_path / "bad.nc", spoil)
    refused(nfsgeo("train", "--data", data), f"sample {sample} of", "finite")
    assert not (tmp_path / "runs").exists()


def uneven(waves: Path, path: Path) -> Path:
    """Snapshots at t = 0, 1, ..., 11, 13, 15, ..."""

    def spoil(file: h5py.File) -> None:
        t = np.arange(24.0)
        file["time"][...] = np.where(t < 12, t, 2 * t - 11)

    return spoilt(waves, path, spoil)


def test_unequal_time_steps(nfsgeo: Command, waves: Path, tmp_path: Path) -> None:
    data = uneven(waves, tmp_path / "uneven.nc")
    words = "1 from t = 10 and 2 from t = 11 to 13", "first_step", "time_stride"
    refused(nfsgeo("train", "--data", data, "--n-in", 8, "--n-out", 8), *words)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 11])
def test_equal_time_steps_within_the_window(
    waves: Path, tmp_path: Path, first: int
) -> None:
    import nfsgeo

    data = uneven(waves, tmp_path / "uneven.nc")
    window = {"data.n_in": 6, "data.n_out": 6, "data.first_step": first}
    nfsgeo.prepare(data, {"model.name": "nfs", **window})


@pytest.mark.parametrize(
    "command",
    [
        "convert WAVES --out p.vtp",
        "generate burgers --out p.csv --samples 3",
        "predict RUN --input WAVES --output p.npy",
        "export RUN --out p.nc",
        "export RUN --out p.onnx",
    ],
)
def test_names_that_end_in_another_format(
    nfsgeo: Command, run: Path, waves: Path, tmp_path: Path, command: str
) -> None:
    paths = {"WAVES": waves, "RUN": run}
    result = nfsgeo(*[paths.get(word, word) for word in command.split()])
    name = next(word for word in command.split() if word.startswith("p."))
    refused(result, f"{name} to write", "a name that ends in")
    assert not list(tmp_path.glob("p.*"))


@pytest.mark.parametrize("text", ["0:10", "0:10:0", "0:1:0.3", "1:0:1", "a,b", ""])
def test_times_that_cannot_be_used(
    nfsgeo: Command, waves: Path, tmp_path: Path, text: str
) -> None:
    refused(nfsgeo("convert", waves, "--out", "c.nc", "--times", text), "--times")
    refused(
        nfsgeo("convert", waves, "--out", "c.nc", "--times", "0:1:0.5"),
        "times [0.0, 0.5, 1.0]",
        "each of the 24 time steps",
    )


def test_columns_that_cannot_be_used(nfsgeo: Command, waves: Path) -> None:
    options = ("--out", "c.nc", "--columns")
    refused(
        nfsgeo("convert", waves, *options, "time=t"),
        "columns",
        "a format that takes columns",
    )
    refused(nfsgeo("convert", waves, *options, "time"), "ROLE=NAME")


def test_a_folder_of_zarr_without_anything(nfsgeo: Command, tmp_path: Path) -> None:
    (tmp_path / "st.zarr").mkdir()
    (tmp_path / "st.zarr" / "zarr.json").write_text("{}")
    for arguments in (("info",), ("train", "--data"), ("convert", "--out", "c.nc")):
        refused(nfsgeo(*arguments, "st.zarr"), "st.zarr", "Zarr")


def test_fewer_time_steps_than_asked_for(nfsgeo: Command, waves: Path) -> None:
    result = nfsgeo("train", "--data", waves, "--n-in", 10, "--n-out", 40)
    refused(result, "--n-out 40", "at most the 24 time steps")


def test_more_points_than_the_grid_has(nfsgeo: Command, waves: Path) -> None:
    refused(nfsgeo("train", "--data", waves, "--points", 9000), "9000", "256")


def test_points_outside_the_domain(nfsgeo: Command, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    points, u = random.random((30, 2)), random.random((6, 30, 20))
    domain = Domain.unit(2, periodic=False)
    fields = from_arrays(u, points, np.arange(20.0), domain=domain)
    fields.write(tmp_path / "cloud.nc")
    with h5py.File(tmp_path / "cloud.nc", "r+") as file:
        file["x"][7] = 3.0
    refused(nfsgeo("train", "--data", "cloud.nc"), "cloud.nc", "domain")


def test_query_points_outside_the_domain(
    nfsgeo: Command, run: Path, waves: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "q.npy", np.array([[0.5, 2.5]]))
    options = ("--input", waves, "--output", "o.nc", "--query-points", "q.npy")
    refused(nfsgeo("predict", run, *options), "q.npy", "in the domain")
    assert not (tmp_path / "o.nc").exists()


@pytest.mark.parametrize(
    ("options", "nearest"),
    [
        (("--model", "nsf"), "nfs"),
        (("--set", "trainer.epoch=3"), "trainer.epochs"),
        (("--set", "model.settings.widht=3"), "model.settings.width"),
        (("--set", "optimizer.lr=3"), "optimiser.lr"),
    ],
)
def test_unknown_names(
    nfsgeo: Command, waves: Path, options: tuple[str, str], nearest: str
) -> None:
    result = nfsgeo("train", "--data", waves, *options)
    refused(result, f"the nearest is {nearest}")


@pytest.mark.parametrize(
    "options",
    [
        ("--epochs", "many"),
        ("--epochs", "0"),
        ("--lr", "-1"),
        ("--device", "tpu"),
        ("--set", "trainer.epochs"),
        ("--mesh", "hexagonal"),
        ("--no-such-option",),
    ],
)
def test_wrong_values(nfsgeo: Command, waves: Path, options: tuple[str, ...]) -> None:
    refused(nfsgeo("train", "--data", waves, *options))


@pytest.mark.parametrize(
    ("equation", "option", "words"),
    [
        ("burgers", "nu", ("--option nu", "KEY=VALUE")),
        ("burgers", "time-stride=2", ("'time-stride'", "nearest is time_stride")),
        ("burger", "nu=1", ("'burger'", "the nearest is burgers")),
        ("all", "nu=1", ("--option nu=1 with all", "one equation")),
    ],
)
def test_wrong_equations_and_options(
    nfsgeo: Command, equation: str, option: str, words: tuple[str, ...]
) -> None:
    refused(nfsgeo("generate", equation, "--out", "o", "--option", option), *words)


def test_an_unknown_verb(nfsgeo: Command) -> None:
    refused(nfsgeo("trian"), "trian")


def test_an_output_folder_that_exists(nfsgeo: Command, run: Path, waves: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    result = nfsgeo("train", "--data", waves, "--out", run)
    refused(result, "a folder that is new or empty", "--resume")
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before


def test_an_output_file_that_exists(
    nfsgeo: Command, waves: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.nc").write_text("precious")
    refused(nfsgeo("convert", waves, "--out", "mine.nc"), "mine.nc")
    refused(nfsgeo("generate", "burgers", "--out", "mine.nc"), "mine.nc")
    assert (tmp_path / "mine.nc").read_text() == "precious"


def test_a_checkpoint_of_another_model(nfsgeo: Command, run: Path) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("width: 4", "width: 8"))
    refused(nfsgeo("evaluate", run), "best.ckpt", "a checkpoint of nfs")
    refused(nfsgeo("train", "--resume", run), "last.ckpt", "a checkpoint of nfs")


def test_a_folder_that_is_no_run(nfsgeo: Command, tmp_path: Path) -> None:
    for arguments in (("train", "--resume"), ("evaluate",), ("info",), ("plot",)):
        refused(nfsgeo(*arguments, tmp_path), "a run folder")


def test_resume_takes_no_other_option(nfsgeo: Command, run: Path) -> None:
    refused(nfsgeo("train", "--resume", run, "--epochs", 3), "--epochs", "alone")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "burger"), ("burger", "burgers-small")),
        ((), ("RUN or --model",)),
        (("a-run", "--model", "burgers-small"), ("RUN or --model",)),
        (("--model", "burgers-small"), ("waves.nc", "periodic along x, y")),
    ],
)
def test_models_that_come_trained(
    nfsgeo: Command, waves: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    options = ("--input", waves, "--output", "p.nc")
    refused(nfsgeo("predict", *arguments, *options), *words)
    assert not Path("p.nc").exists()


def test_an_export_of_nothing(nfsgeo: Command, run: Path, tmp_path: Path) -> None:
    refused(nfsgeo("export", tmp_path, "--out", "x.pt2"), "a run folder")
    (tmp_path / "mine.pt2").write_text("precious")
    refused(nfsgeo("export", run, "--out", "mine.pt2"), "mine.pt2")
    refused(nfsgeo("export", run, "--out", "x", "--format", "tflite"), "tflite")
    assert (tmp_path / "mine.pt2").read_text() == "precious"


def test_data_of_another_kind(nfsgeo: Command, run: Path, tmp_path: Path) -> None:
    points, times = np.random.default_rng(0).random((30, 3)), 0.25 * np.arange(20)
    u, domain = np.zeros((6, 30, 20)), Domain.unit(3)
    fields = from_arrays(u, points, times, domain=domain)
    fields.write(tmp_path / "other.nc")
    refused(nfsgeo("evaluate", run, "--data", "other.nc"), "other.nc")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda(nfsgeo: Command, run: Path, waves: Path) -> None:
    options = ("--data", waves, "--device", "cuda")
    refused(nfsgeo("train", *options), "--device cuda", "--device cpu")
    refused(nfsgeo("evaluate", run, "--device", "cuda"), "--device cuda")


def test_a_folder_without_permission(
    nfsgeo: Command, waves: Path, quick: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = nfsgeo("train", *quick, "--out", "file/run")
    refused(result, "file")
