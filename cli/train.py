"""`nfsgeo train`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.next_steps import hints, next_steps, text_of
from nfsgeo_cli.settings import OPTIONS, SettingsCommand
from nfsgeo_cli.terminal import error_table, option, progress_bar, prose, report, verb

if TYPE_CHECKING:
    from nfsgeo.training import Experiment, RunPaths

MAY_CHANGE = {"data", "test_file", "epochs"}  # of a run that goes on


@partial(verb, kind=SettingsCommand)
@option("--config", Path, "YAML file of settings, such as config.yaml of a run.")
@option("--set", str, "KEY=VALUE, any other setting; repeatable.", multiple=True)
@option("--out", Path, "New folder of the run.  [default: runs/MODEL-DATA-K]")
@option("--resume", Path, "Folder of a run to continue.", metavar="RUN")
def train(resume: Path | None, as_json: bool, **options: Any) -> None:
    """Train a model, evaluate it and write a report.

    Without any option this generates a small Navier-Stokes data set, keeps it in the
    user's cache, and trains on it within minutes on two cores.

    Examples:
      nfsgeo train --model nfs
      nfsgeo train --model nfs --data ns.nc --points 4096 --n-out 40 --out runs/x
      nfsgeo train --resume runs/x
      nfsgeo train --resume runs/x --data moved/ns.nc
    """
    chosen = {name: value for name, value in options.items() if value not in (None, ())}
    if resume is not None and (others := [*(chosen.keys() - MAY_CHANGE)]):
        raise UserError(
            f"--resume with --{min(others).replace('_', '-')}",
            "no more than --data, --test-file or --epochs: a run keeps its settings",
            "leave the option out, or begin a new run, such as --config "
            f"{resume}/config.yaml --start-from {resume} --out NEW",
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
    from nfsgeo.training.cluster import is_first, on_first
    from nfsgeo.training.trainer import progress_callback

    given: dict[str, Any] | None = None
    with progress_bar() as progress:
        if resume is not None:
            changed = {name: chosen.get(name) for name in MAY_CHANGE}
            experiment, paths = resume_run(resume, progress, **changed)
        else:
            # Everything is checked before the folder of the run is made.
            RunPaths.check_free(options["out"])
            settings = {key: chosen[k] for k, key in OPTIONS.items() if k in chosen}
            settings |= parse_settings(options["set"])
            given = settings if options["config"] is None else None
            config = on_first(load_config)(options["config"], settings)
            experiment = prepare(config, progress)
            paths = begin_run(experiment, options["out"])
    on_first(_announce)(experiment, paths)
    try:
        fit(experiment, paths, [progress_callback()])
    except KeyboardInterrupt:
        with suppress(OSError):  # the terminal may be gone
            click.echo(f"To continue: nfsgeo train --resume {paths.root}", err=True)
        raise
    if not is_first():
        return
    with progress_bar() as progress:
        summary = evaluate_run(paths, progress=progress, experiment=experiment)
    page = write_report(paths.root)
    steps = next_steps(experiment, paths, summary, given)
    content = {"run": str(paths.root), "report": str(page), "next": steps} | summary
    report(as_json, content, error_table(summary), f"report  {page}")
    click.echo("\n".join(text_of(steps)), err=as_json)


def _announce(experiment: Experiment, paths: RunPaths) -> None:
    """Print a summary of the training on stderr."""
    from nfsgeo.models import num_parameters
    from nfsgeo.report.text import points_text
    from nfsgeo.training.lightning_setup import device_of
    from nfsgeo.training.source import in_file_order

    config, file, task = experiment.config, experiment.file, experiment.task
    data, count = config.data, num_parameters(experiment.forecaster.model)
    steps = ""
    if task.has_time:
        steps = f"{task.n_in} time steps in, {data.n_out} out, "
    steps += f"{len(experiment.data.parts['train'])} training windows"
    split = f"{file.num_samples} series, split by time"
    if data.split_by != "time":
        used = experiment.used
        nums = (f"{len(used.samples(part))} {part}" for part in file.split)
        split = f"{' + '.join(nums)} samples"
        split += " in file order" * in_file_order(data, file)
        total, ahead = file.num_observed(), data.n_out or 0
        window = data.length(task.n_in + ahead)
        # With lead times windows reach to the end.
        if data.window_stride is None and not task.any_time and window < total:
            split += f", {window} of {total} steps"
    inputs = [*file.input_names, *file.forcing_names]
    scalars = [n for n in file.parameters if file.dataset[n].dims == ("sample",)]
    unused = [name for name in scalars if name not in file.scalar_names]
    where = device_of(config.trainer).type
    sizes: set[int] = set()  # as many points are drawn of every sample
    if data.mesh == "all" and file.own_meshes:
        sizes = {file.num_points(sample) for sample in experiment.used.samples("train")}
    num = points_text(task.num_points, sorted(sizes) if len(sizes) > 1 else None)

    def every(head: str, names: Sequence[str], remark: str = "") -> list[str]:
        text = prose(f"{head:8}{', '.join(names)}{remark}", indent=8)
        return text.split("\n") if names else []

    for line in (
        f"model   {config.model.name}, {count:,} parameters, on {where}",
        f"data    {file.equation or file.path.name}: {split}",
        *every("fields", file.component_names),
        *every("inputs", inputs),
        *every("unused", unused, ", unless --known"),
        *(
            f"advice  {line}"
            for line in hints(file, experiment.used.samples("train")[0])
        ),
        f"points  {num} ({data.mesh}), {steps}",
        f"run     {paths.root}",
        *(f"start   {line}" for line in experiment.lines),
    ):
        click.echo(line, err=True)
