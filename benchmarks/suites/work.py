"""Carries out runs: in processes of this machine, or as jobs of a Slurm cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback

from nfsgeo.data.generation import end_with_parent
from nfsgeo.errors import TooLarge, UserError
from nfsgeo.evaluation import (
    KeepStates,
    evaluate_meshes,
    evaluate_run,
    interpolation_memory,
)
from nfsgeo.progress import Progress, silent
from nfsgeo.report import write_report
from nfsgeo.training import (
    RunPaths,
    begin_run,
    fit,
    load_config,
    prepare,
    resume_run,
)
from nfsgeo.training.artifacts import write_json
from nfsgeo.training.run_data import RunData
from nfsgeo_benchmarks.processes import process_context
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.tables import CHOICES, RESULTS, read_table

FAILURE, STATES, MEMORY = "failure.json", "states", "memory.json"
TRAINED = "trained"  # marks the end of a run whose test samples are not scored

CLUSTER, POLL_SECONDS = "slurm", 5.0
# Jobs of a launcher that has not ended, in the folder of the suite.
SUBMITTED = Path("slurm", "submitted.json")
# What submitit names alike for every cluster; all else is an option of sbatch.
SHARED = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "name")
DEFAULTS = {"timeout_min": 24 * 60, "gpus_per_node": 1, "cpus_per_task": 4}


def has_folder(run: Run, folder: Path) -> bool:
    """Whether the folder of a run is there, with all its results."""
    paths = RunPaths(folder / "runs" / run.name)
    return (paths.root / TRAINED if run.trial else paths.report).exists()


def is_finished(run: Run, folder: Path) -> bool:
    """Whether a run has its results, in its folder or in a table of ``folder``."""
    if has_folder(run, folder):
        return True
    table, measure = (CHOICES, "valid_rmse") if run.trial else (RESULTS, "mae")
    name = f"runs/{run.name}"
    rows = read_table(folder / table)
    return any(r["folder"] == name and r[measure] is not None for r in rows)


def carry_out(run: Run, folder: Path) -> None:
    """Trains, evaluates and reports a run in its folder, or continues it there."""
    if RunPaths(folder).config.exists():
        experiment, paths = resume_run(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # stopped before there was a run
        settings = {**run.settings, "data.file": run.data.obtain()}
        experiment = prepare(load_config(overrides=settings))
        paths = begin_run(experiment, folder)
    callbacks: list[Callback] = []
    if run.states:
        test = RunData(experiment.config, experiment.file).windows("test")
        callbacks.append(KeepStates(folder / STATES, test[0], run.states))
    fit(experiment, paths, callbacks)
    if run.trial:
        (folder / TRAINED).touch()
    else:
        more = {"repeats": run.repeats, "boosting": run.boosting}
        evaluate_run(folder, factors=run.unseen, **more)
        if run.meshes:
            evaluate_meshes(folder, run.meshes)
        if run.memory:
            first = experiment.data.parts["valid"][0]
            model = experiment.forecaster.model
            write_json(folder / MEMORY, interpolation_memory(model, first.x, first.pos))
        write_report(folder)
    (folder / FAILURE).unlink(missing_ok=True)


@dataclass(frozen=True)
class GuardedRun:
    """A call of :func:`carry_out` that writes failures to the folder of the run."""

    run: Run
    folder: Path

    def __call__(self) -> None:
        try:
            carry_out(self.run, self.folder)
        except KeyboardInterrupt:
            pass
        except (MemoryError, RuntimeError, UserError) as error:
            kinds = (MemoryError, torch.OutOfMemoryError, TooLarge)
            # The latter is how torch says it on the CPU.
            full = isinstance(error, kinds) or "DefaultCPUAllocator" in str(error)
            message = str(error) or "out of memory"
            record_failure(self.folder, "OOM" if full else "failed", message)

    def checkpoint(self) -> Any:
        """What ``submitit`` submits anew for a job that ran out of its time."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def work(run: Run, folder: Path, threads: int) -> None:
    """Carries out a run in a process of its own, with so many threads for torch."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    GuardedRun(run, folder)()


def record_failure(folder: Path, status: str, message: str) -> None:
    """Writes to the folder of a run why it has no result."""
    folder.mkdir(parents=True, exist_ok=True)
    line = " ".join(message.split())[:400]
    write_json(folder / FAILURE, {"status": status, "message": line})


def read_failure(folder: Path) -> dict[str, Any] | None:
    """What :func:`record_failure` wrote, None if nothing."""
    path = folder / FAILURE
    return json.loads(path.read_text()) if path.exists() else None


def carry_out_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    slurm: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    ended: Callable[[Run], None] = lambda run: None,
) -> None:
    """Carries out the runs that are not finished, each in a process or a job.

    A run that fails is recorded and does not stop the others; a run that was stopped
    continues where it was. Data are generated here first.

    Args:
        runs: The runs; finished ones are skipped.
        folder: Folder of the suite.
        jobs: Runs at the same time.
        slurm: Options of jobs, those of :data:`SHARED` or of ``sbatch``; processes of
            this machine, which share its cores, if None.
        progress: Called with what is being done, how much is done and in all.
        ended: Called after each run.

    Raises:
        UserError: There is no ``submitit``, no Slurm, or no such option.
        KeyboardInterrupt: Interrupted; the same call continues.
    """
    executor = None if slurm is None else _executor(folder, jobs, slurm)
    waiting = [run for run in runs if not is_finished(run, folder)]
    for data in {run.data.model_dump_json(): run.data for run in waiting}.values():
        data.obtain(progress)
    carry = _in_processes if executor is None else partial(_as_jobs, executor)
    with closing(carry(waiting, folder, jobs)) as carried:
        for done, run in enumerate(carried, 1):
            ended(run)
            progress("runs", done, len(waiting))


def _in_processes(
    runs: Sequence[Run], folder: Path, jobs: int
) -> Generator[Run, None, None]:
    """Carries out runs in processes, and gives each when it has ended."""
    waiting = [*runs]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = process_context(__name__)
    busy: dict[Any, tuple[Run, BaseProcess]] = {}  # by sentinel
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                run = waiting.pop(0)
                arguments = (run, folder / "runs" / run.name, threads)
                started = context.Process(target=work, args=arguments)
                started.start()
                busy[started.sentinel] = run, started
            for sentinel in wait(list(busy)):
                run, process = busy.pop(sentinel)
                process.join()
                where, code = folder / "runs" / run.name, process.exitcode
                if code == -signal.SIGKILL:
                    record_failure(where, "OOM", "killed, as happens without memory")
                elif code:
                    record_failure(where, "failed", f"the process ended with {code}")
                yield run
    finally:
        # As Ctrl-C would, so that the runs can be continued later.
        for _, process in busy.values():
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
                process.join()


def _as_jobs(
    executor: Any, runs: Sequence[Run], folder: Path, jobs: int
) -> Generator[Run, None, None]:
    """Submits runs as one array, and gives each when its job has ended.

    A job that Slurm stops at its time limit is queued again and continues. Jobs that a
    killed launcher has left are ended first: two jobs could train the same run.
    """
    import submitit

    noted = folder / SUBMITTED
    if noted.exists():
        numbers = json.loads(noted.read_text())["jobs"]
        left: list[Any] = [
            submitit.SlurmJob(noted.parent, number) for number in numbers
        ]
        for job in left:
            job.cancel(check=False)
        while not all(job.done(force_check=True) for job in left):
            time.sleep(POLL_SECONDS)
        noted.unlink()
    if not runs:
        return
    with executor.batch():
        works = [GuardedRun(run, folder / "runs" / run.name) for run in runs]
        submitted = [executor.submit(each) for each in works]
    busy = dict(zip(submitted, works, strict=True))
    write_json(noted, {"jobs": [job.job_id for job in submitted]})
    try:
        while busy:
            for job in [job for job in busy if job.done()]:
                each = busy.pop(job)
                finished = is_finished(each.run, folder)
                if not finished and read_failure(each.folder) is None:
                    status = "OOM" if "OUT_OF_ME" in job.state else "failed"
                    message = f"job {job.job_id} ended as {job.state}"
                    record_failure(each.folder, status, message)
                yield each.run
            time.sleep(POLL_SECONDS if busy else 0)
    finally:
        for job in busy:
            job.cancel()
        noted.unlink()


def _executor(folder: Path, jobs: int, options: Mapping[str, Any]) -> Any:
    given = {n if n in SHARED else f"slurm_{n}": v for n, v in options.items()}
    try:
        import submitit

        executor = submitit.AutoExecutor(folder / "slurm", cluster=CLUSTER)
        executor.update_parameters(slurm_array_parallelism=jobs, **DEFAULTS | given)
    except (ImportError, RuntimeError, AssertionError, NameError) as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise UserError(
            f"--launcher slurm ({reason})",
            "the extra slurm, Slurm's srun, and options that submitit knows",
            "pip install 'nfsgeo[slurm]' on a node of the cluster, correct the "
            "options, or leave --launcher out",
        ) from None
    return executor
