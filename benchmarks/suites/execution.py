"""Carry out runs in processes of this machine, or as jobs of a Slurm cluster."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
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
from nfsgeo.plugins import import_code, imported
from nfsgeo.progress import Progress, silent
from nfsgeo.report import write_report
from nfsgeo.training import (
    Experiment,
    RunPaths,
    begin_run,
    fit,
    load_config,
    prepare,
    resume_run,
)
from nfsgeo.training.artifacts import write_json
from nfsgeo.training.trainer import read_history
from nfsgeo_benchmarks.forkserver import CONTEXT, begin_with
from nfsgeo_benchmarks.suites.apebench import (
    Scenario,
    rollout_errors,
    train_network,
)
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.suite import BAND_COLUMNS, BANDS, TRIVIAL, UNOBSERVED
from nfsgeo_benchmarks.suites.tables import (
    OF_SUMMARY,
    RESULT,
    SETTINGS,
    STATES,
    finished,
)

CLUSTER, POLL_SECONDS = "slurm", 5.0
# What submitit names alike for every cluster; all else is an option of sbatch.
SHARED = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "name")
DEFAULTS = {"timeout_min": 24 * 60, "gpus_per_node": 1, "cpus_per_task": 4}


def carry_out(run: Run, folder: Path) -> None:
    """Train, evaluate and report a run in its folder, or continue it there.

    In the end ``result.json`` has its row of the table, and those of the references.
    """
    (folder / RESULT).unlink(missing_ok=True)
    if isinstance(run.data, Scenario) and run.network:
        epochs = run.settings["trainer.epochs"]
        row = train_network(run.data, run.network, epochs, run.seed)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / RESULT, {"row": row})
        return
    if RunPaths(folder).config.exists():
        experiment, paths = resume_run(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # stopped before there was a run
        settings = {**run.settings, **run.data.obtain()}
        experiment = prepare(load_config(overrides=settings))
        paths = begin_run(experiment, folder)
    callbacks: list[Callback] = []
    if run.states:
        test = experiment.used.windows("test")
        callbacks.append(KeepStates(folder / STATES, test[0], run.states))
    fit(experiment, paths, callbacks)
    if run.trial:
        history = pd.DataFrame(read_history(paths.metrics))
        row = {"status": "ok", "epochs": len(history)}
        row["seconds"] = float(history["seconds"].sum())
        row["valid_rmse"] = float(history["valid_rmse"].min())
        result = {"row": row}
    else:
        result = evaluated(run, experiment, folder)
        write_report(folder)
    write_json(folder / RESULT, result)


def evaluated(run: Run, experiment: Experiment, folder: Path) -> dict[str, Any]:
    """Evaluate a trained run; return its row of the table and those of references."""
    summary = evaluate_run(
        folder,
        factors=run.unseen,
        repeats=run.repeats,
        boosting=run.boosting,
        experiment=experiment,
    )
    away = summary.get("unobserved", {}) if run.stations else {}

    def errors(seen: Mapping[str, Any], unseen: Mapping[str, Any]) -> dict[str, Any]:
        unobserved = {name: unseen.get(name.partition("_")[0]) for name in UNOBSERVED}
        return {**seen, **(unobserved if unseen else {})}

    sizes = {name: summary[name] for name in OF_SUMMARY} | {"status": "ok"}
    row = sizes | errors(summary["test"], away)
    for key in SETTINGS:
        section, _, name = key.partition(".")
        row[key] = experiment.config.model_dump(mode="json")[section][name]
    for factor, larger in summary.get("unseen", {}).items():
        row[f"mae_{factor}"] = larger["mae"]["mean"]
    meshes: list[dict[str, Any]] = []
    if run.meshes:
        meshes = evaluate_meshes(folder, run.meshes, experiment=experiment)
    for mesh in meshes:
        row[f"mae_{mesh['mesh']}"] = mesh["mae_observed"]
        row[f"mae_unobserved_{mesh['mesh']}"] = mesh["mae_unobserved"]
    if run.memory:
        first, model = experiment.data.parts["valid"][0], experiment.forecaster.model
        memory = interpolation_memory(model, first.x, first.pos)
        row |= {f"{part}_bytes": size for part, size in memory.items()}
    rollouts: dict[str, dict[str, float]] = {}
    if isinstance(run.data, Scenario):
        rollouts = rollout_errors(run.data, folder)
        row |= rollouts.pop("model")
    bands = summary.get("bands", {})
    row |= band_columns(bands)
    same = {name: sizes[name] for name in ("n_s", "n_t", "n_t_out", "status")}
    same |= {"epochs": 0, "parameters": 0}
    banded = bands.get("references", {})
    references = [
        {**same, "variant": TRIVIAL[name]}
        | errors(baseline, away.get("baselines", {}).get(name, {}))
        | rollouts.get(name, {})
        | band_columns(banded.get(name, {}))
        for name, baseline in (dict.fromkeys(banded, {}) | summary["baselines"]).items()
    ]
    return {"row": row, "references": references}


def band_columns(scores: Mapping[str, Any]) -> dict[str, float]:
    """Scores of error bands as columns of a table, none without them."""
    columns: dict[str, float] = {}
    for condition, values in scores.get("by_condition", {}).items():
        steps = values["by_time_step"]
        ends = {"coverage_lowest": min(steps), "coverage_highest": max(steps)}
        where = "" if condition == "observed" else f"_{condition.replace(' ', '_')}"
        columns |= {key + where: (values | ends)[key] for key in BANDS}
    return {key: columns[key] for key in BAND_COLUMNS if key in columns}


@dataclass(frozen=True)
class GuardedRun:
    """A call of :func:`carry_out` that records failures in the folder of the run."""

    run: Run
    folder: Path
    threads: int = 0  # for torch, in a process that ends with its parent; 0 in a job
    imports: tuple[str, ...] = ()  # code of the user that adds to the registries

    def __call__(self) -> None:
        if self.threads:
            # A shell starts a job in the background with Ctrl-C ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            end_with_parent()
            torch.set_num_threads(self.threads)
        try:
            import_code(self.imports)
            carry_out(self.run, self.folder)
        except KeyboardInterrupt:
            pass
        except (MemoryError, RuntimeError, UserError) as error:
            kinds = (MemoryError, torch.OutOfMemoryError, TooLarge)
            # The latter is how torch says it on the CPU.
            full = isinstance(error, kinds) or "DefaultCPUAllocator" in str(error)
            message = error.line if isinstance(error, UserError) else str(error)
            self.fail(full, message or "out of memory")

    def fail(self, full: bool, message: str) -> None:
        """Record why the run has no result; ``full`` says that memory was exhausted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        row = {"status": "OOM" if full else "failed"}
        row["message"] = " ".join(message.split())[:400]
        write_json(self.folder / RESULT, {"row": row})

    def checkpoint(self) -> Any:
        """Submit the call again after a job ran out of its time (``submitit``)."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Process:
    """A process of this machine with the interface of ``submitit``'s jobs."""

    def __init__(self, work: GuardedRun) -> None:
        self.process = CONTEXT.Process(target=work)
        self.process.start()

    def done(self) -> bool:
        """Return whether it has ended."""
        return not self.process.is_alive()

    @property
    def state(self) -> str:
        """The way it ended; the system kills it where memory is short."""
        code = self.process.exitcode
        return "OUT_OF_MEMORY" if code == -signal.SIGKILL else f"exit status {code}"

    def cancel(self) -> None:
        """End the process as Ctrl-C would, so that the run can be continued later."""
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)
        self.process.join()


