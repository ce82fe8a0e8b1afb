"""`nfsgeo bench perf`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import option, progress_bar, report, table, verb


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
    """Measure speed and memory relative to references.

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
                message = (
                    " ".join(getattr(error, "line", str(error)).split())
                    or type(error).__name__
                )
                click.echo(f"failed  {name}: {message}", err=True)
                failed = True
    columns = {"ratio": "time", "bound": "bound", "memory_ratio": "memory"}
    columns |= {"memory_bound": "bound ", "variant_seconds": "s", "status": "status"}
    frame = pd.DataFrame(rows, columns=["name", *columns]).set_index("name")
    lines = [table("benchmark", frame.rename(columns=columns))]
    lines += [f"skipped  {line}" for line in skipped]
    report(as_json, {"results": rows}, *lines, f"written  {out / 'results.csv'}")
    if failed or (check and any(row["status"] == "missed" for row in rows)):
        context.exit(1)
