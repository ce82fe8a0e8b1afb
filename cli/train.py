"""`nfsgeo train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import (
    COLUMNS,
    error_table,
    option,
    progress_bar,
    report,
    verb,
)

if TYPE_CHECKING:
    from nfsgeo.training import Experiment, RunPaths

# Settings that have options; all others are set by --set.
SETTINGS = {
    "model": "start_from freeze bands",
    "data": "columns test_file points mesh grid n_in n_out window_stride batch_size "
    "workers",
    "optimiser": "lr",
    "trainer": "epochs device devices precision",
}
OPTIONS = {
    name: f"{section}.{name}"
    for section, names in SETTINGS.items()
    for name in names.split()
}
OPTIONS |= {"model": "model.name", "data": "data.file", "seed": "seed"}
OPTIONS |= {"hold_out_stations": "data.hold_out", "preset": "preset"}


@verb
@option("--model", str, "Name of the network, see nfsgeo models.  [nfs]")
@option("--start-from", Path, "A run or pretrained model whose weights to start from.")
@option("--freeze", str, "Part of it to leave as it is; repeatable.", multiple=True)
@option("--data", Path, "Data in any format.  [a small Navier-Stokes set]")
@option("--columns", COLUMNS, "What its columns or arrays are, as for convert.")
@option("--test-file", Path, "A second file, all of whose samples are for testing.")
@option("--points", int, "Points.  [all of a cloud, a quarter of a grid's]")
@option(
    "--mesh",
    str,
    "How points are chosen: random-subset, grid, all, off-grid, clustered, jittered.",
)
@option("--grid", int, "Points along each axis, for the sub-grid.")
@option("--hold-out-stations", float, "Share of points never trained on.  [0.0]")
@option("--n-in", int, "Time steps observed.  [10, or 0 with a coefficient]")
@option("--n-out", int, "Time steps to predict.  [10, or 1 from a coefficient]")
@option("--window-stride", int, "Time steps from a training window to the next.")
@option("--epochs", int, "Passes over the training samples.  [12]")
@option("--batch-size", int, "Samples of a step, on each device.  [4]")
@option("--lr", float, "Learning rate, the highest of the schedule.  [0.002]")
@option(
    "--bands", bool, "Fit error bands to validation samples.  [False]", default=None
)
@option("--seed", int, "Of points, weights and the order of the samples.  [0]")
@option("--preset", ["default", "paper"], "Whether as in the paper.  [default]")
@option("--device", ["auto", "cpu", "cuda"], "Where to compute.  [auto]")
@option("--devices", int, "Number of devices; several train data-parallel.  [1]")
@option(
    "--precision",
    ["32", "64", "16-mixed", "bf16-mixed"],
    "Of the arithmetic; spectral layers stay in single precision.  [32]",
)
@option("--workers", int, "Processes that read data; 0 for none.  [0]")
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
        steps = f"{task.n_in} time steps in, {data.n_out} out"
    steps += f", {len(experiment.data.parts['train'])} training windows"
    split = f"{file.num_samples} series, split by time"
    if data.split_by != "time":
        used = RunData(config, file)
        nums = (f"{len(used.samples(of))} {of}" for of in file.split)
        split = f"{' + '.join(nums)} samples"
    where = device_of(config.trainer).type
    for line in (
        f"model   {config.model.name}, {count:,} parameters, on {where}",
        f"data    {file.equation or file.path.name}: {split}",
        f"points  {task.num_points} ({data.mesh}), {steps}",
        f"run     {paths.root}",
        *(f"start   {line}" for line in experiment.lines),
    ):
        click.echo(line, err=True)
