"""`nfsgeo bench SUITE`: a command for each suite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, progress_bar, report, show, table

if TYPE_CHECKING:
    from rich.table import Table

    from nfsgeo_benchmarks.suites import Run, Suite
    from nfsgeo_benchmarks.suites.table import Means


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
    @click.option("--scale", required=True, help="smoke, cpu, night or paper.")
    @click.option("--out", type=Path, required=True, help="Folder of the suite.")
    @click.option(
        "--data-folder",
        type=Path,
        metavar="FOLDER",
        help="Where the files are that the suite's problems name, if they do.",
    )
    @click.option(
        "--only", multiple=True, metavar="NAME", help="Variant or problem; repeatable."
    )
    @click.option(
        "--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]"
    )
    @click.option(
        "--dry-run",
        is_flag=True,
        help="Print the runs and about how long they will take.",
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
    @as_json
    @click.pass_context
    def command(context: click.Context, **options: Any) -> None:
        if not _run(name, path, **options):
            context.exit(1)

    return command


def run_suites(paths: Mapping[str, Path], scale: str, out: Path, jobs: int) -> bool:
    """Runs several suites, each in a folder of its own name.

    Returns:
        Whether no run failed.
    """
    from nfsgeo_benchmarks.suites import read_suite

    well = True
    for name, path in paths.items():
        show(f"[bold]{name}[/]")
        suite = read_suite(path)
        if suite.needs_files:
            show("skipped  for it needs files, see --data-folder of this suite")
            continue
        if scale not in suite.scales:
            show(f"skipped  for it runs at {', '.join(suite.scales)} alone")
            continue
        well &= _run(name, path, scale, out / name, jobs=jobs)
    return well


def _run(
    name: str,
    path: Path,
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
    from nfsgeo.training import parse_settings
    from nfsgeo.training.processes import only_here
    from nfsgeo_benchmarks.suites import (
        carry_out_all,
        collect,
        is_finished,
        paper_values,
        read_suite,
        runs_of,
        shipped_scales,
        submit_all,
        with_files,
        with_trivial,
        write_invariance,
        write_results,
        write_suite_report,
    )

    suite, scales = read_suite(path), shipped_scales()
    _check_folder(name, suite, data_folder)
    planned = runs_of(suite, scale, scales, data_folder)
    everything = with_files(planned, lambda run: is_finished(run, out))
    _say_skipped(planned, everything, data_folder, err=not dry_run)
    runs = chosen_runs(everything, only)
    options = parse_settings(slurm, "--slurm")
    if options and launcher != "slurm":
        raise UserError(
            f"--slurm {slurm[0]}", "--launcher slurm", "give it too, or leave this out"
        )
    if dry_run:
        _plan(runs, out, jobs, name, scale)
        return True

    def ended(run: Run) -> None:
        (row,) = collect([run], out)
        found = row["message"] or row["status"]
        if row["status"] == "ok":
            found = f"MAE {row['mae']:.3e}, {row['seconds_per_epoch']:.3g} s per epoch"
        click.echo(f"{run.problem} {run.variant} seed {run.seed}: {found}", err=True)

    out.mkdir(parents=True, exist_ok=True)
    with only_here(out, "a suite"):
        try:
            with progress_bar() as progress:
                say = {"jobs": jobs, "progress": progress, "ended": ended}
                if launcher == "slurm":
                    submit_all(runs, out, options=options, **say)
                else:
                    carry_out_all(runs, out, **say)
        finally:
            rows = collect(everything, out)
            if suite.meshes:
                write_invariance(rows, suite.meshes, out)
            found = with_trivial(rows, out)
            written = write_results(found, out)
            where = "" if data_folder is None else f" --data-folder {data_folder}"
            command = f"nfsgeo bench {name} --scale {scale}{where} --out {out}"
            paper = paper_values(suite, scales)
            page = write_suite_report(suite, scales[scale], command, found, out, paper)
    rows = with_trivial(collect(runs, out), out)
    lines = (*_tables(rows, suite.rivals), f"results  {written}", f"report   {page}")
    report(as_json, {"results": rows}, *lines)
    return not any(row["status"] == "failed" for row in rows)


def _check_folder(name: str, suite: Suite, folder: Path | None) -> None:
    if suite.needs_files and folder is None:
        raise UserError(
            f"suite {name} without --data-folder",
            "the folder of the files that its problems name",
            "give --data-folder FOLDER",
        )
    if folder is not None and not suite.needs_files:
        raise UserError(
            f"--data-folder with suite {name}",
            "a suite whose problems name files",
            "leave it out, for its data are generated",
        )
    if folder is not None and not folder.is_dir():
        raise UserError(f"--data-folder {folder}", "a folder", "check the name")


def _say_skipped(
    planned: Sequence[Run],
    there: Sequence[Run],
    folder: Path | None,
    *,
    err: bool,
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


def _plan(runs: Sequence[Run], out: Path, jobs: int, suite: str, scale: str) -> None:
    """Prints which runs are left, and how long each and all of them will take."""
    from nfsgeo.report.text import seconds_text
    from nfsgeo_benchmarks.suites import (
        collect,
        expected_seconds,
        is_finished,
        shipped_rows,
    )

    rows = [*collect(runs, out), *shipped_rows(suite, scale)]
    left = [run for run in runs if not is_finished(run, out)]
    times = {run.name: expected_seconds(run, out, rows) for run in left}
    known = [seconds for seconds in times.values() if seconds is not None]
    for run in runs:
        if run.name in times:
            seconds = times[run.name]
            found = "unknown" if seconds is None else seconds_text(seconds)
            click.echo(f"to run  {found:>11} {run.name}")
        else:
            click.echo(f"{'finished':<20}{run.name}")
    unknown = len(times) - len(known)
    if known or not unknown:
        total = seconds_text(sum(known) / jobs)
        click.echo(f"total   {total:>11} with {jobs} at a time")
    if unknown:
        click.echo(
            f"{unknown} of {len(runs)} runs not counted: no similar run is known"
        )


def chosen_runs(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
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


def _tables(rows: Sequence[Mapping[str, Any]], rivals: Sequence[str]) -> list[Table]:
    """Mean absolute errors: variants are rows, as many problems as fit are columns."""
    from nfsgeo_benchmarks.suites.table import seed_means

    means = seed_means(rows)
    problems = list(dict.fromkeys(problem for _, problem in means))
    variants = list(dict.fromkeys(variant for variant, _ in means))
    room = 80 - max(map(len, variants)) - 3
    groups: list[list[str]] = [[]]
    for problem in problems:
        used = sum(max(len(name), 9) + 2 for name in [*groups[-1], problem])
        if groups[-1] and used > room:
            groups.append([])
        groups[-1].append(problem)
    return [_table(means, variants, group, rivals) for group in groups]


def _table(
    means: Means,
    variants: Sequence[str],
    problems: Sequence[str],
    rivals: Sequence[str],
) -> Table:
    from nfsgeo_benchmarks.suites.table import leader

    best = {problem: leader(means, problem, "mae", rivals) for problem in problems}
    rows = []
    for variant in variants:
        texts = []
        for problem in problems:
            mean = means.get((variant, problem))
            value = mean.values.get("mae") if mean else None
            if value is None:
                texts.append(mean.status if mean else "-")
            else:
                bold = variant == best[problem]
                texts.append(f"[{'bold' if bold else 'none'}]{value:.3e}[/]")
        rows.append([variant, *texts])
    return table(["MAE", *problems], rows)
