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
    assert statuses() == {"fails": "failed", "held": "ok"}


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
    assert bench("--only", "lacking", "--only", "held").exit_code == 0
    assert statuses() == {"lacking": "skipped", "held": "ok"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_card(bench):
    refused(bench("--device", "cuda"), "--device cuda", "--device cpu")


def statuses() -> dict[str, str]:
    """Status of each row of the results, by name."""
    with open("o/results.csv") as file:
        return {row["name"]: row["status"] for row in csv.DictReader(file)}


class Event:
    """An event of a card that is none: it has the CPU time of the host."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.seconds = time.process_time()

    def elapsed_time(self, end: "Event") -> float:
        return 1000 * (end.seconds - self.seconds)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch sees a card, on which nothing can be computed."""
    memory = iter(range(10**6))
    for name, does in {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_name": lambda: "A card",
        "synchronize": lambda: None,
        "reset_peak_memory_stats": lambda: None,
        "memory_allocated": lambda: next(memory),
        "max_memory_allocated": lambda: next(memory),
        "Event": Event,
    }.items():
        monkeypatch.setattr(torch.cuda, name, does)


def test_a_card_is_timed_by_its_events_after_a_warm_up(card, tmp_path):
    entry = replace(FOUR_TIMES, card_bound=1.0, samples=2, **FAST)
    measured = measure(entry, tmp_path, "cuda")
    assert measured["ratio"] == pytest.approx(4, rel=0.3)
    assert measured["variant_samples_per_second"] == pytest.approx(100, rel=0.2)
    assert (measured["status"], measured["repeats"]) == ("missed", 20)
    assert measured["bound"] == measured["memory_ratio"] == 1


FAST = {
    "variant": partial(busy, seconds=0.02),
    "reference": partial(busy, seconds=0.005),
}
TURNS: list[str] = []


def interrupted(folder: Path, device: str) -> Callable[[], object]:
    """Work that is interrupted when it is tried first, and later is nothing."""
    TURNS.append(device)
    if len(TURNS) == 1:
        raise KeyboardInterrupt
    return lambda: None


def test_what_was_measured_before_an_interruption_is_kept(card, bench, monkeypatch):
    TURNS.clear()
    fast = {name: replace(FOUR_TIMES, name=name, **FAST) for name in ("first", "next")}
    last = replace(FOUR_TIMES, name="last", variant=interrupted, reference=interrupted)
    monkeypatch.setattr(entries, "ENTRIES", fast | {"last": last})
    assert bench("--device", "cuda").exit_code == 130
    before = Path("o/results.csv").read_text()
    assert statuses() == {"first": "ok", "next": "ok"}
    again = {name: replace(last, name=name) for name in (*fast, "last")}
    monkeypatch.setattr(entries, "ENTRIES", again)
    result = bench("--device", "cuda", "--json")
    assert len(TURNS) == 3  # the last entry alone: its variant, twice, and reference
    after = Path("o/results.csv").read_text()
    assert after.splitlines()[1:3] == before.splitlines()[1:]
    rows = json.loads(result.stdout)["results"]
    assert [row["device"] for row in rows] == ["A card"] * 3
    bench("--device", "cuda", "--points", "64")  # another size is another row
    assert len(Path("o/results.csv").read_text().splitlines()) == 7


ON_CARDS = [name for name, entry in ENTRIES.items() if entry.device != "cpu"]


@pytest.mark.parametrize("name", ON_CARDS)
def test_entries_run_at_a_small_size(name, device):
    entry = ENTRIES[name].sized(256)
    if lack := entry.lacks(device.type):
        pytest.skip(f"without {lack}")
    for work in (entry.variant, entry.reference):
        run = work(Path(), device.type)
        for result in (run(), run()):
            if isinstance(result, torch.Tensor):
                assert result.device.type == device.type and result.isfinite().all()


@pytest.mark.parametrize("method", [entries.by_cells, entries.by_torch_cluster])
@pytest.mark.parametrize("radius", [0.03, 0.3, 0.8])
def test_searches_agree(method, radius, device):
    if method is entries.by_torch_cluster:
        pytest.importorskip("torch_cluster")
    pos = torch.rand(120, 2).to(device)
    edges, expected = (each(pos, radius) for each in (method, entries.by_scipy))
    assert edges.device == pos.device
    assert sorted(edges.T.tolist()) == sorted(expected.T.tolist())
