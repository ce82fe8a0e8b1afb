"""Tables on stdout, progress on stderr, options that several verbs share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "as_json",
    "device",
    "error_table",
    "print_json",
    "progress_bar",
    "show",
    "table",
]

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


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table under a rule; all columns but the first are aligned at the right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(heads):
        made.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return made


def error_table(summary: Mapping[str, Any]) -> Table:
    """Test errors of the model beside those of the baselines, the smallest bold."""
    errors = {summary["model"]: summary["test"]}
    errors |= {NAMES.get(name, name): e for name, e in summary["baselines"].items()}
    measures = {"mae": "MAE", "rmse": "RMSE", "rel_l2": "relative L2"}
    smallest = {m: min(row[m] for row in errors.values()) for m in measures}
    return table(
        ["test errors", *measures.values()],
        [
            [name, *(_marked(row[m], row[m] <= smallest[m]) for m in measures)]
            for name, row in errors.items()
        ],
    )


def _marked(error: float, bold: bool) -> str:
    return f"[{'bold' if bold else 'none'}]{error:.3e}[/]"
