"""`nfsgeo bench SUITE`: a command for each suite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, print_json, progress_bar, show, table

if TYPE_CHECKING:
    from rich.table import Table

    from nfsgeo_benchmarks.suites import Run
    from nfsgeo_benchmarks.suites.table import Cell

__all__ = ["run_suites", "suite_command"]


def suite_command(name: str, path: Path) -> click.Command:
    """The command of this name, that runs the suite of a YAML file."""
    from nfsgeo_benchmarks.suites import read_suite

    title = read_suite(path).title

    @click.command(
        name,
        help=f"{title}.\n\nEvery run has a folder of its own. Finished runs are "
        "skipped, those that were stopped go on, and one that fails stops no other; "
        "the exit status is 1 then.",
        short_help=title,
        epilog=f"""\b
        Examples:
          nfsgeo bench {name} --scale smoke --out out
          nfsgeo bench {name} --scale cpu --only nfs --dry-run --out out
          nfsgeo bench {name} --scale paper --launcher slurm --out out
        """,
    )
    @click.option("--scale", required=True, help="smoke, cpu or paper.")
    @click.option("--out", type=Path, required=True, help="Folder of the suite.")
    @click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="This variant or problem; repeatable.",
    )
    @click.option(
        "--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]"
    )
    @click.option(
        "--dry-run",
        is_flag=True,
        help="Say what would run and about how long it takes, and leave.",
    )
    @click.option(
        "--launcher",
        type=click.Choice(["local", "slurm"]),
        default="local",
        help="Processes on this machine, or a Slurm job a run, --jobs at a time.  "
        "[local]",
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
    well = True
    for name, path in paths.items():
        show(f"[bold]{name}[/]")
        well &= _run(name, path, scale, out / name, jobs=jobs)
    return well


def _run(
    name: str,
    path: Path,
    scale: str,
    out: Path,
    *,
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
        paper_cells,
        read_suite,
        runs_of,
        shipped_scales,
        submit_all,
        write_invariance,
        write_results,
        write_suite_report,
    )

    suite, scales = read_suite(path), shipped_scales()
    everything = runs_of(suite, scale, scales)
    runs = _chosen(everything, only)
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
            found = f"MAE {row['mae']:.3e}, {row['seconds_per_epoch']:.3g} s an epoch"
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
            found = collect(everything, out)
            written = write_results(found, out)
            if suite.meshes:
                write_invariance(found, suite.meshes, out)
            command = f"nfsgeo bench {name} --scale {scale} --out {out}"
            paper = paper_cells(suite, scales)
            report = write_suite_report(
                suite, scales[scale], command, found, out, paper
            )
    rows = collect(runs, out)
    if as_json:
        print_json({"results": rows})
    else:
        show(*_tables(rows, suite.rivals), f"results  {written}", f"report   {report}")
    return not any(row["status"] == "failed" for row in rows)


def _plan(runs: Sequence[Run], out: Path, jobs: int, suite: str, scale: str) -> None:
    """Says what would run, and how long each and all of them will take."""
    from nfsgeo.report.numbers import seconds_text
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
        click.echo(f"in all  {total:>11} with {jobs} at a time")
    if unknown:
        click.echo(
            f"{unknown} of {len(runs)} runs not counted: nothing like them is known"
        )


def _chosen(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """Those of the variants and problems that are named, of all where none is."""
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
    """Mean absolute errors, variants down and as many problems across as fit."""
    from nfsgeo_benchmarks.suites.table import cells_of

    cells = cells_of(rows)
    problems = list(dict.fromkeys(problem for _, problem in cells))
    variants = list(dict.fromkeys(variant for variant, _ in cells))
    room = 80 - max(map(len, variants)) - 3
    shares: list[list[str]] = [[]]
    for problem in problems:
        used = sum(max(len(name), 9) + 2 for name in [*shares[-1], problem])
        if shares[-1] and used > room:
            shares.append([])
        shares[-1].append(problem)
    return [_table(cells, variants, share, rivals) for share in shares]


def _table(
    cells: Mapping[tuple[str, str], Cell],
    variants: Sequence[str],
    problems: Sequence[str],
    rivals: Sequence[str],
) -> Table:
    from nfsgeo_benchmarks.suites.table import best_of

    best = {problem: best_of(cells, problem, "mae", rivals) for problem in problems}
    rows = []
    for variant in variants:
        texts = []
        for problem in problems:
            cell = cells.get((variant, problem))
            value = cell.values.get("mae") if cell else None
            if value is None:
                texts.append(cell.status if cell else "-")
            else:
                bold = value == best[problem] and variant in rivals
                texts.append(f"[{'bold' if bold else 'none'}]{value:.3e}[/]")
        rows.append([variant, *texts])
    return table(["MAE", *problems], rows)
