"""Self-contained pages: one about a run, and one that compares runs."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from nfsgeo.errors import UserError
from nfsgeo.report.figures import COMPONENTS, Curve, curves, run_pictures
from nfsgeo.report.films import frames_of
from nfsgeo.report.run_folder import RunFolder, read_run_folder
from nfsgeo.report.style import COLOURS, Picture, styled
from nfsgeo.report.tables import (
    component_tables,
    cost,
    error_table,
    facts,
    flat,
    methods_of,
    settings_tables,
    unobserved_table,
    verdict,
)
from nfsgeo.report.text import error_text, time_axis
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__

__all__ = ["template", "write_comparison", "write_report"]

HERE = Path(__file__).parent
SCRIPT = (HERE / "report.js").read_text(encoding="utf-8")
# Looks of runs: seven of Okabe and Ito's colours, solid, then dashed.
HUES = [COLOURS[name] for name in ("model", "second", "third", "ink")]
HUES += ["#cc79a7", "#e69f00", "#56b4e9"]
RUNS: list[dict[str, Any]] = [
    {"color": hue, "ls": dash} for dash in ("-", "--", ":", "-.") for hue in HUES
]
# The page's security policy knows its one script by this hash.
SHA256 = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()


def write_report(run_dir: Path) -> Path:
    """Writes ``figures/*.png`` and ``report.html`` into a run folder.

    Reads the files of the folder only, and leaves out what is not there. The page
    holds its pictures and style and loads nothing. Its one script moves the films of
    problems in time; all else can be read without it.

    Args:
        run_dir: A run folder.

    Returns:
        The path of the page.

    Raises:
        UserError: ``run_dir`` holds no run, or one of its files is damaged.
    """
    run = read_run_folder(Path(run_dir))
    pictures: dict[str, list[Picture]] = defaultdict(list)
    paths = RunPaths(run.path)
    paths.figures.mkdir(exist_ok=True)
    for picture in run_pictures(run):
        write_bytes(paths.figures / f"{picture.name}.png", picture.png)
        pictures[picture.section].append(picture)
    page = template("report.html.j2").render(
        title=_title(run),
        facts=facts(run),
        errors=error_table(methods_of(run.summary)),
        components=list(component_tables(run.summary)),
        unobserved=unobserved_table(run.summary),
        pooled=run.summary.get("pooled"),
        verdict=verdict(run.summary),
        units=run.summary.get("units"),
        pictures=pictures,
        frames=frames_of(run.predictions),
        script=SCRIPT,
        script_hash=f"sha256-{SHA256}",
        tables=list(settings_tables(run)),
    )
    write_bytes(paths.report, page.encode())
    return paths.report


def write_comparison(run_dirs: Sequence[Path], target: Path) -> Path:
    """Writes a page with the errors and curves of runs, and the settings that differ.

    Args:
        run_dirs: Two or more run folders.
        target: The page to make.

    Returns:
        ``target``.

    Raises:
        UserError: There are fewer runs, one comes twice, or a folder holds none or is
            damaged.
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
    own = len({path.name for path in folders}) == len(folders)
    names = [path.resolve().name if own else str(path) for path in folders]
    runs = dict(zip(names, map(read_run_folder, folders), strict=True))
    components: dict[str, dict[str, Any]] = {}
    for name, run in runs.items():
        for component, errors in (run.summary.get("components") or {}).items():
            components.setdefault(component, {})[name] = errors
    errors = {name: run.summary.get("test") or {} for name, run in runs.items()}
    page = template("comparison.html.j2").render(
        names=names,
        errors=error_table(errors),
        components=[(title, error_table(e)) for title, e in components.items()],
        pictures=list(_pictures(runs)),
        settings=_differing(runs),
        same_data=len({run.summary.get("data") for run in runs.values()}) == 1,
    )
    write_bytes(target, page.encode())
    return target


def template(name: str, *folders: Path) -> jinja2.Template:
    """A Jinja template that escapes what is filled in, and knows the ``version``.

    Args:
        name: Name of its file.
        folders: Where it is, beside the templates here, which it may include.
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


def _title(run: RunFolder) -> str:
    model = run.summary.get("model") or run.config.get("model") or run.path.name
    if isinstance(model, Mapping):
        model = model.get("name", run.path.name)
    about = run.summary.get("equation") or run.summary.get("data")
    return f"{model} on {Path(str(about)).name}" if about else str(model)


def _pictures(runs: Mapping[str, RunFolder]) -> Iterator[Picture]:
    """Validation error over epochs, and test error over the horizon."""
    charts: dict[tuple[str, str, str], dict[str, Curve]] = {}
    styled_runs = list(zip(RUNS, runs.items(), strict=False))
    for look, (name, run) in styled_runs:
        if {"epoch", "valid_mae"} <= set(run.metrics):
            key = "Validation error after each epoch.", "epoch", "validation MAE"
            curve = run.metrics["epoch"] + 1, run.metrics["valid_mae"], look
            charts.setdefault(key, {})[name] = curve
    for look, (name, run) in styled_runs:
        e = run.predictions
        if e is None or e.steady or "model" not in e.error_by_time_step:
            continue
        leads, label = time_axis(*e.leads)
        errors = e.error_by_time_step["model"].reshape(len(leads), -1)
        for quantity, error in zip(e.quantities[:COMPONENTS], errors.T, strict=False):
            key = f"Test error of {quantity} by horizon.", label, f"MAE of {quantity}"
            charts.setdefault(key, {})[name] = leads, error, look
    for number, ((caption, xlabel, quantity), lines) in enumerate(charts.items()):
        with styled():
            figure = curves({quantity: lines}, xlabel)
        yield Picture(f"chart-{number}", "errors", caption, figure)


def _differing(runs: Mapping[str, RunFolder]) -> pd.DataFrame:
    """Settings and facts that are not the same in all runs, a row for each."""
    tables = {k: {**dict(flat(run.config)), **cost(run)} for k, run in runs.items()}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    frame = pd.DataFrame(tables, list(keys), dtype=object).fillna("–")
    return frame[frame.nunique(axis=1) > 1]
