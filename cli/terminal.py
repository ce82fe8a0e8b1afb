"""Tables on stdout, progress on stderr, options that several verbs share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["as_json", "device", "error_table", "print_json", "progress_bar", "show"]

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
device = click.option(
    "--device",
    metavar="cpu|cuda|auto",
    help="Where to compute; the run's own if unset.",
)
NAMES = {
    "persistence": "persistence",
    "linear_extrapolation": "linear extrapolation",
    "mean": "training mean",
}


def print_json(content: Any) -> None:
    """One JSON object on stdout."""
    from nfsgeo.training.artifacts import json_text

    click.echo(json_text(content))


def show(*lines: Any) -> None:
    """Tables and text on stdout, as wide as the terminal and no more."""
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines:
        console.print(line)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function of what is being done, how much is done, and how much in all.

    Draws a bar with the time left on stderr, for one thing after the other, and
    nothing where stderr is no terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        expand=True,
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def update(what: str, done: int, total: int) -> None:
        if what not in tasks:
            for earlier in tasks.values():
                bars.update(earlier, visible=False)
            # What was there before says nothing about the speed.
            tasks[what] = bars.add_task(what, total=total, completed=done)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield update


def error_table(summary: Mapping[str, Any]) -> Table:
    """Test errors of the model beside those of the baselines, the smallest bold."""
    from rich import box
    from rich.table import Table

    rows = {summary["model"]: summary["test"]}
    rows |= {NAMES.get(name, name): e for name, e in summary["baselines"].items()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("test errors")
    measures = {"mae": "MAE", "rmse": "RMSE", "rel_l2": "relative L2"}
    for title in measures.values():
        table.add_column(title, justify="right")
    for name, errors in rows.items():
        cells = []
        for measure in measures:
            smallest = errors[measure] <= min(row[measure] for row in rows.values())
            style = "bold" if smallest else "none"
            cells.append(f"[{style}]{errors[measure]:.3e}[/]")
        table.add_row(name, *cells)
    return table
