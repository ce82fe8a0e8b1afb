"""`nfsgeo bench`: suites, the choice of their settings, speed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo.setting_errors import unknown
from nfsgeo_cli.terminal import option, progress_bar, report, table, verb

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run


class Suites(click.Group):
    """A command for each shipped suite and each YAML file, beside its own commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from nfsgeo_benchmarks.suites import shipped_suites

        return [*shipped_suites(), *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from nfsgeo_benchmarks.suites import shipped_suites

        path = shipped_suites().get(cmd_name)
        if path is None and cmd_name.endswith((".yaml", ".yml")):
            path = Path(cmd_name)
        if path is None:
            return super().get_command(ctx, cmd_name)
        return suite_command(cmd_name, path)


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
            if suite := bench.get_command(context, name):
                click.echo(f"{name:<21}{suite.get_short_help_str(58)}")
        context.exit()
    from nfsgeo_benchmarks.suites import read_suite, shipped_suites

    if out is None:
        raise UserError(f"--scale {scale} without --out", "a folder", "give --out")
    failed = False
    for name, path in shipped_suites().items():
        suite = read_suite(path)
        if suite.needs_files or scale not in suite.scales:
            click.echo(f"skipped  {name}, without its files or scale {scale}", err=True)
            continue
        options = ["--scale", scale, "--out", str(out / name), "--jobs", str(jobs)]
        command = suite_command(name, path)
        failed |= bool(command.main(options, name, standalone_mode=False))
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


def suite_command(name: str, path: Path) -> click.Command:
    """The command that runs the suite of a YAML file."""
    from nfsgeo_benchmarks import suites

    suite = suites.read_suite(path)

    @click.pass_context
    def command(
        context: click.Context,
        scale: str,
        out: Path,
        data_folder: Path | None,
        launcher: str,
        slurm: tuple[str, ...],
        as_json: bool,
        **options: Any,
    ) -> None:
        from nfsgeo.training import parse_settings

        if suite.needs_files != (data_folder is not None):
            raise UserError(
                f"suite {name} {'without' if suite.needs_files else 'with'} "
                "--data-folder",
                "the folder of the files that the suite's problems name, if they do",
                "give --data-folder FOLDER, or leave it out where data are generated",
            )
        if slurm and launcher == "local":
            raise UserError(
                f"--slurm {slurm[0]}", "--launcher slurm", "give it too, or neither"
            )
        planned = suites.runs_of(suite, scale, suites.shipped_scales(), data_folder)
        runs, absent = suites.with_files(
            planned, lambda run: suites.is_finished(run, out)
        )
        for line in absent:
            click.echo(f"skipped  {line}", err=not options["dry_run"])
        if not runs:
            raise UserError(
                f"--data-folder {data_folder} with the files of none of {len(absent)} "
                "problems",
                "those of one or more",
                "put them there",
            )

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
            suites.write_tables(suites.collect(runs, out), out, about)
            suites.write_suite_report(out)

        if launcher == "slurm":
            options["slurm"] = parse_settings(slurm, "--slurm")
        rows = suites.collect(_carry_out(runs, out, outcome, write, **options), out)
        files = f"results  {out / 'results.csv'}", f"report   {out / 'report.html'}"
        report(as_json, {"results": rows}, _errors(rows), *files)
        if any(row["status"] == "failed" for row in rows):
            context.exit(1)

    command.__name__ = name
    command.__doc__ = f"""{suite.title}.

    Every run has a folder of its own. Finished runs are skipped and stopped ones
    continue. A run that fails does not stop the others; the exit status is then 1.

    Examples:
      nfsgeo bench {name} --scale smoke --out out
      nfsgeo bench {name} --scale smoke --only nfs --dry-run --out out
      nfsgeo bench {name} --scale paper --launcher slurm --out out
    """
    for each in (
        option("--slurm", str, "KEY=VALUE for Slurm; repeatable.", multiple=True),
        option(
            "--launcher",
            ["local", "slurm"],
            "Processes on this machine, or one Slurm job per run.",
            default="local",
        ),
        option("--data-folder", Path, "Where files of the suite's problems are."),
        run_options,
    ):
        command = each(command)
    made = verb(command)
    made.short_help = suite.title
    return made


@verb
@click.argument("suite")
@run_options
@click.pass_context
def tune(
    context: click.Context,
    suite: str,
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

    content, rows = suites.read_suite(suites.find_suite(suite)), list[dict[str, Any]]()
    trials = suites.trials_of(content, scale, suites.shipped_scales())
    runs = _carry_out(
        trials,
        out,
        lambda run: "done" if suites.is_finished(run, out) else "no result",
        lambda: rows.extend(suites.write_choices(content, trials, out)),
        **options,
    )
    columns = ["problem", "variant", "trial", "valid_rmse"]
    chosen = pd.DataFrame([row for row in rows if row["chosen"]], columns=columns)
    text = table("problem", chosen.set_index("problem"))
    report(as_json, {"trials": rows}, text, f"choices  {out / 'tuned.csv'}")
    if not all(suites.is_finished(run, out) for run in runs):
        context.exit(1)


@verb
@click.argument("folder", type=Path)
def draw(folder: Path, as_json: bool) -> None:
    """Draw the report of a suite again, from its tables.

    They are results.csv, curves.csv and suite.json, as every suite writes them.

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

    from nfsgeo.training.artifacts import write_rows
    from nfsgeo_benchmarks.perf.entries import ENTRIES
    from nfsgeo_benchmarks.perf.measure import measure

    for name in only:
        if name not in ENTRIES:
            raise unknown(f"--only {name}", "an entry", name, ENTRIES)
    lacks = {name: ENTRIES[name].lacks(device) for name in only or ENTRIES}
    skipped = [f"{name}, without {lack}" for name, lack in lacks.items() if lack]
    names = [name for name, lack in lacks.items() if not lack]
    if skipped and (only or not names):
        raise UserError(
            f"benchmark {skipped[0]}",
            "what it is measured on and compared with",
            "install it, or choose another with --only",
        )
    out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], False
    with progress_bar() as progress, tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                rows.append(measure(ENTRIES[name], Path(folder), device, progress))
            # Whatever its processes raise: the other entries have their own.
            except Exception as error:
                message = " ".join(str(error).split()) or type(error).__name__
                click.echo(f"failed  {name}: {message}", err=True)
                failed = True
                continue
            write_rows(out / "results.csv", list(rows[0]), rows)
    columns = {"ratio": "time", "bound": "bound", "memory_ratio": "memory"}
    columns |= {"memory_bound": "bound ", "variant_seconds": "s", "status": "status"}
    frame = pd.DataFrame(rows, columns=["name", *columns]).set_index("name")
    text = table("benchmark", frame.rename(columns=columns))
    lines = [
        *(f"skipped  {each}" for each in skipped),
        f"written  {out / 'results.csv'}",
    ]
    report(as_json, {"results": rows}, text, *lines)
    if failed or (check and any(row["status"] == "missed" for row in rows)):
        context.exit(1)


bench.add_command(tune)
bench.add_command(draw, "report")
bench.add_command(perf)


def _carry_out(
    runs: Sequence[Run],
    out: Path,
    outcome: Callable[[Run], str],
    write: Callable[[], object],
    *,
    only: tuple[str, ...],
    jobs: int,
    dry_run: bool,
    slurm: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Carries out the chosen runs with nobody else in the folder, or prints them.

    Args:
        runs: All runs.
        out: Folder of the suite.
        outcome: What to say about a run that has ended.
        write: Writes the tables in the end.
        only: Problems and variants to choose; all of them where none is named.
        jobs: Runs at a time.
        dry_run: Whether to print the chosen runs.
        slurm: Options of jobs, if they are jobs.
    """
    from nfsgeo.training.processes import only_here
    from nfsgeo_benchmarks.suites import carry_out_all, is_finished

    names = [*sorted({r.problem for r in runs}), *sorted({r.variant for r in runs})]
    for name in only:
        if name not in names:
            raise unknown(f"--only {name}", "a problem or variant", name, names)
    everything = runs
    for part in ("problem", "variant"):  # all of them where none is named
        named = {getattr(run, part) for run in everything} & {*only}
        runs = [r for r in runs if not named or getattr(r, part) in named]
    if not runs:
        raise UserError(
            f"--only {' --only '.join(only)}, of which this scale has no run",
            "a variant of these problems, at a scale that has it",
            "leave one out",
        )
    if dry_run:
        for run in runs:
            text = "finished" if is_finished(run, out) else "to run"
            click.echo(f"{text:<10}{run.name}")
        click.get_current_context().exit()

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
    return [*runs]


def _errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean absolute errors as text of 80 columns: variants over problems."""
    from nfsgeo_benchmarks.suites.tables import seed_means

    means = seed_means(rows)
    mae = means.mean["mae"]
    text = mae.map("{:.3e}".format).where(mae.notna(), means.first["status"])
    return table("MAE", text.unstack("problem", sort=False).fillna("-"))
