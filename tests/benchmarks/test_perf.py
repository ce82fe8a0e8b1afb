"""The benchmark of speed and memory, at sizes that take a moment."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from nfsgeo.data.equations import EQUATIONS
from nfsgeo.errors import UserError
from nfsgeo_benchmarks.perf.entries import ENTRIES
from nfsgeo_benchmarks.perf.entry import Entry, Measurement, Times
from nfsgeo_benchmarks.perf.generators import calibration, instances
from nfsgeo_benchmarks.perf.loading import read_batch, training_step
from nfsgeo_benchmarks.perf.results import write_results
from nfsgeo_benchmarks.perf.roofline import Amount, Count, Rates, machine_rates
from nfsgeo_benchmarks.perf.runner import measure, peak_memory
from nfsgeo_cli import main

# Most of them measure in processes of their own.
pytestmark = pytest.mark.slow

SIZE = {"resolution": 64, "records": 4}
SETTINGS = {
    "data.points": 64,
    "data.n_in": 2,
    "data.n_out": 2,
    "model.settings.width": 4,
    "model.settings.modes": 2,
    "model.settings.time_modes": 2,
    "model.settings.depth": 1,
    "model.settings.grid": 8,
    "model.settings.hidden": 8,
}
LOADING = Entry(
    name="loading",
    title="",
    variant=partial(read_batch, cached=False, size=SIZE, settings=SETTINGS),
    reference=partial(training_step, size=SIZE, settings=SETTINGS),
    repeats=2,
)
FOUR_TIMES = Entry(
    name="four-times",
    title="",
    variant=partial(calibration, seconds=0.4),
    reference=partial(calibration, seconds=0.1),
    bound=20,
    clock="cpu",
    repeats=3,
)


# Those of which a system is solved on a grid.
GRIDS = [
    name
    for name, equation in EQUATIONS.items()
    if equation.axes(64) and name != "sphere-waves"
]


def times(*pairs: tuple[float, float]) -> list[Times]:
    return [Times(*pair) for pair in pairs]


def test_ratios() -> None:
    variant = times((4, 3), (6, 2), (9, 4))
    reference = times((2, 4), (2, 8), (9, 5))
    assert replace(FOUR_TIMES, clock="wall").ratio(variant, reference) == 2
    assert replace(FOUR_TIMES, clock="wall").seconds(variant) == 6
    assert FOUR_TIMES.ratio(variant, reference) == 0.5
    assert FOUR_TIMES.seconds(variant) == 2


def test_what_is_measured() -> None:
    assert [*ENTRIES] == [entry.name for entry in ENTRIES.values()]
    held = {name: entry.bound for name, entry in ENTRIES.items()}
    for equation in GRIDS:
        assert held[f"generate-{equation}"] == 1.5
        assert ENTRIES[f"generate-{equation}"].clock == "cpu"
    assert held["load-first-epoch"] == held["load-cached"] == 0.1
    assert held["fno-core"] == 1.0
    assert held["dcrnn-cell"] == held["dcrnn-batched"] == 0.5
    for points in (1024, 4096, 16384):
        for records in (10, 40):
            entry = ENTRIES[f"nfs-{points}x{records}"]
            assert entry.bound == entry.memory_bound == 1.3
    dense = ENTRIES["nfs-dense"]
    assert (dense.bound, dense.memory_bound, dense.agreement) == (0.2, 0.1, 1e-4)
    assert held["nfs-gino"] == ENTRIES["nfs-gino"].memory_bound == 1 / 3
    assert held["search-torch-cluster"] == 1 and held["search-cell-list"] == 5
    assert held["interpolate-step-growth-ordered"] == pytest.approx(256**1.1, rel=1e-3)
    assert ENTRIES["predict-million"].most_memory == 4e9


def test_four_times_the_work_takes_four_times_as_long(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    measured = measure(FOUR_TIMES, tmp_path, lambda *report: seen.append(report))
    assert 2 < measured.ratio < 8  # other work disturbs such short times
    assert measured.ratio == measured.variant_seconds / measured.reference_seconds
    assert seen == [("four-times", done, 3) for done in (0, 0, 1, 2, 3)]


def touched(size: int) -> bytearray:
    """Memory that is really taken."""
    memory = bytearray(size)
    memory[:: 2**12] = bytes(len(memory[:: 2**12]))
    return memory


def takes(folder: Path, *, before: int, during: int) -> Callable[[], object]:
    """Work that holds some memory, and needs more while it goes on."""
    touched(10**9)  # given back before it begins
    held = touched(before)
    return lambda: (len(held), touched(during))


def test_memory_is_that_of_the_work_alone(tmp_path: Path) -> None:
    much = touched(10**9)  # nor does a process hold what the one that starts it does
    assert peak_memory() > 10**9
    del much
    entry = replace(
        FOUR_TIMES,
        variant=partial(takes, before=3 * 10**8, during=10**8),
        reference=partial(takes, before=0, during=2 * 10**8),
        repeats=1,
        memory_bound=0.4,
    )
    measured = measure(entry, tmp_path)
    assert measured.variant_memory == pytest.approx(10**8, rel=0.1)
    assert measured.reference_memory == pytest.approx(2 * 10**8, rel=0.1)
    assert measured.memory_ratio == pytest.approx(0.5, rel=0.2)
    assert measured.missed and not replace(measured, entry=FOUR_TIMES).missed


def counts(folder: Path, *, by: float) -> Callable[[], float]:
    numbers = itertools.count()
    return lambda: by * next(numbers)


def test_results_that_are_to_agree(tmp_path: Path) -> None:
    entry = replace(
        FOUR_TIMES,
        variant=partial(counts, by=1.01),
        reference=partial(counts, by=1.0),
        repeats=2,
        bound=None,
    )
    assert measure(entry, tmp_path).difference is None
    measured = measure(replace(entry, agreement=0.02), tmp_path)
    assert measured.difference == pytest.approx(0.01)
    assert not measured.missed
    assert replace(measured, entry=replace(entry, agreement=0.001)).missed


def test_packages_that_are_not_there(tmp_path: Path) -> None:
    names = ("torch-geometric-temporal-2", "numpy")
    entry = replace(FOUR_TIMES, requires=names)
    assert entry.missing() == [names[0]] and FOUR_TIMES.missing() == []
    with pytest.raises(UserError, match="without torch-geometric-temporal-2: .*; pip"):
        measure(entry, tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    entry = replace(FOUR_TIMES, requires=("numpy",), device="cuda")
    assert entry.missing() == ["a CUDA device"]
    with pytest.raises(UserError, match="without a CUDA device: .*; measure where"):
        measure(entry, tmp_path)


def fills(folder: Path, *, numbers: int) -> Callable[[], float]:
    """Holds numbers for a moment, on the default device."""
    return lambda: torch.ones(numbers).sum().item()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_memory_is_that_of_the_device(tmp_path: Path) -> None:
    work = partial(fills, numbers=2**20)
    entry = replace(FOUR_TIMES, variant=work, reference=work, device="cuda")
    measured = measure(entry, tmp_path)
    assert measured.variant_memory == pytest.approx(2**22, rel=0.01)


@pytest.mark.parametrize("equation", GRIDS)
def test_instances_are_solved(equation: str, tmp_path: Path) -> None:
    records = 1 if equation == "darcy" else 3
    work = instances(
        tmp_path, equation=equation, samples=2, resolution=64, records=records
    )
    (batch,) = work()  # type: ignore[misc]
    assert batch.u.shape[:2] == (2, records) and batch.u.shape[2] == 64


def test_loading(tmp_path: Path) -> None:
    for cached in (False, True):
        work = read_batch(tmp_path, cached=cached, size=SIZE, settings=SETTINGS)
        for _ in range(2):
            batch = work()
            assert batch.x.shape == (4 * 64, 2, 1)  # type: ignore[attr-defined]
    measured = measure(LOADING, tmp_path)
    assert measured.ratio > 0 and not measured.missed


def test_what_was_cached_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = [
        read_batch(tmp_path, cached=cached, size=SIZE, settings=SETTINGS)
        for cached in (False, True)
    ]
    for work in works:
        work()
    monkeypatch.setattr("nfsgeo.data.Fields.read_all", None)
    works[1]()
    with pytest.raises(TypeError):
        works[0]()


def test_errors_of_the_work_come_through(tmp_path: Path) -> None:
    wrong = partial(instances, equation="burger", samples=1)
    with pytest.raises(UserError, match="the nearest is burgers"):
        measure(replace(FOUR_TIMES, reference=wrong), tmp_path)


def a_measurement(ratio: float, held: float | None) -> Measurement:
    entry, amount = replace(FOUR_TIMES, bound=held), Amount(6e9 * ratio, 1e9)
    rates = Rates(3e10, 5e9)
    return Measurement(entry, ratio, 2 * ratio, 2.0, 10, 20, amount, rates)


def test_results(tmp_path: Path) -> None:
    measured = [a_measurement(*pair) for pair in ((1.0, 2.0), (3.0, 2.0), (9.0, None))]
    table, *pictures = write_results(measured, tmp_path / "new")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok", "missed", "ok"]
    assert [row["held"] for row in rows] == ["2.0", "2.0", ""]
    assert rows[1]["variant_seconds"] == "6.0"
    assert rows[1]["share_of_flops"] == "0.1"
    assert float(rows[1]["share_of_bytes"]) == pytest.approx(1 / 30)
    assert len(pictures) == 2
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in pictures)


def counted(work: Callable[[], object]) -> Amount:
    work()
    with Count() as count:
        work()
    return count.amount


def test_operations_and_bytes_of_products_and_transforms() -> None:
    a, b, pattern = (
        torch.rand(64, 48),
        torch.rand(48, 32),
        torch.eye(64).to_sparse_csr(),
    )
    dense = a @ b
    product = counted(lambda: a @ b)
    assert product == (2 * 64 * 48 * 32, a.nbytes + b.nbytes + dense.nbytes)
    assert counted(lambda: a.t()[None]) == (0, 0)
    assert counted(lambda: torch.fft.fft(torch.complex(a, a))).flops == pytest.approx(
        5 * 64 * 48 * math.log2(48)
    )
    real = counted(lambda: torch.fft.rfft2(a)).flops
    assert real == pytest.approx(2.5 * 64 * 48 * math.log2(64 * 48))
    sparse = counted(lambda: torch.addmm(torch.zeros(64, 48), pattern, a))
    assert sparse.flops == 2 * 64 * 48
    sampled = counted(lambda: torch.sparse.sampled_addmm(pattern, a, a.t()))
    assert sampled.flops == 2 * 64 * 48
    chosen = counted(lambda: a.index_select(0, torch.tensor([3])))
    assert chosen.nbytes == 2 * 48 * 4 + 8  # a row, twice, and its number


def test_a_backward_pass_is_counted() -> None:
    a, b = torch.rand(64, 48, requires_grad=True), torch.rand(48, 32)
    once = counted(lambda: a @ b).flops
    assert counted(lambda: (a @ b).sum().backward()).flops == 2 * once


def test_the_rates_of_a_machine() -> None:
    rates = machine_rates("cpu")
    assert 1e8 < rates.flops < 1e13 and 1e8 < rates.nbytes < 1e12


def products(folder: Path) -> Callable[[], object]:
    a = torch.rand(512, 512)
    return lambda: a @ a


def test_shares_of_the_rates(tmp_path: Path) -> None:
    work = replace(FOUR_TIMES, variant=products, reference=products)
    shares = measure(work, tmp_path).shares
    assert shares is not None and 0.2 < shares.flops < 2
    assert (
        measure(replace(work, variant=partial(counts, by=1)), tmp_path).shares is None
    )


Command = Callable[..., Result]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `nfsgeo bench` with one small entry, which is held or is not."""
    monkeypatch.setitem(ENTRIES, "held", replace(FOUR_TIMES, name="held"))
    monkeypatch.setitem(
        ENTRIES, "missed", replace(FOUR_TIMES, name="missed", bound=0.1)
    )
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["bench", *arguments])


