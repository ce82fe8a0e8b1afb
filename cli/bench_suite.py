"""`nfsgeo bench SUITE` and `nfsgeo bench tune SUITE`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, progress_bar, report, table

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run, Suite


def of_runs(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that carries out runs."""
    for option in (
        as_json,
        click.option(
            "--dry-run", is_flag=True, help="Print the runs, and which are left."
        ),
        click.option(
            "--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]"
        ),
        click.option(
            "--only",
            multiple=True,
            metavar="NAME",
            help="Variant or problem; repeatable.",
        ),
        click.option("--out", type=Path, required=True, help="Folder of the results."),
        click.option("--scale", required=True, help="smoke, cpu, night or paper."),
    ):
        command = option(command)
    return command


def suite_command(name: str, path: Path) -> click.Command:
    """The command that runs the suite of a YAML file."""
    from nfsgeo_benchmarks.suites import read_suite

    title = read_suite(path).title

    @click.command(
        name,
        help=f"{title}.\n\nEvery run has a folder of its own. Finished runs are "
        "skipped and stopped ones continue. A run that fails does not stop the others; "
        "the exit status is then 1.",
        short_help=title,
        epilog=f"""\b
        Examples:
          nfsgeo bench {name} --scale smoke --out out
          nfsgeo bench {name} --scale smoke --only nfs --dry-run --out out
          nfsgeo bench {name} --scale paper --launcher slurm --out out
        """,
    )
    @of_runs
    @click.option(
        "--data-folder",
        type=Path,
        metavar="FOLDER",
        help="Where the files are that the suite's problems name, if they do.",
    )
    @click.option(
        "--launcher",
        type=click.Choice(["local", "slurm"]),
        default="local",
        help="Processes on this machine, or one Slurm job per run.  [local]",
    )
    @click.option(
        "--slurm",
        multiple=True,
        metavar="KEY=VALUE",
        help="For --launcher slurm: partition=gpu, time=600, gpus_per_node=2 ...; "
        "repeatable.",
    )
    @click.pass_context
    def command(context: click.Context, **options: Any) -> None:
        if not run_suite(name, **options):
            context.exit(1)

    return command


def run_suite(
    name: str,
    scale: str,
    out: Path,
    *,
    data_folder: Path | None = None,
    only: tuple[str, ...] = (),
    jobs: int = 1,
    dry_run: bool = False,
    launcher: str = "local",
    slurm: tuple[str, ...] = (),
    as_json: bool = False,
) -> bool:
    """Runs a suite and writes its tables and its report; whether no run failed."""
    from nfsgeo.training import parse_settings
    from nfsgeo_benchmarks import suites

    path = suites.find_suite(name)
    suite = suites.read_suite(path)
    _check_folder(name, suite, data_folder)
    planned = suites.runs_of(suite, scale, suites.shipped_scales(), data_folder)
    everything = suites.with_files(planned, lambda run: suites.is_finished(run, out))
    _say_skipped(planned, everything, data_folder, err=not dry_run)
    runs = _chosen(everything, only)
    options = parse_settings(slurm, "--slurm")
    if options and launcher != "slurm":
        raise UserError(
            f"--slurm {slurm[0]}", "--launcher slurm", "give it too, or leave this out"
        )
    if dry_run:
        known = suites.shipped_results(path.stem, scale) / "results.csv"
        _plan(runs, out, [*suites.collect(runs, out), *suites.read_table(known)], jobs)
        return True

    def ended(run: Run) -> None:
        row = suites.collect([run], out)[0]
        found = row["message"] or row["status"]
        if row["status"] == "ok":
            found = f"MAE {row['mae']:.3e}, {row['seconds_per_epoch']:.3g} s per epoch"
        click.echo(f"{run.problem} {run.variant} seed {run.seed}: {found}", err=True)

    given = options if launcher == "slurm" else None
    with _alone(out, "a suite") as progress:
        try:
            say = {"progress": progress, "ended": ended}
            suites.carry_out_all(runs, out, jobs=jobs, slurm=given, **say)
        finally:
            where = "" if data_folder is None else f" --data-folder {data_folder}"
            about = {
                "suite": name if path.stem == name else str(path.absolute()),
                "scale": scale,
                "command": f"nfsgeo bench {name} --scale {scale}{where} --out {out}",
            }
            suites.write_tables(suites.collect(everything, out), out, about)
            page = suites.write_suite_report(out)
    rows = suites.collect(runs, out)
    lines = (_errors(rows), f"results  {out / 'results.csv'}", f"report   {page}")
    report(as_json, {"results": rows}, *lines)
    return not any(row["status"] == "failed" for row in rows)


