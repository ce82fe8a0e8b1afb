"""Runs as jobs, through submitit's local executor in place of Slurm's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfsgeo.errors import UserError
from nfsgeo_benchmarks.suites import Run, cluster, collect, submit_all
from nfsgeo_benchmarks.suites.worker import record_failure

pytest.importorskip("submitit", reason="the extra slurm is not installed")

Bench = Callable[..., Any]


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster, but this machine."""
    monkeypatch.setattr(cluster, "CLUSTER", "local")
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.2)
    monkeypatch.setitem(cluster.DEFAULTS, "gpus_per_node", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("local")
def test_every_run_is_a_job(small_runs: list[Run], tmp_path: Path) -> None:
    ended: list[str] = []
    submit_all(
        small_runs,
        tmp_path,
        jobs=2,
        options={"partition": "gpu", "timeout_min": 5},
        ended=lambda run: ended.append(run.variant),
    )
    assert sorted(ended) == ["dse", "wide"]
    assert [row["status"] for row in collect(small_runs, tmp_path)] == ["ok", "ok"]
    submit_all(small_runs, tmp_path, ended=lambda run: ended.append(run.variant))
    assert len(ended) == 2  # nothing was left to do
    assert not (tmp_path / cluster.SUBMITTED).exists()


class Left:
    """A job that a killed launcher has left; takes a moment to end."""

    def __init__(self, number: str, log: list[str], runs_for: int) -> None:
        self.number, self.log, self.runs_for = number, log, runs_for
        self.cancelled = False

    def done(self, force_check: bool) -> bool:
        assert force_check
        if self.cancelled:
            self.runs_for -= 1
        return self.runs_for == 0

    def cancel(self, check: bool) -> None:
        self.cancelled = True
        self.log.append(self.number)


@pytest.mark.usefixtures("local")
def test_jobs_of_a_killed_launcher_are_ended_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    left = {"7_0": Left("7_0", log, 0), "7_1": Left("7_1", log, 3)}
    monkeypatch.setattr(cluster, "_job", lambda folder, number: left[number])
    noted = tmp_path / cluster.SUBMITTED
    noted.parent.mkdir()
    noted.write_text('{"jobs": ["7_0", "7_1"]}')
    submit_all([], tmp_path)
    assert log == ["7_1"] and left["7_1"].runs_for == 0
    assert not noted.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("local")
def test_a_launcher_that_is_stopped_has_noted_its_jobs(
    small_runs: list[Run], tmp_path: Path
) -> None:
    class Killed(BaseException):
        """As abrupt as a test can be."""

    def killed(what: str, done: int, total: int) -> None:
        if what == "runs":
            noted.append((tmp_path / cluster.SUBMITTED).read_text())
            raise Killed

    noted: list[str] = []
    with pytest.raises(Killed):
        submit_all(small_runs, tmp_path, progress=killed)
    assert len(json.loads(noted[0])["jobs"]) == len(small_runs)


@pytest.mark.usefixtures("local")
def test_options_that_submitit_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="partitoin"):
        submit_all([], tmp_path, options={"partitoin": "gpu"})


class Job:
    """A job that ended without a word."""

    job_id = "12"

    def __init__(self, state: str) -> None:
        self.state = state


@pytest.mark.parametrize(
    ("state", "status"), [("OUT_OF_MEMORY", "OOM"), ("NODE_FAIL", "failed")]
)
def test_a_job_that_was_lost_is_recorded(
    small_runs: list[Run], tmp_path: Path, state: str, status: str
) -> None:
    cluster._settle(Job(state), small_runs[0], tmp_path)
    (row,) = collect(small_runs[:1], tmp_path)
    assert row["status"] == status and state in row["message"]


def test_what_a_run_said_stays(small_runs: list[Run], tmp_path: Path) -> None:
    record_failure(tmp_path / "runs" / small_runs[0].name, "failed", "bad luck")
    cluster._settle(Job("FAILED"), small_runs[0], tmp_path)
    assert collect(small_runs[:1], tmp_path)[0]["message"] == "bad luck"


def test_what_is_missing_is_said_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("small", "--scale", "tiny", "--out", "o")
    here = bench(*options, "--slurm", "partition=gpu")
    assert here.exit_code == 2 and "--launcher slurm" in here.stderr
    without_srun = bench(*options, "--launcher", "slurm")
    assert without_srun.exit_code == 2 and "srun" in without_srun.stderr
    monkeypatch.setitem(sys.modules, "submitit", None)
    without = bench(*options, "--launcher", "slurm")
    assert without.exit_code == 2 and "nfsgeo[slurm]" in without.stderr
    assert len(without.stderr.splitlines()) == 1
