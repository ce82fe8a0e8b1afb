"""Carries out one run, in a process of its own."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback

from nfsgeo.data.batches import end_with_parent
from nfsgeo.errors import TooLarge, UserError
from nfsgeo.evaluation import evaluate_meshes, evaluate_run, interpolation_memory
from nfsgeo.evaluation.convergence import KeepStates
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
from nfsgeo.training.datamodule import windows
from nfsgeo_benchmarks.suites.earlier import TRAINED
from nfsgeo_benchmarks.suites.runs import Run

FAILURE = "failure.json"
STATES = "states"
MEMORY = "memory.json"


def carry_out(run: Run, folder: Path) -> None:
    """Trains, evaluates and reports a run in its folder, or continues it there."""
    if RunPaths(folder).config.exists():
        experiment, paths = resume_run(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # stopped before there was a run
        settings = {**run.settings, "data.file": run.data.obtain()}
        config = load_config(overrides=settings)
        experiment = prepare(config)
        paths = begin_run(experiment, folder)
    callbacks: list[Callback] = []
    if run.states:
        window = windows(
            experiment.config.data, experiment.file, experiment.mesh, "test"
        )[0]
        callbacks.append(KeepStates(folder / STATES, window, run.states))
    fit(experiment, paths, callbacks)
    if not run.scored:
        (folder / TRAINED).touch()
        (folder / FAILURE).unlink(missing_ok=True)
        return
    evaluate_run(folder, factors=run.unseen, repeats=run.repeats)
    if run.meshes:
        evaluate_meshes(folder, run.meshes)
    if run.memory:
        first = experiment.data.parts["valid"][0]
        model = experiment.forecaster.model
        write_json(folder / MEMORY, interpolation_memory(model, first.x, first.pos))
    write_report(folder)
    (folder / FAILURE).unlink(missing_ok=True)


def work(run: Run, folder: Path, threads: int) -> None:
    """Carries out a run in a process of its own, with so many threads for torch."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    GuardedRun(run, folder)()


@dataclass(frozen=True)
class GuardedRun:
    """A call of :func:`carry_out` that writes failures to the folder of the run."""

    run: Run
    folder: Path

    def __call__(self) -> None:
        try:
            carry_out(self.run, self.folder)
        except (MemoryError, torch.OutOfMemoryError) as error:
            record_failure(self.folder, "OOM", str(error) or "out of memory")
        except RuntimeError as error:
            full = "DefaultCPUAllocator" in str(error)  # how torch says it on the CPU
            record_failure(self.folder, "OOM" if full else "failed", str(error))
        except TooLarge as error:
            record_failure(self.folder, "OOM", str(error))
        except UserError as error:
            record_failure(self.folder, "failed", str(error))
        except KeyboardInterrupt:
            pass

    def checkpoint(self) -> Any:
        """What ``submitit`` submits anew for a job that ran out of its time."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def record_failure(folder: Path, status: str, message: str) -> None:
    """Writes to the folder of a run why it has no result."""
    folder.mkdir(parents=True, exist_ok=True)
    line = " ".join(message.split())[:400]
    write_json(folder / FAILURE, {"status": status, "message": line})


def read_failure(folder: Path) -> dict[str, Any] | None:
    """What :func:`record_failure` wrote, None if nothing."""
    path = folder / FAILURE
    return json.loads(path.read_text()) if path.exists() else None