def carry_out_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    slurm: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    ended: Callable[[Run], None] = lambda run: None,
) -> None:
    """Carry out the runs that are not finished, each in a process or a job.

    A run that fails is recorded and does not stop the others; a run that was stopped
    continues where it was, also a job that Slurm stops at its time limit. Data are
    generated here before the first run that needs them. There are as many ``jobs`` at a
    time: processes of this machine, which share its cores, or with options ``slurm``,
    those of :data:`SHARED` or of ``sbatch``. After each run ``ended`` is called.

    Raises:
        UserError: There is no ``submitit``, no Slurm, or no such option.
    """
    begin_with(__name__)
    start = Process if slurm is None else _executor(folder, slurm).submit
    # OMP_NUM_THREADS counts: threads wait in a loop for cores that others have.
    threads = max(1, torch.get_num_threads() // jobs) if slurm is None else 0
    done = finished(runs, folder)
    waiting = [run for run in runs if run.name not in done]
    total, busy = len(waiting), dict[Any, GuardedRun]()
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                run = waiting.pop(0)
                run.data.obtain(progress)
                place = folder / "runs" / run.name
                work = GuardedRun(run, place, threads, imported())
                busy[start(work)] = work
            for job in [job for job in busy if job.done()]:
                work = busy.pop(job)
                if not (work.folder / RESULT).exists():
                    work.fail("OUT_OF_ME" in job.state, f"ended as {job.state}")
                ended(work.run)
                progress("runs", total - len(waiting) - len(busy), total)
            time.sleep(0.1 if slurm is None else POLL_SECONDS)
    finally:
        for job in busy:
            job.cancel()


def _executor(folder: Path, options: Mapping[str, Any]) -> Any:
    named = {n if n in SHARED else f"slurm_{n}": v for n, v in options.items()}
    try:
        import submitit

        executor = submitit.AutoExecutor(folder / "slurm", cluster=CLUSTER)
        executor.update_parameters(**DEFAULTS | named)
    except (ImportError, RuntimeError, AssertionError, NameError) as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise UserError(
            f"--launcher slurm ({reason})",
            "the extra slurm, Slurm's srun, and options that submitit knows",
            "pip install 'nfsgeo[slurm]' on a node of the cluster, correct the "
            "options, or leave --launcher out",
        ) from None
    return executor
