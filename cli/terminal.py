"""Tables on stdout, progress on stderr, options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo.measures import MEASURES

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

MOST_TIMES = 10**7
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
device = click.option(
    "--device",
    metavar="cpu|cuda|auto",
    help="Where to compute; the run's own if unset.",
)


def times(context: Any, option: click.Parameter, text: str | None) -> Any:
    """The ``callback`` of an option with times: ``0,0.3,1``, or ``0:10:0.5``.

    The latter are from 0 to 10 by 0.5, both ends included.
    """
    if text is None:
        return None
    try:
        if ":" not in text:
            return [float(time) for time in text.split(",")]
        start, stop, step = map(float, text.split(":"))
        num = round((stop - start) / step)
        if 0 <= num < MOST_TIMES and abs(start + num * step - stop) <= 1e-6 * abs(step):
            return [start + k * step for k in range(num + 1)]
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise UserError(
        f"{option.opts[0]} {text}",
        "START:STOP:STEP with a whole number of steps, or T,T,...",
        "for example 0:10:0.5, which has 21 times",
    )


def print_json(content: Any) -> None:
    """One JSON object on stdout."""
    from nfsgeo.training.artifacts import json_text

    click.echo(json_text(content))


def report(as_json: bool, content: Any, *lines: Any) -> None:
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
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    bar = Progress(
        "{task.description}",
        BarColumn(bar_width=None),
        "{task.completed:.0f}/{task.total}",
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        expand=True,
        transient=True,
    )
    task = bar.add_task("", visible=False)

    def update(what: str, done: int, total: int) -> None:
        if what != bar.tasks[0].description:
            # What was done before says nothing about the speed.
            bar.reset(task, total=total, description=what, visible=True)
        bar.update(task, completed=done, total=total)

    with bar:
        yield update


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose columns but the first are aligned to the right.

    Where it is too wide for the terminal, the first column is broken into lines.
    """
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column(heads[0], overflow="fold")
    for head in heads[1:]:
        made.add_column(head, justify="right", no_wrap=True)
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
    everything = scored.get("part") == "all"
    title, units = "errors" if everything else "test errors", summary.get("units")
    title = escape(f"{title} ({units})" if units else title)
    # Summaries of earlier versions have fewer of them.
    measures = [name for name in MEASURES if name in summary["test"]]
    made = table([title, *(MEASURES[name] for name in measures)], [])
    blocks = {"pooled*": ("", summary["test"], summary["baselines"])}
    for name, errors in components.items():
        label = escape(f"{name} ({errors['unit']})" if errors["unit"] else name)
        blocks[label] = f"std {errors['std']:.3g}", errors, errors["baselines"]
    for label, std, test, baselines in ((k, *block) for k, block in blocks.items()):
        if components:
            made.add_section()
            made.add_row(f"[bold]{label}[/]", std)
        methods = {summary["model"]: test} | baselines
        for name, errors in methods.items():
            if name == "mean":
                name = "mean of these samples" if everything else "training mean"
            cells = ["  " * bool(components) + name.replace("_", " ")]
            for measure in measures:
                # None or NaN of a component without any value in the test part.
                values = (of[measure] for of in methods.values())
                known = [v for v in values if v is not None and v == v]
                error = errors[measure]
                style = "bold" if known and error == min(known) else "none"
                cells.append(f"[{style}]{error:.3e}[/]" if error in known else "-")
            made.add_row(*cells)
    below = [f"* {summary['pooled']}"] if components else []
    return Group(made, *below, *([_scored(summary)] if scored else []))


def _scored(summary: Mapping[str, Any]) -> str:
    """How many samples and points the errors are over, in a sentence."""
    scored = summary["scored"]
    samples = _share(scored["samples"], scored["of_samples"])
    windows = f"{scored['windows']} windows of " if "windows" in scored else ""
    points = _share(scored["points"], scored["of_points"])
    text = f"Scored {windows}{samples} samples at {points} points each."
    if scored["tied"]:
        text += f" {summary['model']} is tied to the points of training."
    if scored["trained_on"]:
        text += f" The run was trained or validated on {scored['trained_on']} of them."
    return text


def _share(num: Any, whole: Any) -> str:
    """``4 of 20`` or ``all 20``, where both may be a smallest and a largest number."""
    num, whole = (
        " to ".join(map(str, each)) if isinstance(each, list) else each
        for each in (num, whole)
    )
    if whole is None:
        return f"{num}"
    return f"all {num}" if num == whole else f"{num} of {whole}"
