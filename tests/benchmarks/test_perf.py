"""The benchmark of speed and memory, at sizes that take a moment."""

import csv
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from commands import refused

from nfsgeo.data.generation import generate
from nfsgeo_benchmarks.perf import entries
from nfsgeo_benchmarks.perf.entries import ENTRIES
from nfsgeo_benchmarks.perf.measure import Entry, measure
from nfsgeo_cli import main

# Most of them measure in processes of their own.
pytestmark = pytest.mark.slow

SMALL = {"size": entries.Size(points=64, time_steps=4, samples=2)}


def busy(folder: Path, device: str, *, seconds: float) -> Callable[[], object]:
    """Work of so many CPU seconds."""

    def run() -> None:
        begin = time.process_time()
        while time.process_time() - begin < seconds:
            pass

    return run


WORKS = {
    "variant": partial(busy, seconds=0.2),
    "reference": partial(busy, seconds=0.05),
}
FOUR_TIMES = Entry(name="four-times", bound=20, repeats=3, **WORKS)


def test_four_times_the_work_takes_four_times_as_long(tmp_path):
    seen: list[tuple[str, int, int]] = []
    measured = measure(FOUR_TIMES, tmp_path, "cpu", lambda *report: seen.append(report))
    assert measured["ratio"] == pytest.approx(4, rel=0.1)
    assert measured["variant_seconds"] == pytest.approx(0.2, rel=0.1)
    assert seen == [("four-times", done, 3) for done in (0, 0, 1, 2, 3)]


def touched(size: int) -> bytearray:
    """Memory that is really taken."""
    memory = bytearray(size)
    memory[:: 2**12] = bytes(len(memory[:: 2**12]))
    return memory


def takes(
    folder: Path, device: str, *, before: int, during: int
) -> Callable[[], object]:
    """Work that holds some memory, and needs more while it goes on."""
    touched(10**9)  # given back before it begins
    held = touched(before)
    return lambda: (len(held), touched(during))


def test_memory_is_that_of_the_work_alone(tmp_path):
    works = {"variant": partial(takes, before=3 * 10**8, during=10**8)}
    works["reference"] = partial(takes, before=0, during=2 * 10**8)
    entry = replace(FOUR_TIMES, **works, repeats=1, memory_bound=0.4)
    measured = measure(entry, tmp_path)
    assert measured["variant_peak_memory_bytes"] == pytest.approx(10**8, rel=0.1)
    assert measured["reference_peak_memory_bytes"] == pytest.approx(2 * 10**8, rel=0.1)
    assert measured["status"] == "missed"  # 0.5 of at most 0.4


def fills(folder: Path, device: str, *, size: int) -> Callable[[], float]:
    """Holds numbers for a moment."""
    return lambda: torch.ones(size, device=device).sum().item()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_memory_is_that_of_the_device(tmp_path):
    work = partial(fills, size=2**20)
    entry = replace(FOUR_TIMES, variant=work, reference=work)
    measured = measure(entry, tmp_path, "cuda")
    assert measured["variant_peak_memory_bytes"] == pytest.approx(2**22, rel=0.01)


def test_what_was_cached_is_not_read_again(tmp_path, monkeypatch):
    path = tmp_path / "navier-stokes.nc"
    generate("navier-stokes", path, samples=12, resolution=32, num_steps=20)
    works = [entries.read_batch(tmp_path, "cpu", cached=c) for c in (False, True)]
    for each in works:
        assert each().x.shape[1:] == (10, 1)
    entries.training_step(tmp_path, "cpu")()
    monkeypatch.setattr("nfsgeo.data.Fields.read_all", None)
    works[1]()
    with pytest.raises(TypeError):
        works[0]()


@pytest.mark.parametrize(
    "make",
    [
        partial(entries.step, model="nfs", **SMALL, settings={"grid": 8}),
        partial(entries.step, model="fno", **SMALL, settings={"width": 4, "modes": 2}),
        partial(entries.their_fno, **SMALL, width=4, depth=1, modes=2),
    ],
)
def test_steps_learn(make):
    run = make(Path(), "cpu")
    losses = [run() for _ in range(5)]
    assert losses[-1] < losses[0]


Command = Callable[..., Result]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `nfsgeo bench perf` with a small entry that is within its bound or not."""
    for name, bound in (("held", 20.0), ("missed", 0.1)):
        monkeypatch.setitem(ENTRIES, name, replace(FOUR_TIMES, name=name, bound=bound))
    fails = replace(FOUR_TIMES, name="fails", variant=broken)
    monkeypatch.setitem(ENTRIES, "fails", fails)
    command = ["bench", "perf", "--out", "o"]
    return lambda *options: CliRunner().invoke(main, [*command, *options])


def broken(folder: Path, device: str) -> Callable[[], float]:
    """Work whose process ends in the middle."""
    return lambda: os._exit(1)


def test_check(bench):
    result = bench("--check", "--only", "held")
    assert result.exit_code == 0, result.output
    assert "held" in result.stdout and max(map(len, result.stdout.splitlines())) <= 80
    for options, status in ((["--check"], 1), ([], 0)):
        result = bench(*options, "--only", "missed", "--json")
        (row,) = json.loads(result.stdout)["results"]
        assert row["name"] == "missed" and row["status"] == "missed"
        assert result.exit_code == status


def test_an_entry_that_fails_does_not_stop_the_others(bench):
    result = bench("--only", "fails", "--only", "held")
    assert result.exit_code == 1
    assert result.stderr.startswith("failed  fails: a process of the benchmark that")
    with open("o/results.csv") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["held"]


def test_entries_that_cannot_be_measured(bench, monkeypatch):
    lacking = replace(FOUR_TIMES, name="lacking", requires="no_such_package")
    monkeypatch.setitem(ENTRIES, "lacking", lacking)
    for options, word in (
        (("--only", "load-cache"), "load-cached"),
        (("--only", "lacking"), "no_such_package"),
        (("--only", "load-cached", "--device", "cuda"), "cuda"),
    ):
        refused(bench(*options), word)
    assert not Path("o").exists()
