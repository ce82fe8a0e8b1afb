"""`nfsgeo bench perf`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import option, progress_bar, report, table, verb

# These columns tell the rows of results.csv apart.
KEY = ("name", "device", "points")


@verb
@option("--out", Path, "Folder of results.csv.", required=True)
@option("--check", bool, "Exit with 1 where a ratio exceeds its bound.")
@option("--only", str, "Measure only this entry; repeatable.", multiple=True)
@option("--device", ["cpu", "cuda"], "Where to measure.", default="cpu")
@option("--points", click.IntRange(64), "Points in every entry, to try them out.")
@click.pass_context
def perf(
    context: click.Context,
    out: Path,
    check: bool,
    only: tuple[str, ...],
    device: Literal["cpu", "cuda"],
    points: int | None,
    as_json: bool,
) -> None:
    """Measure speed and memory relative to references.

    Variant and reference run alternately. A ratio must not exceed its bound.
    Results are written after each entry, the most important ones for a GPU first.
    An entry that fails does not stop the others. Those that are finished in the
    folder are skipped, unless --only names them.

    Examples:
      nfsgeo bench perf --check --out perf
      nfsgeo bench perf --only load-cached --only nfs-default --out perf
      nfsgeo bench perf --device cuda --out perf-cuda
    """
    import pandas as pd
    import torch

    from nfsgeo.config import TrainerSection
    from nfsgeo.config.errors import unknown
    from nfsgeo.training.artifacts import write_rows
    from nfsgeo.training.lightning_setup import check_device
    from nfsgeo_benchmarks.perf.entries import ENTRIES
    from nfsgeo_benchmarks.perf.measure import measure

    for name in only:
        if name not in ENTRIES:
            raise unknown(f"--only {name}", "an entry", name, ENTRIES)
    check_device(TrainerSection(device=device))
    usual = [n for n, e in ENTRIES.items() if device in (e.device or device)]
    lacks = {name: ENTRIES[name].lacks(device) for name in only or usual}
    if all(lacks.values()):
        name, lack = next(iter(lacks.items()))
        raise UserError(
            f"benchmark {name}, without {lack}",
            "what it is measured on and compared with",
            "install it, or choose another with --only",
        )
    out.mkdir(parents=True, exist_ok=True)
    where = torch.cuda.get_device_name() if device == "cuda" else device
    path, rows = out / "results.csv", list[dict[str, Any]]()
    if path.is_file():
        before = pd.read_csv(path, dtype_backend="numpy_nullable").astype(object)
        rows = before.where(before.notna(), None).to_dict("records")
    names = [(name, where, points) for name in lacks]
    finished = {_key(row) for row in rows if row.get("status") in ("ok", "missed")}
    measured = set() if only else finished.intersection(names)
    with progress_bar() as progress, tempfile.TemporaryDirectory() as folder:
        for key in names:
            if key in measured:
                continue
            row, entry = dict(zip(KEY, key, strict=True)), ENTRIES[key[0]]
            entry = entry if points is None else entry.sized(points)
            try:
                if entry.lacks(device):
                    row["status"] = "skipped"
                else:
                    row |= measure(entry, Path(folder), device, progress)
            # Whatever its processes raise: the other entries have their own.
            except Exception as error:
                message = (
                    " ".join(getattr(error, "line", str(error)).split())
                    or type(error).__name__
                )
                click.echo(f"failed  {entry.name}: {message}", err=True)
                row["status"] = "failed"
            rows = [other for other in rows if _key(other) != key] + [row]
            longest = sorted(rows, key=len, reverse=True)
            columns = dict.fromkeys(column for record in longest for column in record)
            write_rows(path, list(columns), rows)
    rows = [row for row in rows if _key(row) in names]
    shown = {"ratio": "time", "bound": "bound", "memory_ratio": "memory"}
    shown |= {"memory_bound": "bound ", "variant_seconds": "s", "status": "status"}
    frame = pd.DataFrame(rows, columns=["name", *shown]).set_index("name")
    lines = [table("benchmark", frame.rename(columns=shown))]
    lines += [f"skipped  {n}, without {lack}" for n, lack in lacks.items() if lack]
    lines += [f"kept     {len(measured)} measured before"] * bool(measured)
    report(as_json, {"results": rows}, *lines, f"written  {path}")
    statuses = {row["status"] for row in rows}
    if "failed" in statuses or (check and "missed" in statuses):
        context.exit(1)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(column) for column in KEY)
