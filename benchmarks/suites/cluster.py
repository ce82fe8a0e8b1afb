"""Carries out the runs of a suite on a Slurm cluster, through ``submitit``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.errors import UserError
from nfsgeo.progress import Progress, silent
from nfsgeo.training.artifacts import write_json
from nfsgeo_benchmarks.suites.earlier import RUNS, is_finished
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.worker import GuardedRun, read_failure, record_failure

CLUSTER = "slurm"
POLL_SECONDS = 5.0
# Jobs of a launcher that has not ended, in the folder of the suite.
SUBMITTED = Path("slurm", "submitted.json")
# What submitit names alike for every cluster; all else is an option of sbatch.
SHARED = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "name")
DEFAULTS = {"timeout_min": 24 * 60, "gpus_per_node": 1, "cpus_per_task": 4}


def submit_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    options: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    ended: Callable[[Run], None] = lambda run: None,
) -> None:
    """Submits what is not finished as one array, a job for each run, and waits.

    A job that Slurm stops at its time limit is queued again and continues.
    Data are generated here first. The folder and the user's cache must be seen by
    every node. Jobs that a killed launcher has left are ended first.

    Args:
        runs: The runs; finished ones are skipped.
        folder: Folder of the suite; logs go to ``slurm`` there.
        jobs: Jobs that Slurm runs at the same time.
        options: :data:`SHARED` ones, or those of ``sbatch`` (``partition``, ``time``).
        progress: Called with what is being done, how much is done and in all.
        ended: Called after each run.

    Raises:
        UserError: There is no ``submitit``, no Slurm, or no such option.
        KeyboardInterrupt: Interrupted, and all jobs cancelled; the same call continues.
    """
    executor = _executor(folder, jobs, options or {})
    _end_jobs_left(folder)
    waiting = [run for run in runs if not is_finished(run, folder)]
    if not waiting:
        return
    for data in {run.data.key: run.data for run in waiting}.values():
        data.obtain(progress)
    total = len(waiting)
    with executor.batch():
        submitted = [
            executor.submit(GuardedRun(run, folder / RUNS / run.name))
            for run in waiting
        ]
    busy = dict(zip(submitted, waiting, strict=True))
    write_json(folder / SUBMITTED, {"jobs": [job.job_id for job in submitted]})
    try:
        while busy:
            for job in [job for job in busy if job.done()]:
                run = busy.pop(job)
                _settle(job, run, folder)
                ended(run)
            progress("runs", total - len(busy), total)
            time.sleep(POLL_SECONDS if busy else 0)
    finally:
        for job in busy:
            job.cancel()
        (folder / SUBMITTED).unlink()


def _end_jobs_left(folder: Path) -> None:
    """Cancels the jobs of a launcher that was killed, and waits until they end.

    Otherwise two jobs could train the same run.
    """
    noted = folder / SUBMITTED
    if not noted.exists():
        return
    jobs = [_job(folder, number) for number in json.loads(noted.read_text())["jobs"]]
    jobs = [job for job in jobs if not job.done(force_check=True)]
    for job in jobs:
        job.cancel(check=False)
    while jobs:
        time.sleep(POLL_SECONDS)
        jobs = [job for job in jobs if not job.done(force_check=True)]
    noted.unlink()


def _job(folder: Path, number: str) -> Any:
    import submitit

    return submitit.SlurmJob(folder / "slurm", number)


def _settle(job: Any, run: Run, folder: Path) -> None:
    """Records the failure of a job that ended without a result or a message."""
    root = folder / RUNS / run.name
    if not is_finished(run, folder) and read_failure(root) is None:
        status = "OOM" if "OUT_OF_ME" in job.state else "failed"
        record_failure(root, status, f"job {job.job_id} ended as {job.state}")


def _executor(folder: Path, jobs: int, options: Mapping[str, Any]) -> Any:
    try:
        import submitit
    except ImportError:
        raise UserError(
            "--launcher slurm without submitit",
            "the extra slurm",
            "pip install 'nfsgeo[slurm]'",
        ) from None
    try:
        executor = submitit.AutoExecutor(folder / "slurm", cluster=CLUSTER)
    except RuntimeError:
        raise UserError(
            "--launcher slurm",
            "a machine with Slurm's srun",
            "start it on a node of the cluster, or leave --launcher out",
        ) from None
    given = {n if n in SHARED else f"slurm_{n}": v for n, v in options.items()}
    try:
        executor.update_parameters(slurm_array_parallelism=jobs, **DEFAULTS | given)
    except (AssertionError, NameError) as error:
        first = " ".join(str(error).split("\n")[0].split())
        raise UserError(
            f"--slurm {' '.join(f'{n}={v}' for n, v in options.items())}",
            f"options that submitit knows ({first})",
            "correct them",
        ) from None
    return executor
