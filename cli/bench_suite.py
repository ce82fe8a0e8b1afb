"""`nfsgeo bench SUITE` and `nfsgeo bench tune SUITE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo.setting_errors import unknown
from nfsgeo_cli.terminal import as_json, progress_bar, report, table

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites import Run


@dataclass(frozen=True)
class Asked:
    """What every command is asked for that carries out runs."""

    scale: str
    out: Path
    only: tuple[str, ...]
    jobs: int
    dry_run: bool
    as_json: bool

    @staticmethod
    def options(command: Callable[..., Any]) -> Callable[..., Any]:
        """Adds the options."""
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
            click.option("--out", type=Path, required=True, help="Results' folder."),
            click.option("--scale", required=True, help="smoke, cpu, night or paper."),
        ):
            command = option(command)
        return command

    def carry_out(
        self,
        runs: Sequence[Run],
        outcome: Callable[[Run], str],
        write: Callable[[], object],
        slurm: Mapping[str, Any] | None = None,
    ) -> list[Run]:
        """Carries out the chosen runs with nobody else in the folder, or prints them.

        Args:
            runs: All runs.
            outcome: What to say about a run that has ended.
            write: Writes the tables in the end.
            slurm: Options of jobs, if they are jobs.
        """
        from nfsgeo.training.processes import only_here
        from nfsgeo_benchmarks.suites import carry_out_all, is_finished

        names = [*sorted({r.problem for r in runs}), *sorted({r.variant for r in runs})]
        for name in self.only:
            if name not in names:
                raise unknown(f"--only {name}", "a problem or variant", name, names)
        everything = runs
        for part in ("problem", "variant"):  # all of them where none is named
            named = {getattr(run, part) for run in everything} & {*self.only}
            runs = [r for r in runs if not named or getattr(r, part) in named]
        if not runs:
            raise UserError(
                f"--only {' --only '.join(self.only)}, of which this scale has no run",
                "a variant of these problems, at a scale that has it",
                "leave one out",
            )
        if self.dry_run:
            for run in runs:
                text = "finished" if is_finished(run, self.out) else "to run"
                click.echo(f"{text:<10}{run.name}")
            click.get_current_context().exit()

        def ended(run: Run) -> None:
            name = f"{run.problem} {run.variant} {run.trial or f'seed {run.seed}'}"
            click.echo(f"{name}: {outcome(run)}", err=True)

        self.out.mkdir(parents=True, exist_ok=True)
        with only_here(self.out, "a suite"), progress_bar() as progress:
            try:
                say = {"progress": progress, "ended": ended}
                carry_out_all(runs, self.out, jobs=self.jobs, slurm=slurm, **say)
            finally:
                write()
        return [*runs]


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
    @Asked.options
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
        data_folder: Path | None,
        launcher: str,
        slurm: tuple[str, ...],
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
        jobs = parse_settings(slurm, "--slurm") if launcher == "slurm" else None
        if slurm and jobs is None:
            raise UserError(
                f"--slurm {slurm[0]}", "--launcher slurm", "give it too, or neither"
            )
        asked = Asked(**options)
        scale, out = asked.scale, asked.out
        planned = suites.runs_of(suite, scale, suites.shipped_scales(), data_folder)
        everything, absent = suites.with_files(
            planned, lambda run: suites.is_finished(run, out)
        )
        for line in absent:
            click.echo(f"skipped  {line}", err=not asked.dry_run)
        if not everything:
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
            suites.write_tables(suites.collect(everything, out), out, about)
            suites.write_suite_report(out)

        rows = suites.collect(asked.carry_out(everything, outcome, write, jobs), out)
        report(
            asked.as_json,
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
@Asked.options
@click.pass_context
def tune(context: click.Context, suite: str, **options: Any) -> None:
    """Choose settings of a suite's variants by short trials on validation samples.

    Test samples are not scored. The table tuned.csv in the folder holds all trials;
    beside the suite's committed results, its choices are used in every run.
    """
    from nfsgeo_benchmarks import suites

    asked, content = Asked(**options), suites.read_suite(suites.find_suite(suite))
    out = asked.out
    everything = suites.trials_of(content, asked.scale, suites.shipped_scales())
    rows: list[dict[str, Any]] = []
    runs = asked.carry_out(
        everything,
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
    report(asked.as_json, {"trials": rows}, table(columns, shown), written)
    if not all(suites.is_finished(run, out) for run in runs):
        context.exit(1)


def _errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean absolute errors as text of 80 columns: variants over problems."""
    from nfsgeo_benchmarks.suites.tables import seed_means

    means = seed_means(rows)
    mae = means.mean["mae"]
    text = mae.map("{:.3e}".format).where(mae.notna(), means.first["status"])
    shown = text.unstack("problem", sort=False).fillna("-")
    return shown.rename_axis(index=None, columns="MAE").to_string(line_width=80)
