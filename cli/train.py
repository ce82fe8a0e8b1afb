"""`nfsgeo train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, error_table, progress_bar, report

if TYPE_CHECKING:
    from nfsgeo.training import Experiment, RunPaths


# What each option sets in the configuration.
KEYS = {
    "model": "model.name",
    "data": "data.file",
    "test_file": "data.test_file",
    "points": "data.points",
    "mesh": "data.mesh",
    "grid": "data.grid",
    "n_in": "data.n_in",
    "n_out": "data.n_out",
    "window_stride": "data.window_stride",
    "batch_size": "data.batch_size",
    "workers": "data.workers",
    "epochs": "trainer.epochs",
    "lr": "optimiser.lr",
    "preset": "preset",
    "seed": "seed",
    "device": "trainer.device",
    "devices": "trainer.devices",
    "precision": "trainer.precision",
}


@click.command(
    epilog="""\b
    Examples:
      nfsgeo train --model nfs
      nfsgeo train --model nfs --data ns.nc --points 4096 --n-out 40 --out runs/x
      nfsgeo train --resume runs/x
    """
)
@click.option("--model", help="Name of the model, see `nfsgeo models`.  [nfs]")
@click.option(
    "--data",
    "--train-file",
    "data",
    type=Path,
    help="Data file; a small Navier-Stokes set if unset.",
)
@click.option(
    "--test-file",
    type=Path,
    help="File of the test samples; those of --data are for training and validation.",
)
@click.option(
    "--points",
    type=int,
    help="Number of observed points; default: a quarter of a grid's, all of others.",
)
@click.option(
    "--mesh",
    help="Points that are observed: random-subset (default on grids), grid, all (that "
    "of point clouds), off-grid, clustered or jittered.",
)
@click.option("--grid", type=int, help="Points along each axis of a coarser grid.")
@click.option("--n-in", type=int, help="Observed time steps.  [10]")
@click.option("--n-out", type=int, help="Time steps to predict.  [10]")
@click.option(
    "--window-stride",
    type=int,
    help="Time steps between the starts of training windows; default: one window of "
    "each sample, sliding windows of a file with one or two.",
)
@click.option("--epochs", type=int, help="Passes over the training samples.  [12]")
@click.option("--batch-size", type=int, help="Samples per step, on each device.  [4]")
@click.option("--lr", type=float, help="Highest learning rate.")
@click.option("--seed", type=int, help="Seed of points, weights and sample order.  [0]")
@click.option("--preset", help="default, or paper for the paper's protocol.")
@click.option("--device", help="cpu, cuda or auto.  [auto]")
@click.option(
    "--devices", type=int, help="Number of devices, trained data-parallel.  [1]"
)
@click.option("--precision", help="32, 64, 16-mixed or bf16-mixed.  [32]")
@click.option("--workers", type=int, help="Processes that read data.  [0]")
@click.option("--config", type=Path, help="YAML file, like config.yaml of a run.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other setting."
)
@click.option("--out", type=Path, help="New folder of the run.  [runs/MODEL-DATA-K]")
@click.option("--resume", type=Path, metavar="RUN", help="Continue a run.")
@as_json
def train(
    resume: Path | None,
    config: Path | None,
    settings: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Train a model, evaluate it and write a report.

    Without any option this generates a small Navier-Stokes data set, keeps it in the
    user's cache, and trains on it within minutes on two cores.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    if resume is not None:
        _alone(given, config=config, set=settings or None, out=out)
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
    from nfsgeo.training.progress import ShowProgress

    with progress_bar() as progress:
        if resume is not None:
            experiment, paths = resume_run(resume, progress)
        else:
            # Everything is checked before the folder of the run is made.
            RunPaths.check_free(out)
            overrides = {KEYS[name]: value for name, value in given.items()}
            overrides |= parse_settings(settings)
            experiment = prepare(load_config(config, overrides), progress)
            paths = begin_run(experiment, out)
    _announce(experiment, paths)
    try:
        fit(experiment, paths, [ShowProgress()])
    except KeyboardInterrupt:
        click.echo(f"To continue: nfsgeo train --resume {paths.root}", err=True)
        raise
    with progress_bar() as progress:
        summary = evaluate_run(paths.root, progress=progress)
    page = write_report(paths.root)
    content = {"run": str(paths.root), "report": str(page)} | summary
    report(as_json, content, error_table(summary), f"report  {page}")


def _alone(given: dict[str, Any], **others: Any) -> None:
    """Refuses options beside ``--resume``, which takes them from the run."""
    names = [*given, *(name for name, value in others.items() if value is not None)]
    if names:
        raise UserError(
            f"--resume with --{names[0].replace('_', '-')}",
            "--resume alone, since a run keeps its configuration",
            "leave the option out or begin a new run",
        )


def _announce(experiment: Experiment, paths: RunPaths) -> None:
    """Prints on stderr what will be trained."""
    from nfsgeo.data.splits import SPLITS
    from nfsgeo.models import num_parameters
    from nfsgeo.training.environment import device_of
    from nfsgeo.training.window_starts import part_samples

    config, file, problem = experiment.config, experiment.file, experiment.problem
    count = num_parameters(experiment.forecaster.model)
    steps = f"{problem.n_in} time steps in, {config.data.n_out} out"
    if config.data.lead_times:
        steps = f"{problem.n_in} time steps in, one of the next {config.data.n_out} out"
    if not problem.has_time:
        steps = "a coefficient in, the solution out"
    split = " + ".join(
        f"{len(part_samples(config.data, file, part))} {part}" for part in SPLITS
    )
    split += " samples"
    if config.data.split_by == "time":
        split = f"{file.num_samples} series, split by time"
    if config.data.window_stride is not None:
        split += f", {len(experiment.data.parts['train'])} training windows"
    for name, value in {
        "model": f"{config.model.name}, {count:,} parameters, on "
        f"{device_of(config.trainer).type}",
        "data": f"{file.equation or file.path.name}: {split}",
        "points": f"{problem.num_points} ({config.data.mesh}), {steps}",
        "run": str(paths.root),
    }.items():
        click.echo(f"{name:<8}{value}", err=True)
