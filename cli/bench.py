"""`nfsgeo bench`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from nfsgeo.errors import UserError
from nfsgeo.setting_errors import unknown
from nfsgeo_cli.bench_suite import suite_command, tune
from nfsgeo_cli.terminal import as_json, progress_bar, report, show, table


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
    short_help="Run benchmark suites.",
    epilog="""\b
    Examples:
      nfsgeo bench --list
      nfsgeo bench irregular --scale cpu --out irregular
      nfsgeo bench --scale smoke --jobs 2 --out everything
      nfsgeo bench report everything/irregular
      nfsgeo bench perf --out perf
    """,
)
@click.option("--list", "listed", is_flag=True, help="List the suites.")
@click.option("--scale", help="Run every suite that has this scale.")
@click.option("--out", type=Path, help="Folder for all of them.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]")
@click.pass_context
def bench(
    context: click.Context, listed: bool, scale: str | None, out: Path | None, jobs: int
) -> None:
    """Run a benchmark suite, by name or from a YAML file of your own, or all suites."""
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


bench.add_command(tune)


@bench.command("report", short_help="Draw the report of a suite again.")
@click.argument("folder", type=Path)
def draw(folder: Path) -> None:
    """Draw the report of a suite's folder again, from its tables.

    They are results.csv, curves.csv and suite.json, as every suite writes them.
    """
    from nfsgeo_benchmarks.suites import write_suite_report

    show(f"report  {write_suite_report(folder)}")


@bench.command(
    short_help="Speed and memory over references measured beside.",
    epilog="""\b
    Examples:
      nfsgeo bench perf --check --out perf
      nfsgeo bench perf --only load-cached --only nfs-default --out perf
      nfsgeo bench perf --device cuda --out perf-cuda
    """,
)
@click.option("--out", type=Path, required=True, help="Folder of results.csv.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 where a ratio exceeds its bound."
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Measure only this entry; repeatable."
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    help="Where to measure.  [cpu]",
)
@as_json
@click.pass_context
def perf(
    context: click.Context,
    out: Path,
    check: bool,
    only: tuple[str, ...],
    device: str,
    as_json: bool,
) -> None:
    """Speed and memory, each relative to a reference measured beside it.

    Both run alternately, on one thread each. A ratio must not exceed its bound.
    Results are written after each entry; one that fails does not stop the others.
    """
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
    rows, failed = [], {}
    with progress_bar() as progress, tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                rows.append(measure(ENTRIES[name], Path(folder), device, progress))
            # Whatever its processes raise: the other entries have their own.
            except Exception as error:
                failed[name] = " ".join(str(error).split()) or type(error).__name__
                continue
            write_rows(out / "results.csv", list(rows[0]), rows)
    for name, message in failed.items():
        click.echo(f"failed  {name}: {message}", err=True)
    columns = ["ratio", "bound", "memory_ratio", "memory_bound", "variant_seconds"]
    cells = [
        [r["name"], *(f"{r[k]:.3g}" if r[k] else "-" for k in columns), r["status"]]
        for r in rows
    ]
    heads = ["benchmark", "time", "bound", "memory", "bound", "s", "status"]
    report(
        as_json,
        {"results": rows},
        table(heads, cells),
        *(f"skipped  {each}" for each in skipped),
        f"written  {out / 'results.csv'}",
    )
    if failed or (check and any(row["status"] == "missed" for row in rows)):
        context.exit(1)
