"""`nfsgeo bench`: suites, the choice of their settings, speed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_benchmarks import shipped_suites
from nfsgeo_cli.terminal import option, progress_bar, report, table, verb

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run


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
        titled, text = copy(suite), path.read_text("utf-8", "replace")
        found = re.search(r"^title: *(.+)", text, re.M)
        titled.short_help = found[1] if found else ""
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
@option("--scale", str, "Run every suite that has this scale.")
@option("--out", Path, "Folder for all of them.")
@option("--jobs", click.IntRange(1), "Runs at a time.", default=1)
@click.pass_context
def bench(
    context: click.Context, listed: bool, scale: str | None, out: Path | None, jobs: int
) -> None:
    """Run benchmark suites, by name or from a YAML file of your own."""
    if context.invoked_subcommand is not None:
        return
    if listed or scale is None:
        for name in bench.list_commands(context):
            if command := bench.get_command(context, name):
                click.echo(f"{name:<21}{command.get_short_help_str(58)}")
        context.exit()
    from nfsgeo_benchmarks.suites import read_suite

    if out is None:
        raise UserError(f"--scale {scale} without --out", "a folder", "give --out")
    failed = False
    for name, path in shipped_suites().items():
        content = read_suite(path)
        lacks = all(of.files for of in content.problems.values())
        lacks |= content.rolls and not find_spec("apebench")
        if lacks or scale not in content.scales:
            without = f"without its files, its extra or scale {scale}"
            click.echo(f"skipped  {name}, {without}", err=True)
            continue
        options = ["--scale", scale, "--out", str(out / name), "--jobs", str(jobs)]
        failed |= bool(suite.main(options, name, standalone_mode=False))
    context.exit(int(failed))


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of every command that carries out runs."""
    for each in (
        option("--dry-run", bool, "Print the runs, and which are left."),
        option("--jobs", click.IntRange(1), "Runs at a time.", default=1),
        option("--only", str, "Variant or problem; repeatable.", multiple=True),
        option("--out", Path, "Results' folder.", required=True),
        option("--scale", str, "smoke, cpu, night or paper.", required=True),
    ):
        command = each(command)
    return command


@verb
@run_options
@option("--data-folder", Path, "Where the files are that the suite's problems name.")
@option("--data-seeds", bool, "Generate a data set from each seed.")
@option(
    "--equal-time",
    Path,
    "Folder of results; train all for as long as the first variant took there.",
)
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
    data_seeds: bool,
    equal_time: Path | None,
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
    name = str(context.info_name)
    content = suites.read_suite(path := suites.find_suite(name))
    named = any(problem.files for problem in content.problems.values())
    if data_folder is not None and not named:
        expected = "none, since the data of this suite are generated"
        raise UserError(f"--data-folder {data_folder}", expected, "leave it out")
    planned = suites.runs_of(content, scale, data_folder)
    if data_seeds:
        planned = suites.with_data_seeds(planned)
    runs, absent = suites.with_files(planned, out)
    for line in absent:
        click.echo(f"skipped  {line}", err=as_json or not options["dry_run"])
    if not runs:
        given = f"the files of none of {len(absent)} problems in {data_folder}"
        todo = "give --data-folder FOLDER with them"
        raise UserError(given, "those of one or more", todo)
    if equal_time is not None:
        runs = suites.in_equal_time(runs, equal_time)

    def write() -> None:
        where = "" if data_folder is None else f" --data-folder {data_folder}"
        where += " --data-seeds" * data_seeds
        where += "" if equal_time is None else f" --equal-time {equal_time}"
        about = {
            "suite": name if path.stem == name else str(path.absolute()),
            "scale": scale,
            "command": f"nfsgeo bench {name} --scale {scale}{where} --out {out}",
            "data_seeds": data_seeds,
        }
        suites.write_tables(suites.collect(runs, out), out, about)
        suites.write_suite_report(out)

    if launcher == "slurm":
        options["slurm"] = parse_settings(slurm, "--slurm")
    rows = suites.collect(_carry_out(runs, out, write, as_json=as_json, **options), out)
    means = suites.seed_means(rows)
    measure = content.measures[0]
    errors = means.mean.get(measure, means.mean["mae"])
    text = errors.map("{:.3e}".format).where(errors.notna(), means.first["status"])
    shown = table(
        suites.measure_title(measure), text.unstack("problem", sort=False).fillna("-")
    )
    files = f"results  {out / 'results.csv'}", f"report   {out / 'report.html'}"
    report(as_json, {"results": rows}, shown, *files)
    if any(row["status"] == "failed" for row in rows):
        context.exit(1)


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
    table tuned.csv in the folder holds all trials; beside the suite's committed
    results, its choices are used in every run.

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

    runs = _carry_out(trials, out, write, as_json=as_json, **options)
    columns = ["problem", "variant", "trial", "valid_rmse"]
    chosen = pd.DataFrame([row for row in rows if row["chosen"]], columns=columns)
    text = table("problem", chosen.set_index("problem"))
    report(as_json, {"trials": rows}, text, f"choices  {out / 'tuned.csv'}")
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


