"""A suite that is killed again and again ends as if nothing had happened."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfsgeo_benchmarks.suites import Run, is_finished, read_suite, runs_of
from nfsgeo_benchmarks.suites.reading import read_scales

# Forked from a process that has imported everything, so that kills hit work, not
# imports. A group that is killed as a whole forks its own processes.
ATTEMPT = """
import multiprocessing
import os
from nfsgeo_benchmarks.suites import carry_out_all, runner

def attempt(runs, out, cache, group):
    os.setsid()
    os.environ["XDG_CACHE_HOME"] = cache
    if group:
        runner.process_context = lambda *modules: multiprocessing.get_context("fork")
    carry_out_all(runs, out, jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "group"), [(10, True), (3, False)])
def test_kills_at_random_moments(
    small: Path,
    table: Callable[[list[Run], Path], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    kills: int,
    group: bool,
) -> None:
    """Of all processes, or of the first one alone, whose own then notice."""
    scales = yaml.safe_load((small / "scales.yaml").read_text())
    scales["tiny"] |= {"seeds": 3}
    scales["tiny"]["settings"]["trainer.epochs"] = 6
    (small / "scales.yaml").write_text(yaml.safe_dump(scales))
    suite = read_suite(small / "small.yaml")
    runs = runs_of(suite, "tiny", read_scales(small / "scales.yaml"))

    name = "attempt" if group else "attempt_alone"
    (small / f"{name}.py").write_text(ATTEMPT)
    monkeypatch.syspath_prepend(small)
    work = importlib.import_module(name).attempt
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nfsgeo_benchmarks.suites"])

    def begin(name: str) -> multiprocessing.context.ForkServerProcess:
        (small / name).mkdir(exist_ok=True)
        arguments = (runs, small / name, os.environ["XDG_CACHE_HOME"], group)
        process = context.Process(target=work, args=arguments)
        process.start()
        while process.is_alive() and os.getpgid(process.pid or 0) != process.pid:
            time.sleep(0.01)  # until it leads a group of its own
        return process

    began = time.monotonic()
    begin("undisturbed").join()
    took = time.monotonic() - began
    moments, killed = random.Random(0), 0
    for _ in range(kills):
        process = begin("out")
        time.sleep(moments.uniform(0, took / 6))
        if process.is_alive():
            os.killpg(process.pid or 0, signal.SIGKILL)
            killed += 1
        process.join()
        if not group:
            time.sleep(0.5)
    assert killed == kills
    assert not all(is_finished(run, small / "out") for run in runs)
    last = begin("out")
    last.join()
    assert last.exitcode == 0
    assert table(runs, small / "out") == table(runs, small / "undisturbed")
    assert {row["status"] for row in table(runs, small / "out")} == {"ok"}
