"""`nfsgeo bench tune`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.bench_suite import chosen_runs
from nfsgeo_cli.terminal import as_json, progress_bar, report, table

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run


@click.command(
    epilog="""\b
    Examples:
      nfsgeo bench tune accuracy --scale cpu --jobs 2 --out tuned
      nfsgeo bench tune accuracy --scale cpu --only nfs --dry-run --out tuned
    """
)
@click.argument("suite")
@click.option("--scale", required=True, help="smoke, cpu, night or paper.")
@click.option("--out", type=Path, required=True, help="Folder of the search.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Variant or problem; repeatable."
)
@click.option("--jobs", type=click.IntRange(1), default=1, help="Runs at a time.  [1]")
@click.option("--dry-run", is_flag=True, help="Print the trials and their epochs.")
@as_json
@click.pass_context
def tune(context: click.Context, suite: str, **options: Any) -> None:
    """Choose settings of a suite's variants by short trials on validation samples.

    Test samples are not scored. The table tuned.csv in the folder holds all trials;
    beside the suite's committed results, its choices are used in every run.
    """
    from nfsgeo_benchmarks.suites import shipped_suites

    known = shipped_suites()
    path = Path(suite) if suite.endswith((".yaml", ".yml")) else known.get(suite)
    if path is None:
        raise UserError(
            f"suite {suite}", f"one of {', '.join(known)}", "choose one of these"
        )
    if not _tune(suite, path, **options):
        context.exit(1)


def _tune(
    name: str,
    path: Path,
    scale: str,
    out: Path,
    *,
    only: tuple[str, ...] = (),
    jobs: int = 1,
    dry_run: bool = False,
    as_json: bool = False,
) -> bool:
    """Runs the trials of a suite's search and writes what they choose.

    Returns:
        Whether no trial failed.
    """
    from nfsgeo.training.processes import only_here
    from nfsgeo_benchmarks.suites import (
        carry_out_all,
        is_finished,
        read_suite,
        shipped_scales,
        trial_rows,
        trials_of,
        write_choices,
    )

    suite, scales = read_suite(path), shipped_scales()
    if scale not in scales:
        raise UserError(f"--scale {scale}", f"one of {', '.join(scales)}", "choose one")
    everything = trials_of(suite, scale, scales)
    if not everything:
        raise UserError(
            f"{name} without a search", "a suite with a search", "add one to its file"
        )
    runs = chosen_runs(everything, _with_trials(everything, only))
    if dry_run:
        for run in runs:
            state = "finished" if is_finished(run, out) else "to run"
            click.echo(f"{state:<10}{run.settings['trainer.epochs']:>4} {run.name}")
        return True
    out.mkdir(parents=True, exist_ok=True)

    def ended(run: Run) -> None:
        for row in trial_rows(suite, [run], out):
            error = row["valid_rmse"]
            found = "no result" if error is None else f"validation RMSE {error:.3e}"
            click.echo(f"{run.problem} {run.variant}: {found}", err=True)

    with only_here(out, "a search"):
        try:
            with progress_bar() as progress:
                carry_out_all(runs, out, jobs=jobs, progress=progress, ended=ended)
        finally:
            rows = trial_rows(suite, everything, out)
            written = write_choices(rows, out)
    columns = ["problem", "variant", "choice", "validation RMSE", "default's"]
    shown = []
    for row in rows:
        if row["chosen"]:
            (default,) = (
                each["valid_rmse"]
                for each in rows
                if each["trial"] == rows[0]["trial"]
                and (each["problem"], each["variant"])
                == (row["problem"], row["variant"])
            )
            before = "-" if default is None else f"{default:.3e}"
            error = f"{row['valid_rmse']:.3e}"
            shown.append([row["problem"], row["variant"], row["trial"], error, before])
    report(as_json, {"trials": rows}, table(columns, shown), f"choices  {written}")
    return all(is_finished(run, out) for run in runs)


def _with_trials(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Names of problems and trials, with all trials of the variants among them."""
    found: list[str] = []
    for name in names:
        trials = [r.variant for r in runs if r.variant.split("@")[0] == name]
        found += dict.fromkeys(trials) or [name]
    return found