@click.command(
    short_help="Choose settings of a suite by short trials.",
    epilog="""\b
    Examples:
      nfsgeo bench tune accuracy --scale cpu --jobs 2 --out tuned
      nfsgeo bench tune accuracy --scale cpu --only nfs --dry-run --out tuned
    """,
)
@click.argument("suite")
@of_runs
@click.pass_context
def tune(
    context: click.Context,
    suite: str,
    scale: str,
    out: Path,
    only: tuple[str, ...],
    jobs: int,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Choose settings of a suite's variants by short trials on validation samples.

    Test samples are not scored. The table tuned.csv in the folder holds all trials;
    beside the suite's committed results, its choices are used in every run.
    """
    from nfsgeo_benchmarks import suites

    content = suites.read_suite(suites.find_suite(suite))
    if content.search is None:
        raise UserError(
            f"{suite} without a search", "a suite with a search", "add one to its file"
        )
    everything = suites.trials_of(content, scale, suites.shipped_scales())
    runs = _chosen(everything, only)
    if dry_run:
        _plan(runs, out, [], jobs)
        return

    def ended(run: Run) -> None:
        done = "done" if suites.is_finished(run, out) else "no result"
        click.echo(f"{run.problem} {run.variant} {run.trial}: {done}", err=True)

    with _alone(out, "a search") as progress:
        try:
            suites.carry_out_all(runs, out, jobs=jobs, progress=progress, ended=ended)
        finally:
            rows = suites.write_choices(content, everything, out)
    shown = [
        [row["problem"], row["variant"], row["trial"], f"{row['valid_rmse']:.3e}"]
        for row in rows
        if row["chosen"]
    ]
    columns = ["problem", "variant", "choice", "validation RMSE"]
    written = f"choices  {out / 'tuned.csv'}"
    report(as_json, {"trials": rows}, table(columns, shown), written)
    if not all(suites.is_finished(run, out) for run in runs):
        context.exit(1)


@contextmanager
def _alone(out: Path, what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Locks a folder while runs are carried out in it, and shows their progress."""
    from nfsgeo.training.processes import only_here

    out.mkdir(parents=True, exist_ok=True)
    with only_here(out, what), progress_bar() as progress:
        yield progress


def _check_folder(name: str, suite: Suite, folder: Path | None) -> None:
    if folder is not None and not suite.needs_files:
        raise UserError(
            f"--data-folder with suite {name}",
            "a suite whose problems name files",
            "leave it out, for its data are generated",
        )
    if suite.needs_files and (folder is None or not folder.is_dir()):
        given = "without --data-folder" if folder is None else f"in {folder}"
        raise UserError(
            f"suite {name} {given}",
            "the folder of the files that its problems name",
            "give --data-folder FOLDER",
        )


def _say_skipped(
    planned: Sequence[Run], there: Sequence[Run], folder: Path | None, *, err: bool
) -> None:
    """A line for each problem whose files are missing."""
    left = {run.problem for run in there}
    absent = {run.problem: run.data for run in planned if run.problem not in left}
    for problem, data in absent.items():
        click.echo(f"skipped  {problem}: no {data.missing} in {folder}", err=err)
    if absent and not there:
        raise UserError(
            f"--data-folder {folder} with the files of none of {len(absent)} problems",
            "those of one or more",
            "put them there",
        )


def _chosen(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """The runs of the named variants and problems; all variants or problems if none."""
    variants = {run.variant for run in runs}
    problems = {run.problem for run in runs}
    for name in only:
        if name not in variants | problems:
            known = ", ".join([*sorted(problems), *sorted(variants)])
            raise UserError(f"--only {name}", f"one of {known}", "choose one of these")
    variants = variants & set(only) or variants
    problems = problems & set(only) or problems
    return [run for run in runs if run.variant in variants and run.problem in problems]


def _plan(
    runs: Sequence[Run], out: Path, rows: Sequence[Mapping[str, Any]], jobs: int
) -> None:
    """Prints which runs are left, and how long they took where they are known."""
    from nfsgeo_benchmarks.suites import expected_seconds, is_finished

    total, unknown = 0.0, 0
    for run in runs:
        text = "finished"
        if not is_finished(run, out):
            seconds = expected_seconds(run, out, rows)
            unknown += seconds is None
            total += seconds or 0
            text = "to run" if seconds is None else f"to run {seconds:>7.0f} s"
        click.echo(f"{text:<18}{run.name}")
    if rows:
        time = f"total  {total / jobs:>7.0f} s with {jobs} at a time"
        click.echo(f"{time}; {unknown} unknown")


def _errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean absolute errors as text of 80 columns: variants over problems."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    frame["mae"] = frame["mae"].astype(float)
    means = frame.groupby(["variant", "problem"], sort=False)["mae"].mean()
    text = means.map("{:.3e}".format)
    states = frame.groupby(["variant", "problem"], sort=False)["status"].last()
    shown = text.where(means.notna(), states).unstack()[frame["problem"].unique()]
    shown = shown.reindex(frame["variant"].unique()).fillna("-")
    return shown.rename_axis(index=None, columns="MAE").to_string(line_width=80)
