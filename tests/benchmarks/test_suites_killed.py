"""A suite that is killed again and again ends as if nothing had happened."""

import importlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from nfsgeo_benchmarks.suites import finished

# Forked from a process that has imported everything, so that kills hit work, not
# imports. A group that is killed as a whole forks its own processes.
ATTEMPT = """
import multiprocessing
import os
from nfsgeo_benchmarks.suites import carry_out_all, execution

def attempt(runs, out, cache, group):
    os.setsid()
    os.environ["XDG_CACHE_HOME"] = cache
    if group:
        execution.CONTEXT = multiprocessing.get_context("fork")
    carry_out_all(runs, out, jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "group"), [(10, True), (3, False)])
def test_kills_at_random_moments(runs_with, tmp_path, table, monkeypatch, kills, group):
    """Of all processes, or of the first one alone, whose own then notice."""
    longer = {"scales/tiny/seeds": 3, "scales/tiny/settings/trainer.epochs": 6}
    runs = runs_with(**longer)
    name = "attempt" if group else "attempt_alone"
    (tmp_path / f"{name}.py").write_text(ATTEMPT)
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module(name).attempt
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nfsgeo_benchmarks.suites"])

    def begin(name: str) -> multiprocessing.context.ForkServerProcess:
        (tmp_path / name).mkdir(exist_ok=True)
        arguments = (runs, tmp_path / name, os.environ["XDG_CACHE_HOME"], group)
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
    assert len(finished(runs, tmp_path / "out")) < len(runs)
    last = begin("out")
    last.join()
    assert last.exitcode == 0
    assert table(runs, tmp_path / "out") == table(runs, tmp_path / "undisturbed")
    assert {row["status"] for row in table(runs, tmp_path / "out")} == {"ok"}


@pytest.mark.slow
def test_ends_within_seconds_in_the_background(tmp_path):
    """SIGTERM ends its runs, too, where a shell has started it with Ctrl-C ignored."""
    command = [sys.executable, "-c", "from nfsgeo_cli import main; main()", "bench"]
    command += ["accuracy", "--scale", "smoke", "--out", str(tmp_path)]
    command += ["--only", "burgers-steep", "--only", "transolver"]
    ignored = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, preexec_fn=ignored, stderr=subprocess.PIPE)
    while process.poll() is None and not [*tmp_path.glob("runs/*/metrics.csv")]:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(timeout=20) == 130
    (run,) = tmp_path.glob("runs/*")
    assert not (run / "result.json").exists()
