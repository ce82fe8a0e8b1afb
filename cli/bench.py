"""`nfsgeo bench`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.bench_suite import run_suites, suite_command
from nfsgeo_cli.bench_tune import tune
from nfsgeo_cli.terminal import as_json, print_json, progress_bar, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from nfsgeo_benchmarks.perf.entry import Measurement


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
      nfsgeo bench perf --out perf
    """,
)
@click.option("--list", "listed", is_flag=True, help="List the suites.")
@click.option(
    "--scale", help="Run every suite at this scale: smoke, cpu, night or paper."
)
@click.option("--out", type=Path, help="Folder for all of them.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]")
@click.pass_context
def bench(
    context: click.Context,
    listed: bool,
    scale: str | None,
    out: Path | None,
    jobs: int,
) -> None:
    """Run a benchmark suite, by name or from a YAML file of your own, or all suites."""
    if listed or (context.invoked_subcommand is None and scale is None):
        for name in bench.list_commands(context):
            if suite := bench.get_command(context, name):
                click.echo(f"{name:<21}{suite.get_short_help_str(58)}")
        context.exit()
    if context.invoked_subcommand is None and scale is not None:
        from nfsgeo_benchmarks.suites import shipped_suites

        if out is None:
            raise UserError(f"--scale {scale} without --out", "a folder", "give --out")
        if not run_suites(shipped_suites(), scale, out, jobs):
            context.exit(1)


bench.add_command(tune)


@bench.command(
    epilog="""\b
    Examples:
      nfsgeo bench perf --check --out perf
      nfsgeo bench perf --only load-cached --only generate-kdv --out perf
    """
)
@click.option("--out", type=Path, required=True, help="Folder for table and picture.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 where a ratio exceeds its bound."
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Measure only this entry; repeatable."
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    help="Measure only what runs on this device.",
)
@as_json
@click.pass_context
def perf(
    context: click.Context,
    out: Path,
    check: bool,
    only: tuple[str, ...],
    device: str | None,
    as_json: bool,
) -> None:
    """Speed and memory, each relative to a reference measured beside it.

    Both run alternately, on one thread each. A ratio must not exceed its bound.
    Results are written after each entry; one that fails does not stop the others.
    """
    from nfsgeo_benchmarks.perf.entries import ENTRIES
    from nfsgeo_benchmarks.perf.results import as_row, write_results
    from nfsgeo_benchmarks.perf.runner import measure

    for name in only:
        if name not in ENTRIES:
            raise UserError(
                f"--only {name}", f"one of {', '.join(ENTRIES)}", "choose one of these"
            )
    skipped = {} if only else {n: e.missing() for n, e in ENTRIES.items()}
    names = only or [name for name in ENTRIES if not skipped[name]]
    names = [n for n in names if device in (None, ENTRIES[n].device)]
    for name in names:
        ENTRIES[name].check()
    if not names:
        raise UserError(
            f"--device {device} without any entry to measure",
            "entries that run there, with what they need installed",
            "see what is skipped without --device",
        )
    out.mkdir(parents=True, exist_ok=True)
    measured, failed, written = [], {}, []
    with progress_bar() as progress, tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                measured.append(measure(ENTRIES[name], Path(folder), progress))
            # Whatever its processes raise: the other entries have their own.
            except Exception as error:
                failed[name] = " ".join(str(error).split()) or type(error).__name__
                continue
            written = write_results(measured, out)
    for name, message in failed.items():
        click.echo(f"failed  {name}: {message}", err=True)
    if as_json:
        print_json({"results": [as_row(each) for each in measured]})
    else:
        show(_table(measured), *(f"written  {path}" for path in written))
        by_lack: dict[str, list[str]] = {}
        for name, lack in skipped.items():
            if lack:
                by_lack.setdefault(" and ".join(lack), []).append(name)
        for lack, without in by_lack.items():
            show(f"skipped  without {lack}: {', '.join(without)}")
    if failed or (check and any(each.missed for each in measured)):
        context.exit(1)


def _table(measured: Sequence[Measurement]) -> Table:
    rows = []
    for each in measured:
        entry = each.entry
        style = "bold red" if each.missed else "none"
        cells = [f"[{style}]{each.ratio:.2f}[/]", _bound(entry.bound)]
        cells += [f"[{style}]{each.memory_ratio:.2f}[/]", _bound(entry.memory_bound)]
        cells.append(f"{each.variant_seconds:.3g}")
        shares = each.shares or ()
        cells += [f"{share:.0%}" for share in shares] or ["-", "-"]
        rows.append([entry.name, *cells])
    columns = ["time", "bound", "memory", "bound", "s", "flops", "copy"]
    return table(["benchmark", *columns], rows)


def _bound(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:g}"
