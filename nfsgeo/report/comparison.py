"""One self-contained page that compares runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nfsgeo.data.fields import Doubles
from nfsgeo.errors import UserError
from nfsgeo.report.curves import curves_of_runs
from nfsgeo.report.figures import COMPONENTS
from nfsgeo.report.html import HERE, embedded, template
from nfsgeo.report.numbers import bytes_text, count_text, seconds_text
from nfsgeo.report.run_folder import RunFolder, read_run_folder
from nfsgeo.report.style import Picture, styled
from nfsgeo.report.tables import errors_of_methods, flat
from nfsgeo.report.times import after_input
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__

__all__ = ["write_comparison"]

FACTS: dict[str, Callable[[Any], str]] = {
    "parameters": count_text,
    "seconds_per_epoch": seconds_text,
    "peak_memory_bytes": bytes_text,
}


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
    target = Path(target)
    if len(run_dirs) < 2 or len({Path(p).resolve() for p in run_dirs}) < len(run_dirs):
        raise UserError(
            f"{' '.join(map(str, run_dirs)) or 'no run'} to compare",
            "two or more run folders, each once",
            "name the folders that 'nfsgeo train' wrote",
        )
    if target.suffix.lower() != ".html":
        raise UserError(f"{target} to write", "a name that ends in .html", "rename it")
    folders = [Path(path) for path in run_dirs]
    own = len({path.name for path in folders}) == len(folders)
    names = [path.resolve().name if own else str(path) for path in folders]
    runs = dict(zip(names, map(read_run_folder, folders), strict=True))
    with styled():
        pictures = [embedded(picture, picture.png()) for picture in _pictures(runs)]
    scored = {name: run.summary.get("test") or {} for name, run in runs.items()}
    page = template("comparison.html.j2", HERE).render(
        version=__version__,
        names=names,
        errors=errors_of_methods(scored),
        components=_components(runs),
        pictures=pictures,
        settings=_differing(runs),
        same_data=len({run.summary.get("data") for run in runs.values()}) == 1,
    )
    write_bytes(target, page.encode())
    return target


def _components(runs: dict[str, RunFolder]) -> list[dict[str, Any]]:
    """A table of errors for each component of several."""
    tables: dict[str, dict[str, Any]] = {}
    for name, run in runs.items():
        for component, errors in (run.summary.get("components") or {}).items():
            tables.setdefault(component, {})[name] = errors
    found = {title: errors_of_methods(errors) for title, errors in tables.items()}
    return [{**table, "title": title} for title, table in found.items() if table]


def _pictures(runs: dict[str, RunFolder]) -> list[Picture]:
    """Validation error over epochs, and test error over the horizon."""
    pictures = []

    def add(name: str, caption: str, figure: Figure | None) -> None:
        if figure is not None:
            pictures.append(Picture(name, "errors", caption, figure))

    valid = {
        name: (run.metrics["epoch"] + 1, run.metrics["valid_mae"])
        for name, run in runs.items()
        if {"epoch", "valid_mae"} <= run.metrics.keys()
    }
    figure = curves_of_runs(valid, "epoch", "validation MAE")
    add("validation", "Validation error after each epoch.", figure)
    horizons: dict[str, dict[str, tuple[Doubles, Doubles]]] = {}
    for name, run in runs.items():
        e = run.predictions
        if e is None or e.steady or "model" not in e.error_by_time_step:
            continue
        leads, label = after_input(e.leads, e.time_unit)
        errors = e.error_by_time_step["model"].reshape(len(leads), -1)
        for c in range(min(COMPONENTS, errors.shape[1])):
            horizons.setdefault(e.quantities[c], {})[name] = leads, errors[:, c]
    for quantity, lines in horizons.items():
        figure = curves_of_runs(lines, label, f"MAE of {quantity}")
        add(f"horizon-{quantity}", f"Test error of {quantity} by horizon.", figure)
    return pictures


def _differing(runs: dict[str, RunFolder]) -> list[tuple[str, list[str]]]:
    """Settings and facts that are not the same in all runs, a row for each."""
    tables = [
        dict(flat(run.config))
        | {name: as_text(run.summary.get(name)) for name, as_text in FACTS.items()}
        for run in runs.values()
    ]
    keys = dict.fromkeys(key for table in tables for key in table)
    rows = [(key, [table.get(key, "–") for table in tables]) for key in keys]
    return [(key, row) for key, row in rows if len(set(row)) > 1]
