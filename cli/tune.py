"""`nfsgeo tune`: models and their settings, chosen on data of one's own."""

from __future__ import annotations

import re
import shlex
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from nfsgeo_cli.bench import carry_out
from nfsgeo_cli.settings import OPTIONS, SettingsCommand
from nfsgeo_cli.terminal import option, report, table, verb


@partial(verb, kind=SettingsCommand)
@option("--data", Path, "File of the data to choose settings for.", required=True)
@option("--model", str, "Model to try; repeatable.", multiple=True, default=["nfs"])
@option("--trials", click.IntRange(1), "Most trials of each model.", default=8)
@option(
    "--space",
    str,
    "KEY=V1,V2,..., values to try; repeatable.",
    multiple=True,
)
@option("--set", str, "KEY=VALUE, a setting of all trials; repeatable.", multiple=True)
@option("--jobs", click.IntRange(1), "Trials at a time.", default=1)
@option("--out", Path, "Folder of the trials.", required=True)
def tune(out: Path, space: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Choose a model and its settings for your data by short trials.

    The first trial of a model changes nothing. The next ones change one setting of the
    best trial so far: learning rate, width or depth, or what --space names. Trials are
    scored on validation samples alone, and take --budget minutes of CPU time each, 5 by
    default, or --epochs. The folder gets trials.csv, a table of all trials, and
    best.yaml, the settings of the best one, for nfsgeo train --config. The same command
    continues a stopped search.

    Example:
      nfsgeo tune --data ns.nc --model nfs --model dse --budget 10 --out tuned
    """
    import pandas as pd

    from nfsgeo.plugins import imported
    from nfsgeo.training import parse_settings
    from nfsgeo.training.artifacts import write_bytes
    from nfsgeo_benchmarks.suites.tuning import Tuning

    settings = {key: options[name] for name, key in OPTIONS.items()}
    settings = {k: value for k, value in settings.items() if value not in (None, ())}
    settings |= parse_settings(options["set"])
    if not {"trainer.epochs", "trainer.budget"} & settings.keys():
        settings["trainer.budget"] = 5.0
    lists = [re.sub("=(.*)", r"=[\1]", text) for text in space]
    values, num = parse_settings(lists, "--space"), options["trials"]
    models = dict.fromkeys(options["model"])
    searches = [Tuning(settings | {"model.name": m}, values, num, out) for m in models]
    best = out / "best.yaml"
    plan = {"only": (), "jobs": options["jobs"], "dry_run": False, "as_json": as_json}
    for new in zip_longest(*(search.batches() for search in searches), fillvalue=()):
        carry_out([run for runs in new for run in runs], out, list, **plan)
        rows = [row for search in searches for row in search.rows()]
        frame = pd.DataFrame(rows).sort_values("valid_rmse")
        write_bytes(out / "trials.csv", frame.to_csv(index=False).encode())
        if frame["status"].iloc[0] != "ok":
            why = frame.get("message", frame["status"]).iloc[0]
            raise click.ClickException(f"no trial was completed: {why}")
        write_bytes(best, (out / frame["folder"].iloc[0] / "config.yaml").read_bytes())
    shown = frame.drop(columns=["message", "folder"], errors="ignore")
    shown = shown.rename(columns=lambda name: name.rpartition(".")[2])
    code = "".join(f" --import {shlex.quote(name)}" for name in imported())
    train = f"nfsgeo train --config {shlex.quote(str(best))}{code}"
    lines = [
        table("model", shown.set_index("model")),
        f"trials   {out / 'trials.csv'}, all trials, the best first",
        f"best     {best}, the settings of the best",
        "",
        "Train with these settings; --epochs or --budget trains longer than a trial:",
        f"  {train}",
    ]
    content = {"trials": frame.to_dict("records"), "best": str(best), "train": train}
    report(as_json, content, *lines)
