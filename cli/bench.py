"""`nfsgeo bench`: suites, and the choice of their settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_benchmarks import shipped_suites
from nfsgeo_cli.perf import perf
from nfsgeo_cli.terminal import option, progress_bar, report, table, verb

if TYPE_CHECKING:
    import pandas as pd

    from nfsgeo_benchmarks.suites import Run, Suite


class Suites(click.Group):
    """A command for each shipped suite and each YAML file, beside its own commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*shipped_suites(), *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = shipped_suites().get(cmd_name)
        if path is None and cmd_name.endswith((".yaml", ".yml")):
            path = Path(cmd_name)
        if path is None:
            return super().get_command(ctx, cmd_name)
        titled = copy(suite)
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        title = re.search(r"^title: *(.+)", text, re.M)
        titled.short_help = title[1] if title else ""
        titled.help = f"{titled.short_help}.\n\n{suite.help}"
        return titled


@click.group(
    cls=Suites,
    invoke_without_command=True,
    epilog="""\b
    Examples:
      nfsgeo bench --list
      nfsgeo bench irregular --scale cpu --out irregular
      nfsgeo bench --scale smoke --jobs 2 --out everything
      nfsgeo bench report everything/irregular
      nfsgeo bench perf --out perf
    """,
)
@option("--list listed", bool, "List the suites.")
@option("--scale", str, "Run all suites at this scale, such as smoke.")
@option("--out", Path, "Folder of the results of all suites.")
@option("--jobs", click.IntRange(1), "Runs at a time.", default=1)
@click.pass_context
def bench(
    context: click.Context, listed: bool, scale: str | None, out: Path | None, jobs: int
) -> None:
    """Run benchmark suites, by name or from a YAML file of your own."""
    if context.invoked_subcommand is not None:
        return
    if listed or scale is None:
        suites = shipped_suites()
        for number, name in enumerate(bench.list_commands(context)):
            if number == len(suites):
                click.echo("\nOther commands:")
            if command := bench.get_command(context, name):
                click.echo(f"{name:<21}{command.get_short_help_str(58)}")
        context.exit()
    from nfsgeo_benchmarks.suites import read_suite

    if out is None:
        raise UserError(f"--scale {scale} without --out", "a folder", "give --out")
    failed = False
    for name, path in shipped_suites().items():
        content = read_suite(path)
        lacking = all(problem.files for problem in content.problems.values())
        lacking |= content.rolls and not find_spec("apebench")
        if lacking or scale not in content.scales:
            without = f"without its files, its extra or scale {scale}"
            click.echo(f"skipped  {name}, {without}", err=True)
            continue
        options = ["--scale", scale, "--out", str(out / name), "--jobs", str(jobs)]
        failed |= bool(suite.main(options, name, standalone_mode=False))
    context.exit(int(failed))


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that carries out runs."""
    for added in (
        option(
            "--dry-run", bool, "Print the runs, and which are not finished; train none."
        ),
        option("--jobs", click.IntRange(1), "Runs at a time.", default=1),
        option(
            "--only",
            str,
            "Variant or problem to run; repeatable.",
            multiple=True,
        ),
        option("--out", Path, "Folder of the results.", required=True),
        option(
            "--scale",
            str,
            "Size of runs: smoke, cpu, night or paper.",
            required=True,
        ),
    ):
        command = added(command)
    return command


@verb
@run_options
@option("--data-folder", Path, "Folder of the files that the suite's problems name.")
@option(
    "--launcher",
    ["local", "slurm"],
    "Processes on this machine, or one Slurm job per run.",
    default="local",
)
@option("--slurm", str, "KEY=VALUE for Slurm; repeatable.", multiple=True)
@click.pass_context
def suite(
    context: click.Context,
    scale: str,
    out: Path,
    data_folder: Path | None,
    launcher: str,
    slurm: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Every run has a folder of its own. Finished runs are skipped and stopped ones
    continue. A run that fails does not stop the others; the exit status is then 1.

    Examples:
      nfsgeo bench irregular --scale smoke --out out
      nfsgeo bench irregular --scale smoke --only nfs --dry-run --out out
      nfsgeo bench irregular --scale paper --launcher slurm --out out
    """
    from nfsgeo.training import parse_settings
    from nfsgeo_benchmarks import suites

    if slurm and launcher == "local":
        raise click.UsageError(f"--slurm {slurm[0]} is for --launcher slurm")
    if launcher == "slurm":
        options["slurm"] = parse_settings(slurm, "--slurm")
    name = str(context.info_name)
    content = suites.read_suite(suites.find_suite(name))
    runs, absent = suites.planned_runs(content, scale, out, data_folder=data_folder)
    for line in absent:
        click.echo(f"skipped  {line}", err=as_json or not options["dry_run"])
    command = f"nfsgeo bench {name} --scale {scale} --out {out}"
    command += "" if data_folder is None else f" --data-folder {data_folder}"

    def write() -> None:
        suites.write_tables(content, runs, out, scale, command)
        suites.write_suite_report(out)

    rows = suites.collect(carry_out(runs, out, write, as_json=as_json, **options), out)
    shown = table(suites.measure_title(content.measures[0]), error_texts(content, rows))
    files = f"results  {out / 'results.csv'}", f"report   {out / 'report.html'}"
    report(as_json, {"results": rows}, shown, *files)
    if any(row["status"] == "failed" for row in rows):
        context.exit(1)


