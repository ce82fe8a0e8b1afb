"""Runs as jobs, through submitit's local executor in place of Slurm's."""

import sys
from functools import partial

import pytest
from commands import refused

from nfsgeo_benchmarks.suites import carry_out_all, collect, execution

pytest.importorskip("submitit", reason="the extra slurm is not installed")


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster, but this machine."""
    monkeypatch.setattr(execution, "CLUSTER", "local")
    monkeypatch.setattr(execution, "POLL_SECONDS", 0.2)
    monkeypatch.setitem(execution.DEFAULTS, "gpus_per_node", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("local")
def test_every_run_is_a_job(runs_with, tmp_path):
    runs, ended = runs_with(), list[str]()
    work_off = partial(
        carry_out_all, runs, tmp_path, ended=lambda run: ended.append(run.variant)
    )
    work_off(jobs=2, slurm={"partition": "gpu", "timeout_min": 5})
    assert sorted(ended) == ["dse", "wide"]
    rows = collect(runs, tmp_path)
    assert [row["status"] for row in rows if row["model"]] == ["ok", "ok"]
    work_off(slurm={})
    assert len(ended) == 2  # nothing was left to do


@pytest.mark.usefixtures("local")
def test_options_that_submitit_does_not_know(tmp_path, refuses):
    refuses("partitoin", carry_out_all, [], tmp_path, slurm={"partitoin": "gpu"})


def test_what_a_launcher_lacks_is_said_in_one_line(bench, small, monkeypatch):
    options = ("small", "--scale", "tiny", "--out", "o")
    results = [bench(*options, "--slurm", "partition=gpu")]
    for _ in range(2):  # without srun, and then without submitit
        results.append(bench(*options, "--launcher", "slurm"))
        monkeypatch.setitem(sys.modules, "submitit", None)
    words = ("--launcher slurm", "srun", "nfsgeo[slurm]")
    for result, word in zip(results, words, strict=True):
        refused(result, word)