@pytest.mark.parametrize(("name", "status"), [("held", 0), ("missed", 1)])
def test_check(bench: Command, name: str, status: int) -> None:
    result = bench("perf", "--out", "o", "--check", "--only", name)
    assert result.exit_code == status, result.output
    assert name in result.stdout and max(map(len, result.stdout.splitlines())) <= 80
    assert sorted(p.name for p in Path("o").iterdir()) == [
        "ratios.png",
        "results.csv",
        "roofline.png",
    ]


def test_benchmarks_that_lack_a_package(
    bench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*ENTRIES]:
        if name != "held":
            lacking = replace(ENTRIES[name], requires=("no-such-package",))
            monkeypatch.setitem(ENTRIES, name, lacking)
    result = bench("perf", "--out", "o")
    assert result.exit_code == 0, result.output
    skipped = result.stdout.split("skipped  without no-such-package: ")[1]
    assert re.search(r"\bmissed\b", skipped) and not re.search(r"\bheld\b", skipped)
    assert max(map(len, result.stdout.splitlines())) <= 80
    result = bench("perf", "--out", "o", "--only", "held", "--only", "missed")
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert "pip install no-such-package" in result.stderr


def test_json(bench: Command) -> None:
    result = bench("perf", "--out", "o", "--only", "missed", "--json")
    (row,) = json.loads(result.stdout)["results"]
    assert row["name"] == "missed" and row["status"] == "missed"
    assert result.exit_code == 0  # nothing was to be checked


def broken(folder: Path) -> Callable[[], float]:
    """Work whose process ends in the middle."""
    return lambda: os._exit(1)


def test_an_entry_that_fails_does_not_stop_the_others(
    bench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = replace(FOUR_TIMES, name="fails", variant=broken)
    monkeypatch.setitem(ENTRIES, "fails", fails)
    result = bench("perf", "--out", "o", "--only", "fails", "--only", "held")
    assert result.exit_code == 1
    assert result.stderr.startswith("failed  fails: a process of the benchmark that")
    with open("o/results.csv") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["held"]


def test_entries_of_one_device(bench: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("perf", "--out", "o", "--only", "held")
    result = bench(*options, "--device", "cuda")
    assert result.exit_code == 2 and "--device cuda without any" in result.stderr
    assert bench(*options, "--device", "cpu").exit_code == 0


def test_an_entry_that_does_not_exist(bench: Command) -> None:
    result = bench("perf", "--out", "o", "--only", "speed")
    assert result.exit_code == 2 and "load-cached" in result.stderr
    assert not Path("o").exists()


def test_list(bench: Command) -> None:
    lines = bench("--list").stdout.splitlines()
    assert "perf" in [line.split()[0] for line in lines]
    assert bench().stdout.splitlines() == lines