@verb
@option("--out", Path, "Folder of results.csv.", required=True)
@option("--check", bool, "Exit with 1 where a ratio exceeds its bound.")
@option("--only", str, "Measure only this entry; repeatable.", multiple=True)
@option("--device", ["cpu", "cuda"], "Where to measure.", default="cpu")
@click.pass_context
def perf(
    context: click.Context,
    out: Path,
    check: bool,
    only: tuple[str, ...],
    device: str,
    as_json: bool,
) -> None:
    """Speed and memory, over references measured beside.

    Both run alternately, on one thread each. A ratio must not exceed its bound.
    Results are written after each entry; one that fails does not stop the others.

    Examples:
      nfsgeo bench perf --check --out perf
      nfsgeo bench perf --only load-cached --only nfs-default --out perf
      nfsgeo bench perf --device cuda --out perf-cuda
    """
    import pandas as pd

    from nfsgeo.config.errors import unknown
    from nfsgeo.training.artifacts import write_rows
    from nfsgeo_benchmarks.perf.entries import ENTRIES
    from nfsgeo_benchmarks.perf.measure import measure

    for name in only:
        if name not in ENTRIES:
            raise unknown(f"--only {name}", "an entry", name, ENTRIES)
    lacks = {name: ENTRIES[name].lacks(device) for name in only or ENTRIES}
    skipped = [f"{name}, without {lack}" for name, lack in lacks.items() if lack]
    if skipped and (only or len(skipped) == len(lacks)):
        raise UserError(
            f"benchmark {skipped[0]}",
            "what it is measured on and compared with",
            "install it, or choose another with --only",
        )
    out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], False
    with progress_bar() as progress, tempfile.TemporaryDirectory() as folder:
        for name in [name for name, lack in lacks.items() if not lack]:
            try:
                rows.append(measure(ENTRIES[name], Path(folder), device, progress))
                write_rows(out / "results.csv", list(rows[0]), rows)
            # Whatever its processes raise: the other entries have their own.
            except Exception as error:
                message = " ".join(str(error).split()) or type(error).__name__
                click.echo(f"failed  {name}: {message}", err=True)
                failed = True
    columns = {"ratio": "time", "bound": "bound", "memory_ratio": "memory"}
    columns |= {"memory_bound": "bound ", "variant_seconds": "s", "status": "status"}
    frame = pd.DataFrame(rows, columns=["name", *columns]).set_index("name")
    lines = [table("benchmark", frame.rename(columns=columns))]
    lines += [f"skipped  {each}" for each in skipped]
    report(as_json, {"results": rows}, *lines, f"written  {out / 'results.csv'}")
    if failed or (check and any(row["status"] == "missed" for row in rows)):
        context.exit(1)


bench.add_command(tune)
bench.add_command(draw, "report")
bench.add_command(perf)


def _carry_out(
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
    """Carries out the runs of chosen problems and variants, or prints them.

    Nobody else may work in the folder. ``write`` writes the tables in the end.
    """
    from nfsgeo.config.errors import unknown
    from nfsgeo.files import only_here
    from nfsgeo_benchmarks.suites import carry_out_all, finished, result_of

    chosen = [*runs]
    known = {part: {getattr(r, part) for r in runs} for part in ("problem", "variant")}
    there = sorted(set.union(*known.values()))
    for name in only:
        if name not in there:
            raise unknown(f"--only {name}", "a problem or variant", name, there)
    for part, names in known.items():
        if named := names.intersection(only):  # all of them where none is named
            chosen = [run for run in chosen if getattr(run, part) in named]
    if not chosen:
        raise UserError(
            f"--only {' --only '.join(only)}, of which this scale has no run",
            "a variant of these problems, at a scale that has it",
            "leave one out",
        )
    if dry_run:
        done = finished(chosen, out)
        states = {r.name: ("to run", "finished")[r.name in done] for r in chosen}
        lines = [f"{state:<10}{name}" for name, state in states.items()]
        report(as_json, {"runs": states}, *lines)
        click.get_current_context().exit()

    def ended(run: Run) -> None:
        row = result_of(run, out)["row"]
        names = ("gmean_nrmse", "mae", "valid_rmse")
        error = next((row[name] for name in names if name in row), None)
        text = row.get("message") or row.get("status", "stopped")
        click.echo(f"{run.name}: {text if error is None else f'{error:.3e}'}", err=True)

    out.mkdir(parents=True, exist_ok=True)
    with only_here(out, "a suite"), progress_bar() as progress:
        say = {"progress": progress, "ended": ended}
        try:
            carry_out_all(chosen, out, jobs=jobs, slurm=slurm, **say)
        finally:
            write()
    return chosen
