"""Tables on stdout, progress on stderr, options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from nfsgeo.errors import UserError
from nfsgeo.measures import MEASURES

MOST_TIMES = 10**7
BAND_SCORES = ("coverage", "width", "crps", "interval_score")
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
    try:
        if text is None or ":" not in text:
            return text and [float(time) for time in text.split(",")]
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


def columns(context: Any, option: Any, text: str | None) -> Any:
    """The ``callback`` of an option with columns: ``time=date,field=u,field=v`` as
    ``{"time": "date", "field": ["u", "v"]}``.
    """
    if text is None:
        return None
    from nfsgeo.data.formats.columns import KINDS

    found: dict[str, Any] = {}
    for part in text.split(","):
        role, equals, name = (each.strip() for each in part.partition("="))
        if not equals:
            todo = "for example time=date,x=lon,y=lat"
            raise UserError(f"--columns {text}", "ROLE=NAME,...", todo)
        if role in found and role not in KINDS:
            raise UserError(f"--columns {text}", f"{role}= once", "leave one out")
        found[role] = [*found.get(role, ()), name] if role in KINDS else name
    return found


def report(as_json: bool, content: Any, *lines: str) -> None:
    """One JSON object on stdout, or else text."""
    if as_json:
        from nfsgeo.training.artifacts import json_text

        click.echo(json_text(content))
    else:
        show(*lines)


def show(*lines: str) -> None:
    """Text on stdout, at most as wide as the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A function that shows progress: a description, the number done, and the total.

    It draws a bar with the remaining time on stderr, one task after the other, and
    nothing where stderr is no terminal.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = *Progress.get_default_columns(), MofNCompleteColumn()
    hidden, console = not sys.stderr.isatty(), Console(stderr=True)
    bar = Progress(*columns, console=console, disable=hidden, transient=True)
    task = bar.add_task("", visible=False)

    def update(what: str, done: int, total: int) -> None:
        if what != bar.tasks[0].description:
            # What was done before says nothing about the speed.
            bar.reset(task, total=total, description=what, visible=True)
        bar.update(task, completed=done, total=total)

    with bar:
        yield update


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text whose columns but the first are aligned to the right."""
    import pandas as pd

    found = pd.DataFrame(rows, columns=heads).set_index(heads[0])
    found = found.rename_axis(index=None, columns=heads[0])
    return "  ".join(heads) if found.empty else str(found.to_string(line_width=80))


def numbers(head: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A table of numbers by row and column."""
    import pandas as pd

    found = pd.DataFrame(rows).T.astype(float).rename_axis(columns=head)
    shown = {"float_format": "{:.3e}".format, "na_rep": "-", "line_width": 80}
    return str(found.to_string(**shown))


def listing(facts: Mapping[str, Any]) -> str:
    """Facts by name as YAML, without those that are empty; four digits of a number."""
    import yaml

    def told(fact: Any) -> Any:
        if isinstance(fact, Mapping):
            each = ((name, told(of)) for name, of in fact.items())
            return {name: of for name, of in each if of not in (None, "", [], {})}
        if isinstance(fact, list):
            return [told(each) for each in fact]
        return float(f"{fact:.4g}") if isinstance(fact, float) else fact

    form: dict[str, Any] = {"default_flow_style": None, "width": 60}
    text = yaml.safe_dump(told(facts), sort_keys=False, allow_unicode=True, **form)
    return text.rstrip()


def error_table(summary: Mapping[str, Any]) -> str:
    """Errors of the model and of the baselines.

    Each of several components has a table of its own, after that of the pooled errors.
    A sentence below says how many samples and points the errors are over.
    """
    scored, components = summary.get("scored", {}), summary.get("components", {})
    everything, unit = scored.get("part") == "all", summary.get("units")
    mean = "mean of these samples" if everything else "training mean"

    def errors(title: str, test: Any, baselines: Any) -> str:
        methods = {summary["model"]: test, **baselines}
        # Summaries of earlier versions have fewer of them.
        measures = [name for name in MEASURES if name in test]
        rows = {
            mean if name == "mean" else name.replace("_", " "): {
                MEASURES[measure]: each[measure] for measure in measures
            }
            for name, each in methods.items()
        }
        return f"{title}\n{numbers('', rows)}\n"

    whole = f" ({unit})" if unit else ", pooled*" if components else ""
    title = f"{'errors' if everything else 'test errors'}{whole}"
    parts = [errors(title, summary["test"], summary["baselines"])]
    for name, each in components.items():
        unit = f" ({each['unit']})" if each["unit"] else ""
        title = f"{name}{unit}, std {each['std']:.3g}"
        parts.append(errors(title, each, each["baselines"]))
    if away := summary.get("unobserved"):
        title = f"at the {away['num_points']} points that are not observed{whole}"
        parts.append(errors(title, away, away.get("baselines", {})))
    if bands := summary.get("bands"):
        of = {summary["model"]: bands, **bands}
        rows = {
            name: {each.replace("_", " "): of[name][each] for each in BAND_SCORES}
            for name in (summary["model"], "constant", "persistence")
            if name in of
        }
        parts.append(f"error bands of level {bands['level']:g}\n{numbers('', rows)}\n")
    parts += [f"* {summary['pooled']}"] if components else []
    return "\n".join([*parts, *([_scored(summary)] if scored else [])])


def _scored(summary: Mapping[str, Any]) -> str:
    """How many samples and points the errors are over, in a sentence."""
    scored = summary["scored"]

    def share(of: str) -> str:
        num, whole = (
            " to ".join(map(str, each)) if isinstance(each, list) else each
            for each in (scored[of], scored[f"of_{of}"])
        )
        if whole is None:
            return f"{num}"
        return f"all {num}" if num == whole else f"{num} of {whole}"

    windows = f"{scored['windows']} windows of " if "windows" in scored else ""
    samples, points = share("samples"), share("points")
    of = f"{windows}{samples} samples" if samples != "all 1" else windows or "1 sample "
    text = f"Scored {of.removesuffix(' of ').strip()} at {points} points each."
    if scored["tied"]:
        text += f" {summary['model']} is tied to the points of training."
    if scored["trained_on"]:
        them = "it" if scored["of_samples"] == 1 else f"{scored['trained_on']} of them"
        text += f" The run was trained or validated on {them}."
    return text
