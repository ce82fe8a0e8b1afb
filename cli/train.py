"""`nfsgeo train`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import (
    columns,
    error_table,
    option,
    progress_bar,
    report,
    verb,
)

if TYPE_CHECKING:
    from nfsgeo.training import Experiment, RunPaths

# Options, and what they are, by the setting that they are for; a list has the choices.
# All other settings are set by --set.
SETTINGS: dict[str, tuple[Any, str]] = {
    "model.name": (str, "Name of the network, see nfsgeo models.  [nfs]"),
    "model.start_from": (
        Path,
        "A run or pretrained model whose weights, scales and settings training starts "
        "from.  [random weights]",
    ),
    "model.freeze": (str, "Part of the model that stays as it is; repeatable."),
    "data.file": (Path, "Data in a format of nfsgeo datasets.  [made and cached]"),
    "data.columns": (str, "ROLE=NAME,..., what columns are, as in convert."),
    "data.test_file": (Path, "A second file, of the test samples."),
    "data.points": (
        int,
        "Number of points.  [a quarter of a grid's, all of a cloud's]",
    ),
    "data.mesh": (
        str,
        "How points are chosen: random-subset, grid, all, off-grid or clustered.  "
        "[a sub-grid with --grid or for models that need one, else a random subset of "
        "a grid, all points of a cloud]",
    ),
    "data.grid": (int, "Points along each axis, for the sub-grid."),
    "data.hold_out": (
        float,
        "Share of the stations, or other points of a cloud, that nothing is trained "
        "on: errors there are shown beside the others.  [0.0]",
    ),
    "data.n_in": (int, "Observed time steps.  [10, or 0 from a coefficient]"),
    "data.n_out": (int, "Time steps to predict.  [10, or 1 from a coefficient]"),
    "data.window_stride": (
        int,
        "Time steps from one training window of a sample to the next.  [one window, or "
        "all of a single series]",
    ),
    "trainer.epochs": (int, "Passes over the training samples.  [12]"),
    "data.batch_size": (
        int,
        "Samples of a step, on each device.  [4] (32 of a noisy series)",
    ),
    "optimiser.lr": (
        float,
        "Highest learning rate of the schedule.  [0.002] (0.0005 of a noisy series)",
    ),
    "model.bands": (bool, "Fit error bands after training.  [False]"),
    "seed": (int, "Of points, weights and the order of samples.  [0]"),
    "preset": (["default", "paper"], "The paper's protocol, or ours.  [default]"),
    "trainer.device": (
        ["auto", "cpu", "cuda"],
        "Where to compute; auto takes a CUDA device where there is one.  [auto]",
    ),
    "trainer.devices": (int, "Devices that train data-parallel.  [1]"),
    "trainer.precision": (
        ["32", "64", "16-mixed", "bf16-mixed"],
        "Precision of the arithmetic; spectral layers stay in single precision.  [32]",
    ),
    "data.workers": (int, "Processes that read data, besides.  [0]"),
}
NAMES = {"model.name": "model", "data.file": "data"}
NAMES |= {"data.hold_out": "hold_out_stations"}
ALSO = {"data": ["--train-file"]}
OPTIONS = {NAMES.get(key, key.rpartition(".")[2]): key for key in SETTINGS}


def settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options of :data:`SETTINGS`."""
    for name, key in reversed(OPTIONS.items()):
        kind, text = SETTINGS[key]
        names = " ".join([f"--{name.replace('_', '-')}", *ALSO.get(name, ())])
        more: dict[str, Any] = {"default": None, "multiple": name == "freeze"}
        more["callback"] = columns if name == "columns" else None
        command = option(names, kind, text, **more)(command)
    return command


@verb
@settings
@option("--config", Path, "YAML file, like config.yaml of a run.")
@option("--set", str, "KEY=VALUE, any other setting; repeatable.", multiple=True)
@option("--out", Path, "New folder of the run.  [runs/MODEL-DATA-K]")
@option("--resume", Path, "Continue a run.", metavar="RUN")
def train(resume: Path | None, as_json: bool, **options: Any) -> None:
    """Train a model, evaluate it and write a report.

    Without any option this generates a small Navier-Stokes data set, keeps it in the
    user's cache, and trains on it within minutes on two cores.

    Examples:
      nfsgeo train --model nfs
      nfsgeo train --model nfs --data ns.nc --points 4096 --n-out 40 --out runs/x
      nfsgeo train --resume runs/x
    """
    given = {name: each for name, each in options.items() if each not in (None, ())}
    if resume is not None and given:
        raise UserError(
            f"--resume with --{next(iter(given)).replace('_', '-')}",
            "--resume alone, since a run keeps its configuration",
            "leave the option out or begin a new run",
        )
    from nfsgeo.evaluation import evaluate_run
    from nfsgeo.report import write_report
    from nfsgeo.training import (
        RunPaths,
        begin_run,
        fit,
        load_config,
        parse_settings,
        prepare,
        resume_run,
    )
    from nfsgeo.training.trainer import progress_callback

    with progress_bar() as progress:
        if resume is not None:
            experiment, paths = resume_run(resume, progress)
        else:
            # Everything is checked before the folder of the run is made.
            RunPaths.check_free(options["out"])
            chosen = {OPTIONS[name]: given[name] for name in OPTIONS if name in given}
            chosen |= parse_settings(options["set"])
            experiment = prepare(load_config(options["config"], chosen), progress)
            paths = begin_run(experiment, options["out"])
    _announce(experiment, paths)
    try:
        fit(experiment, paths, [progress_callback()])
    except KeyboardInterrupt:
        click.echo(f"To continue: nfsgeo train --resume {paths.root}", err=True)
        raise
    with progress_bar() as progress:
        summary = evaluate_run(paths.root, progress=progress)
    page = write_report(paths.root)
    content = {"run": str(paths.root), "report": str(page)} | summary
    report(as_json, content, error_table(summary), f"report  {page}")


def _announce(experiment: Experiment, paths: RunPaths) -> None:
    """Prints on stderr what will be trained."""
    from nfsgeo.models import num_parameters
    from nfsgeo.training.processes import device_of
    from nfsgeo.training.run_data import RunData

    config, file, task = experiment.config, experiment.file, experiment.task
    data, count = config.data, num_parameters(experiment.forecaster.model)
    steps = "a coefficient in, the solution out"
    if task.has_time:
        out = f"{'one of the next ' * task.any_time}{data.n_out} out"
        steps = f"{task.n_in} time steps in, {out}"
    split = f"{file.num_samples} series, split by time"
    if data.split_by != "time":
        used = RunData(config, file)
        nums = (f"{len(used.samples(of))} {of}" for of in file.split)
        split = f"{' + '.join(nums)} samples"
    if data.window_stride is not None:
        split += f", {len(experiment.data.parts['train'])} training windows"
    where = device_of(config.trainer).type
    for line in (
        f"model   {config.model.name}, {count:,} parameters, on {where}",
        f"data    {file.equation or file.path.name}: {split}",
        f"points  {task.num_points} ({data.mesh}), {steps}",
        f"run     {paths.root}",
        *(f"start   {line}" for line in experiment.lines),
    ):
        click.echo(line, err=True)
