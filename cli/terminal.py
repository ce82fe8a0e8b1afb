"""Tables on stdout, progress on stderr, options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.measures import MEASURES

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
device = click.option(
    "--device",
    metavar="cpu|cuda|auto",
    help="Where to compute; the run's own if unset.",
)


def print_json(content: Any) -> None:
    """One JSON object on stdout."""
    from nfsgeo.training.artifacts import json_text

    click.echo(json_text(content))


def report(as_json: bool, content: dict[str, Any], *lines: Any) -> None:
    """One JSON object on stdout, or else tables and text."""
    if as_json:
        print_json(content)
    else:
        show(*lines)


def show(*lines: Any) -> None:
    """Tables and text on stdout, at most as wide as the terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines:
        console.print(line)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A function that shows progress: a description, the number done, and the total.

    It draws a bar with the remaining time on stderr, one task after the other, and
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
            # What was done before says nothing about the speed.
            tasks[what] = bars.add_task(what, total=total, completed=done)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield update


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose columns but the first are aligned to the right.

    Where it is too wide for the terminal, the first column is broken into lines.
    """
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(heads):
        numbers = {"justify": "right", "no_wrap": True}
        made.add_column(head, **(numbers if number else {"overflow": "fold"}))
    for row in rows:
        made.add_row(*row)
    return made


def error_table(summary: Mapping[str, Any]) -> Group:
    """Errors of the model and of the baselines, the smallest in bold.

    Each of several components has its own rows, after those of the pooled errors. A
    sentence below says how many samples and points the errors are over.
    """
    from rich.console import Group
    from rich.markup import escape

    scored, components = summary.get("scored", {}), summary.get("components", {})
    title = "errors" if scored.get("part") == "all" else "test errors"
    units = summary.get("units")
    title = escape(f"{title} ({units})" if units else title)
    # Summaries of earlier versions have fewer of them.
    measures = [name for name in MEASURES if name in summary["test"]]
    made = table([title, *(MEASURES[name] for name in measures)], [])
    below = [_scored(summary)] if scored else []
    if not components:
        _add_rows(made, summary, summary["test"], summary["baselines"])
        return Group(made, *below)
    made.add_row("[bold]pooled*[/]")
    _add_rows(made, summary, summary["test"], summary["baselines"], "  ")
    for name, errors in components.items():
        label = f"{name} ({errors['unit']})" if errors["unit"] else name
        made.add_section()
        made.add_row(f"[bold]{escape(label)}[/]", f"std {errors['std']:.3g}")
        _add_rows(made, summary, errors, errors["baselines"], "  ")
    return Group(made, f"* {summary['pooled']}", *below)


def _add_rows(
    made: Table,
    summary: Mapping[str, Any],
    test: Mapping[str, Any],
    baselines: Mapping[str, Mapping[str, Any]],
    indent: str = "",
) -> None:
    everything = summary.get("scored", {}).get("part") == "all"
    mean = "mean of these samples" if everything else "training mean"
    rows = {summary["model"]: test}
    for name, errors in baselines.items():
        rows[mean if name == "mean" else name.replace("_", " ")] = errors
    for name, errors in rows.items():
        cells = []
        for measure in (name for name in MEASURES if name in test):
            smallest = errors[measure] <= min(row[measure] for row in rows.values())
            style = "bold" if smallest else "none"
            cells.append(f"[{style}]{errors[measure]:.3e}[/]")
        made.add_row(indent + name, *cells)


def _scored(summary: Mapping[str, Any]) -> str:
    """How many samples and points the errors are over, in a sentence."""
    scored = summary["scored"]
    samples, of = scored["samples"], scored["of_samples"]
    which = f"all {of}" if samples == of else f"{samples} of {of}"
    points, there = (
        " to ".join(map(str, each)) if isinstance(each, list) else str(each)
        for each in (scored["points"], scored["of_points"])
    )
    if scored["of_points"] is not None:
        points = f"all {points}" if points == there else f"{points} of {there}"
    windows = f"{scored['windows']} windows of " if "windows" in scored else ""
    text = f"Scored {windows}{which} samples at {points} points each."
    if scored["tied"]:
        text += f" {summary['model']} is tied to the points of training."
    if scored["trained_on"]:
        text += f" The run was trained or validated on {scored['trained_on']} of them."
    return text
