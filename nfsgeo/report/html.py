"""Self-contained pages: one about a run, and one that compares runs."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from nfsgeo.errors import SAVED_NAME, UserError
from nfsgeo.files import only_here
from nfsgeo.report.curves import COMPONENTS, Curve, curves
from nfsgeo.report.figures import compared_fields, run_pictures
from nfsgeo.report.films import frames_of
from nfsgeo.report.run_folder import RunFolder, read_run_folder
from nfsgeo.report.style import COLOURS, Picture
from nfsgeo.report.tables import (
    band_table,
    compared_errors,
    error_table,
    error_tables,
    further_tables,
    verdict,
)
from nfsgeo.report.text import (
    bytes_text,
    count_text,
    error_text,
    points_text,
    seconds_text,
    with_unit,
)
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__

__all__ = ["template", "write_comparison", "write_report"]

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
SCRIPT = (HERE / "report.js").read_text(encoding="utf-8")
# The page's security policy knows its one script by this hash.
SHA256 = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
# Looks of runs: seven of Okabe and Ito's colours, solid, then dashed.
HUES = [COLOURS[name] for name in ("model", "second", "third", "ink")]
HUES += ["#cc79a7", "#e69f00", "#56b4e9"]
RUNS: list[dict[str, Any]] = [
    {"color": hue, "ls": dash} for dash in ("-", "--", ":", "-.") for hue in HUES
]


def write_report(run_dir: Path) -> Path:
    """Write ``figures/*.png`` and ``report.html`` into a run folder.

    Reads the files of the folder only, and leaves out what is not there. The page,
    whose path is returned, holds its pictures and style and loads nothing. Its one
    script moves the films of problems in time; all else can be read without it.

    Raises:
        UserError: ``run_dir`` holds no run, or one of its files is damaged.
    """
    paths = RunPaths.existing(Path(run_dir))
    with only_here(paths.config, "results", wait=True):  # the last one is the newest
        return _write_report(paths)


def _write_report(paths: RunPaths) -> Path:
    run = read_run_folder(paths.root)
    summary = run.summary
    pictures: dict[str, list[Picture]] = defaultdict(list)
    paths.figures.mkdir(exist_ok=True)
    for picture in run_pictures(run):
        if content := picture.png:
            write_bytes(paths.figures / f"{picture.name}.png", content)
        pictures[picture.section].append(picture)
    settings = {"Configuration": run.config, "Data": _data_rows(summary)}
    settings["Environment"] = run.environment
    model, about = summary.get("model") or run.path.name, _data_of(summary)
    page = template("report.html.j2").render(
        title=f"{model} on {about}" if about else model,
        facts=_facts(run),
        errors=list(error_tables(summary)),
        pooled=summary.get("pooled"),
        bands=band_table(summary),
        level=(summary.get("bands") or {}).get("level"),
        verdict=verdict(summary),
        units=summary.get("units"),
        pictures=pictures,
        frames=frames_of(run.predictions),
        script=SCRIPT,
        script_hash=f"sha256-{SHA256}",
        settings={k: rows for k, nested in settings.items() if (rows := _flat(nested))},
    )
    write_bytes(paths.report, page.encode())
    return paths.report


def write_comparison(run_dirs: Sequence[Path], target: Path) -> pd.DataFrame:
    """Write a page with the errors and curves of runs, and the settings that differ.

    Returns:
        The test errors, a row for each run and a column for each measure. The name of
        a run is followed by the unit, or by ``pooled`` for errors over its components.

    Raises:
        UserError: ``run_dirs`` are not two or more, one comes twice, holds no run or is
            damaged, or ``target`` is no ``.html``.
    """
    target, folders = Path(target), [Path(path) for path in run_dirs]
    if len(folders) < 2 or len({path.resolve() for path in folders}) < len(folders):
        raise UserError(
            f"{' '.join(map(str, folders)) or 'no run'} to compare",
            "two or more run folders, each once",
            "name the folders that 'nfsgeo train' wrote",
        )
    if target.suffix.lower() != ".html":
        raise UserError(f"{target} to write", "a name that ends in .html", "rename it")
    names = [path.resolve().name for path in folders]
    if len(set(names)) < len(names):
        names = [str(path) for path in folders]
    runs = dict(zip(names, map(read_run_folder, folders), strict=True))
    summaries = {name: run.summary for name, run in runs.items()}
    kinds = {
        name: "pooled" if s.get("components") else s.get("units") or ""
        for name, s in summaries.items()
    }
    test = {name: s.get("test") or {} for name, s in summaries.items()}
    tables, with_baselines = compared_errors(summaries)
    tables_of = further_tables if with_baselines else error_tables
    flat = {name: _flat(run.config) | _cost(run.summary) for name, run in runs.items()}
    settings = pd.DataFrame(flat, dtype=object).fillna("–")
    # Runs of earlier versions know the path alone.
    known = all("fingerprint" in summary for summary in summaries.values())
    key = "fingerprint" if known else "data"
    data = {summary[key] for summary in summaries.values() if summary.get(key)}
    if len(data) > 1:
        text = "the %d runs have %d different sources of data: errors compare only as "
        logger.warning(text + "far as the data do", len(runs), len(data))
    page = template("comparison.html.j2").render(
        title=" and ".join(dict.fromkeys(map(_data_of, summaries.values()))),
        names=names,
        pooled=next((s["pooled"] for s in summaries.values() if s.get("pooled")), ""),
        errors=tables,
        with_baselines=with_baselines,
        of_runs={name: list(tables_of(s)) for name, s in summaries.items()},
        fields=compared_fields(runs),
        pictures=list(_charts(runs)),
        settings=settings[settings.nunique(axis=1) > 1],
        same_data=len(data) <= 1,
    )
    write_bytes(target, page.encode())
    return error_table({with_unit(name, kinds[name]): test[name] for name in names})


def template(name: str, *folders: Path) -> jinja2.Template:
    """Return a Jinja template that escapes values, and knows the ``version``.

    It is in ``folders`` or here, and may include the templates here.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = lambda x: x if isinstance(x, str) else error_text(x)
    environment.globals["version"] = __version__
    return environment.get_template(name)


def _data_of(summary: Mapping[str, Any]) -> str:
    """Name what a run is about: an equation, what was in memory, or a file."""
    name = Path(str(summary.get("data") or "")).name
    saved = re.fullmatch(SAVED_NAME, name)
    return summary.get("equation") or (saved[1] if saved else name)


def _data_rows(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the data of a run as far as its summary does."""
    about = summary.get("dataset") or {}

    def texts(units: Mapping[str, str]) -> str | None:
        return ", ".join(with_unit(*pair) for pair in units.items()) or None

    samples = [f"{num} {part}" for part, num in about.get("samples", {}).items()]
    points = np.ravel(about.get("points", []))
    return {
        "file": summary.get("data"),
        "samples": ", ".join(samples) or None,
        "split": about.get("split"),
        "fields": texts(about.get("fields", {})),
        "inputs": texts(about.get("inputs", {})),
        "points of a sample": " to ".join(map(str, points)) or None,
        "time steps": about.get("time_steps"),
        "fingerprint": summary.get("fingerprint") or None,
        **(summary.get("provenance") or {}),
    }


def _facts(run: RunFolder) -> dict[str, str]:
    """Describe the run in a few numbers; a steady problem has no time steps."""
    summary, e = run.summary, run.predictions
    scored = summary.get("scored") or {}
    steps = f"{count_text(summary.get('n_t'))} → {count_text(summary.get('n_t_out'))}"
    named = {
        "points": points_text(count_text(summary.get("n_s")), scored.get("points")),
        **({"problem": "steady"} if e and e.steady else {"time steps in → out": steps}),
        "epochs": count_text(summary.get("epochs")),
        **_cost(summary),
    }
    return {name: text for name, text in named.items() if set(text) - set("– →")}


def _cost(summary: Mapping[str, Any]) -> dict[str, str]:
    """Size of the model, time and memory of its training."""
    return {
        "parameters": count_text(summary.get("parameters")),
        "time per epoch": seconds_text(summary.get("seconds_per_epoch")),
        "peak memory": bytes_text(summary.get("peak_memory_bytes")),
    }


def _flat(settings: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings by their dotted names, as text."""
    flat = pd.json_normalize(dict(settings)).to_dict("records")[0]
    return {
        str(name): value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in flat.items()
        if value is not None and value != []
    }


def _charts(runs: Mapping[str, RunFolder]) -> Iterator[Picture]:
    """Validation error over epochs, and test error over the horizon."""
    charts: dict[tuple[str, str, str], dict[str, Curve]] = {}
    for look, (name, run) in zip(cycle(RUNS), runs.items(), strict=False):
        if {"epoch", "valid_mae"} <= set(run.metrics):
            caption = "The curves show the validation error after each epoch."
            key = caption, "epoch", "validation MAE"
            curve = run.metrics["epoch"] + 1, run.metrics["valid_mae"], look
            charts.setdefault(key, {})[name] = curve
        e = run.predictions
        if e is None or e.steady or "model" not in e.error_by_time_step:
            continue
        (leads, label), errors = e.leads, e.error_by_time_step["model"].T
        for quantity, error in zip(e.quantities[:COMPONENTS], errors, strict=False):
            caption = f"The curves show the test error of {quantity} by horizon."
            key = caption, label, f"MAE of {quantity}"
            charts.setdefault(key, {})[name] = leads, error, look
    for number, ((caption, xlabel, quantity), lines) in enumerate(charts.items()):
        draw = partial(curves, {quantity: lines}, xlabel)
        yield Picture(f"chart-{number}", "errors", caption, draw)