def error_texts(content: Suite, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Format mean errors, or the status, of variants (rows) on problems (columns)."""
    from nfsgeo_benchmarks.suites import seed_means

    means = seed_means(rows)
    errors = means.mean.get(content.measures[0], means.mean["mae"])
    text = errors.map("{:.3e}".format).where(errors.notna(), means.first["status"])
    return text.unstack("problem", sort=False).fillna("-")


@verb
@click.argument("name", metavar="SUITE")
@run_options
@click.pass_context
def tune(
    context: click.Context,
    name: str,
    scale: str,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose settings of a suite by short trials.

    Trials of its variants are scored on validation samples, never on test samples. The
    table tuned.csv in the folder has all trials and marks those chosen. Runs of the
    suite take their settings from it once it is beside the suite's committed results.

    Examples:
      nfsgeo bench tune accuracy --scale cpu --jobs 2 --out tuned
      nfsgeo bench tune accuracy --scale cpu --only nfs --dry-run --out tuned
    """
    import pandas as pd

    from nfsgeo_benchmarks import suites

    content, rows = suites.read_suite(suites.find_suite(name)), list[dict[str, Any]]()
    trials = suites.trials_of(content, scale)

    def write() -> None:
        rows.extend(suites.write_choices(content, trials, out))

    runs = carry_out(trials, out, write, as_json=as_json, **options)
    columns = ["problem", "variant", "trial", "valid_rmse"]
    chosen = pd.DataFrame([row for row in rows if row["chosen"]], columns=columns)
    text = table("problem", chosen.set_index("problem"))
    lines = [
        text,
        f"trials   {out / 'tuned.csv'}, where 1 in the column chosen marks the best",
        "",
        "Copy it there in the checkout, and runs of the suite use these settings:",
        f"  benchmarks/results/{scale}/{Path(name).stem}/tuned.csv",
    ]
    report(as_json, {"trials": rows}, *lines)
    if len(suites.finished(runs, out)) < len(runs):
        context.exit(1)


@verb
@click.argument("folder", type=Path)
def draw(folder: Path, as_json: bool) -> None:
    """Draw the report of a suite again, from its tables.

    They are results.csv, curves.csv, samples.csv and suite.json of any suite.

    Example:
      nfsgeo bench report benchmarks/results/cpu/accuracy
    """
    from nfsgeo_benchmarks.suites import write_suite_report

    page = write_suite_report(folder)
    report(as_json, {"report": str(page)}, f"report  {page}")


bench.add_command(tune)
bench.add_command(draw, "report")
bench.add_command(perf)


def carry_out(
    runs: Sequence[Run],
    out: Path,
    write: Callable[[], None],
    *,
    only: tuple[str, ...],
    jobs: int,
    dry_run: bool,
    as_json: bool,
    slurm: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Carry out the runs of chosen problems and variants, or print them.

    Args:
        runs: All runs of the suite.
        out: The folder, in which no other process may work.
        write: Called in the end; writes the tables.
        only: Names of the problems and variants; all of them if empty.
        jobs: Number of runs at the same time.
        dry_run: Whether to print the runs and exit.
        as_json: Whether to print them as JSON.
        slurm: Options of Slurm jobs; None for processes of this machine.
    """
    from nfsgeo.files import only_here
    from nfsgeo_benchmarks.suites import carry_out_all, finished, result_of, selected

    chosen = selected(runs, only)
    if dry_run:
        done = finished(chosen, out)
        states = {r.name: ("to run", "finished")[r.name in done] for r in chosen}
        lines = [f"{state:<10}{name}" for name, state in states.items()]
        report(as_json, {"runs": states}, *lines)
        click.get_current_context().exit()

    def ended(run: Run) -> None:
        row = result_of(run, out)["row"]
        names = {"gmean_nrmse": "mean nRMSE", "mae": "test MAE"}
        names["valid_rmse"] = "validation RMSE"
        errors = (f"{names[n]} {row[n]:.3e}" for n in names if row.get(n) is not None)
        text = row.get("message") or row.get("status", "stopped")
        click.echo(f"{run.name}: {next(errors, text)}", err=True)

    out.mkdir(parents=True, exist_ok=True)
    with only_here(out, "a suite"), progress_bar() as progress:
        callbacks = {"progress": progress, "ended": ended}
        try:
            carry_out_all(chosen, out, jobs=jobs, slurm=slurm, **callbacks)
        finally:
            write()
    return chosen
