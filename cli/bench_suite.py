"""`nfsgeo bench SUITE` and `nfsgeo bench tune SUITE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, progress_bar, report, table

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run


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
    from nfsgeo_benchmarks import suites

    suite = suites.read_suite(path)

    @click.command(
        name,
        help=f"{suite.title}.\n\nEvery run has a folder of its own. Finished runs are "
        "skipped and stopped ones continue. A run that fails does not stop the others; "
        "the exit status is then 1.",
        short_help=suite.title,
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
    def command(
        context: click.Context,
        scale: str,
        out: Path,
        only: tuple[str, ...],
        jobs: int,
        dry_run: bool,
        as_json: bool,
        data_folder: Path | None,
        launcher: str,
        slurm: tuple[str, ...],
    ) -> None:
        from nfsgeo.training import parse_settings

        if suite.needs_files != (data_folder is not None):
            raise UserError(
                f"suite {name} {'without' if suite.needs_files else 'with'} "
                "--data-folder",
                "the folder of the files that the suite's problems name, if they do",
                "give --data-folder FOLDER, or leave it out where data are generated",
            )
        options = parse_settings(slurm, "--slurm") if launcher == "slurm" else None
        if slurm and options is None:
            raise UserError(
                f"--slurm {slurm[0]}", "--launcher slurm", "give it too, or neither"
            )
        planned = suites.runs_of(suite, scale, suites.shipped_scales(), data_folder)
        everything, absent = suites.with_files(
            planned, lambda run: suites.is_finished(run, out)
        )
        for line in absent:
            click.echo(f"skipped  {line}", err=not dry_run)
        if not everything:
            raise UserError(
                f"--data-folder {data_folder} with the files of none of {len(absent)} "
                "problems",
                "those of one or more",
                "put them there",
            )
        runs = _chosen(everything, only)
        if dry_run:
            _plan(runs, out)
            return

        def outcome(run: Run) -> str:
            row = suites.collect([run], out)[0]
            if row["status"] != "ok":
                return str(row["message"] or row["status"])
            return f"MAE {row['mae']:.3e}, {row['seconds_per_epoch']:.3g} s per epoch"

        def write() -> None:
            where = "" if data_folder is None else f" --data-folder {data_folder}"
            about = {
                "suite": name if path.stem == name else str(path.absolute()),
                "scale": scale,
                "command": f"nfsgeo bench {name} --scale {scale}{where} --out {out}",
            }
            suites.write_tables(suites.collect(everything, out), out, about)
            suites.write_suite_report(out)

        _carry_out(runs, out, jobs, outcome, write, options)
        rows = suites.collect(runs, out)
        report(
            as_json,
            {"results": rows},
            _errors(rows),
            f"results  {out / 'results.csv'}",
            f"report   {out / 'report.html'}",
        )
        if any(row["status"] == "failed" for row in rows):
            context.exit(1)

    return command


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
    everything = suites.trials_of(content, scale, suites.shipped_scales())
    runs = _chosen(everything, only)
    if dry_run:
        _plan(runs, out)
        return
    rows: list[dict[str, Any]] = []
    _carry_out(
        runs,
        out,
        jobs,
        lambda run: "done" if suites.is_finished(run, out) else "no result",
        lambda: rows.extend(suites.write_choices(content, everything, out)),
    )
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


def _carry_out(
    runs: Sequence[Run],
    out: Path,
    jobs: int,
    outcome: Callable[[Run], str],
    write: Callable[[], object],
    slurm: Mapping[str, Any] | None = None,
) -> None:
    """Carries out runs with nobody else in the folder, and writes its tables."""
    from nfsgeo.training.processes import only_here
    from nfsgeo_benchmarks.suites import carry_out_all

    def ended(run: Run) -> None:
        name = f"{run.problem} {run.variant} {run.trial or f'seed {run.seed}'}"
        click.echo(f"{name}: {outcome(run)}", err=True)

    out.mkdir(parents=True, exist_ok=True)
    with only_here(out, "a suite"), progress_bar() as progress:
        try:
            say = {"progress": progress, "ended": ended}
            carry_out_all(runs, out, jobs=jobs, slurm=slurm, **say)
        finally:
            write()


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


def _plan(runs: Sequence[Run], out: Path) -> None:
    """Prints which runs are left."""
    from nfsgeo_benchmarks.suites import is_finished

    for run in runs:
        text = "finished" if is_finished(run, out) else "to run"
        click.echo(f"{text:<10}{run.name}")


def _errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean absolute errors as text of 80 columns: variants over problems."""
    from nfsgeo_benchmarks.suites.tables import seed_means

    means = seed_means(rows)
    mae = means.mean["mae"]
    text = mae.map("{:.3e}".format).where(mae.notna(), means.first["status"])
    shown = text.unstack("problem", sort=False).fillna("-")
    return shown.rename_axis(index=None, columns="MAE").to_string(line_width=80)
