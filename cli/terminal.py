"""Form, options and output that commands share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from nfsgeo.data import Fields

# Headings of the help and the options under them; all others come first.
GROUPS = {
    "How to read the files": {"at", "columns", "time_axis", "times", "series"},
    "Domain": {"axis", "sphere", "obstacles", "region"},
    "Unseen meshes": {"factors", "repeats", "unseen_at"},
    "Time steps": {"first", "steps", "lead_times"},
    "Where runs are carried out": {"jobs", "launcher", "slurm"},
    "General": {"device", "as_json"},
}


class GroupedCommand(click.Command):
    """A command whose help has a section for each group of its options."""

    groups: Mapping[str, set[str]] = GROUPS

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        rows: dict[str, list[Any]] = {head: [] for head in ("Options", *self.groups)}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                heads = (h for h, names in self.groups.items() if option.name in names)
                head = "General" if option.is_eager else next(heads, "Options")
                record = option.get_help_record(ctx)
                rows[head] += [record] if record else []
        for head, records in rows.items():
            if records:
                with formatter.section(head):
                    formatter.write_dl(records)


def verb(
    function: Callable[..., Any], kind: type[click.Command] = GroupedCommand
) -> click.Command:
    """Make a command with ``--json``; its docstring is the help, with examples."""
    function.__doc__, *examples = (inspect.getdoc(function) or "").partition("Example")
    command = click.command(cls=kind, epilog="\b\n" + "".join(examples))(function)
    text = "Print one JSON object and nothing else."
    command.params.append(click.Option(["--json", "as_json"], is_flag=True, help=text))
    text = "A file or module with models, equations or losses of your own; repeatable."
    command.params.append(
        click.Option(
            ["--import", "imports"],
            metavar="FILE.py|MODULE",
            multiple=True,
            is_eager=True,
            expose_value=False,
            callback=_import,
            help=text,
        )
    )
    return command


def _import(_: click.Context, option: click.Parameter, names: Sequence[str]) -> None:
    if names:
        from nfsgeo.plugins import import_code

        import_code(names)


def option(names: str, kind: Any, text: str, **more: Any) -> Callable[..., Any]:
    """Make an option of click.

    Args:
        names: Its names, separated by spaces.
        kind: A type, ``bool`` for a flag, or a list of choices.
        text: The help.
        more: Further arguments of :func:`click.option`.
    """
    kinds = {"type": click.Choice(kind) if isinstance(kind, list) else kind}
    more |= {"is_flag": True} if kind is bool else kinds
    if isinstance(kind, click.IntRange | click.FloatRange):
        more["metavar"] = kind.name.partition(" ")[0].upper()
    return click.option(*names.split(), help=text, show_default=True, **more)


class Text(click.ParamType):
    """A text of a given form, which a function of the option and the text reads."""

    def __init__(self, form: str, read: Callable[[str, str], Any]) -> None:
        self.name, self.read = form, read

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return self.name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return self.read(f"{param.opts[0]} {value}", value)


def _times(given: str, text: str) -> list[float]:
    """Read times such as ``0,0.3,1``, or ``0:10:0.5`` with both ends."""
    try:
        if ":" not in text:
            return [float(time) for time in text.split(",")]
        start, stop, step = map(float, text.split(":"))
        num = round((stop - start) / step)
        if 0 <= num < 10**7 and abs(start + num * step - stop) <= 1e-6 * abs(step):
            return [start + k * step for k in range(num + 1)]
    except (ValueError, ArithmeticError):
        pass
    expected = "START:STOP:STEP with a whole number of steps, or T,T,..."
    raise UserError(given, expected, "for example 0:10:0.5, which has 21 times")


def _columns(given: str, text: str) -> dict[str, Any]:
    """``time=date,field=u,field=v`` as ``{"time": "date", "field": ["u", "v"]}``."""
    from nfsgeo.data.conventions import KINDS, MASK

    several = (*KINDS, MASK, "missing")
    columns: dict[str, Any] = {}
    for part in text.split(","):
        role, equals, name = (text.strip() for text in part.partition("="))
        if not equals or (role in columns and role not in several):
            expected = "ROLE=NAME,... with each role once"
            raise UserError(given, expected, "for example time=date,x=lon,y=lat")
        columns[role] = [*columns.get(role, ()), name] if role in several else name
    return columns


def _time_axis(given: str, text: str) -> int | str | None:
    """``none``, ``ask``, or the number of an axis."""
    if text in ("none", "ask"):
        return None if text == "none" else text
    if text.lstrip("-").isdigit():
        return int(text)
    raise UserError(given, "the number of an axis, or none", "for example 1")


TIME_AXIS = Text("AXIS|none", _time_axis)
TIMES = Text("START:STOP:STEP|T,T,...", _times)
COLUMNS = Text("ROLE=NAME,...", _columns)
REPEATED_COLUMNS: dict[str, Any] = {
    "multiple": True,
    "metavar": COLUMNS.name,
    "callback": lambda ctx, option, texts: (
        COLUMNS.convert(",".join(texts), option, ctx) if texts else None
    ),
}
DEVICE = option(
    "--device", ["auto", "cpu", "cuda"], "Where to compute; by default as in training."
)


def opening_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that :func:`nfsgeo.data.open` takes as arguments."""
    for added in (
        option(
            "--at",
            ["points", "cells"],
            "Whether to read fields at the points or in the cells of a mesh; needed "
            "if it has both.",
        ),
        option(
            "--columns",
            str,
            "Roles of columns of a table, arrays of a mesh, or variables of NetCDF or "
            "Zarr whose names do not tell them: sample, time, x, y, z, static, field, "
            "ignore, quantity, station, points, missing or mask; docs/formats.md "
            "explains them; repeatable.",
            **REPEATED_COLUMNS,
        ),
        option(
            "--time-axis",
            TIME_AXIS,
            "Number of the time axis of x, y and forcing in graphs of PyTorch "
            "Geometric, from 0, or none; needed if the times t do not tell it.",
            default="ask",
        ),
        option(
            "--times", TIMES, "Times of the time steps, instead of those in the files."
        ),
        option(
            "--series",
            ["samples", "time-steps"],
            "Whether several files, or several graphs of one file, are samples or time "
            "steps of one sample; needed if each holds one time step on the same "
            "points.",
        ),
    ):
        command = added(command)
    return command


def options_of(command: click.Command) -> dict[str, str]:
    """Return the options of a command by the names of their arguments."""
    params = command.get_params(click.Context(command))
    options = (param for param in params if isinstance(param, click.Option))
    return {str(option.name): option.opts[0] for option in options}


def opened(sources: Sequence[Path], options: Mapping[str, Any]) -> Fields | None:
    """Open files, or a folder of them; return None for the folder of a run."""
    import nfsgeo.data
    from nfsgeo.data.io.opening import is_source

    if ((folder := sources[0]) / "config.yaml").is_file():
        beside = [str(source) for source in sources[1:]]
        beside += [
            f"--{k.replace('_', '-')}"
            for k, v in options.items()
            if v not in (None, "ask")
        ]
        if beside:
            what = f"{', '.join(beside)} beside the run {folder}"
            raise UserError(what, "a run alone", "leave them out, or the run")
        return None
    try:
        return nfsgeo.data.open(sources, **options)
    except UserError as error:
        if is_source(folder) or not folder.is_dir():
            raise
        given = f"{folder}, which is not a run folder, with {error.given}"
        raise UserError(given, error.expected, error.todo) from None


def report(as_json: bool, content: Any, *lines: str) -> None:
    """Print JSON, or else lines of text, on stdout."""
    if as_json:
        from nfsgeo.training.artifacts import json_text

        lines = (json_text(content),)
    click.echo("\n".join(lines))


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows a description, the number done, and the total.

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


def table(head: str, frame: pd.DataFrame) -> str:
    """Format a table in 80 columns, with ``head`` above the names of its rows."""
    shown = {"float_format": "{:.3e}".format, "na_rep": "-", "line_width": 80}
    return str(frame.rename_axis(index=None, columns=head).to_string(**shown))


def listing(facts: Mapping[str, Any]) -> str:
    """Format facts as YAML, without empty ones, and numbers with four digits.

    Texts have quotation marks only where a list needs them.
    """
    import yaml

    class Plain(yaml.SafeDumper):
        yaml_implicit_resolvers: dict[str, Any] = {}

        def analyze_scalar(self, scalar: str) -> Any:
            analysis = super().analyze_scalar(scalar)
            if scalar and scalar.isprintable():
                analysis.allow_block_plain = True
                analysis.allow_flow_plain |= not {*scalar} & {*",[]{}"}
            return analysis

    def shortened(fact: Any) -> Any:
        if isinstance(fact, Mapping):
            items = ((name, shortened(value)) for name, value in fact.items())
            return {k: value for k, value in items if value not in (None, "", [], {})}
        if isinstance(fact, list):
            return [shortened(value) for value in fact]
        if isinstance(fact, bool):
            return str(fact).lower()
        if isinstance(fact, float):
            return repr(float(f"{fact:.4g}")).removesuffix(".0")
        return "" if fact is None else str(fact)

    # Lines of YAML may be a third longer than its width.
    form: dict[str, Any] = {"default_flow_style": None, "width": 3 * _width() // 4}
    form |= {"sort_keys": False, "allow_unicode": True, "Dumper": Plain}
    text = str(yaml.dump(shortened(facts), **form))
    return text.rstrip()


def error_table(summary: Mapping[str, Any]) -> str:
    """Format the errors of the model and of the baselines.

    Each of several components has a table of its own, after that of the pooled errors.
    A sentence below says how many samples and points the errors are over.
    """
    from nfsgeo.report.tables import band_table, error_tables, worse_than_mean

    worse = worse_than_mean(summary)
    everything, unit = summary.get("scored", {}).get("part") == "all", ""
    if summary.get("units"):
        unit = f" ({summary['units']})"
    elif summary.get("components"):
        unit = ", pooled*"
    tables = [
        (title + f", {remark}" * bool(remark), errors.drop(worse, errors="ignore"))
        for title, remark, errors in error_tables(summary)
    ]
    tables[0] = f"{'errors' if everything else 'test errors'}{unit}", tables[0][1]
    if bands := summary.get("bands"):
        title = f"error bands of level {bands['level']:g}"
        title += ", in standard deviations" if "*" in unit else unit
        tables.append((title, band_table(summary)))
    mean = "mean of these samples" if everything else "training mean"
    parts = []
    for title, errors in tables:
        named = errors.rename(str.lower).rename({"training mean": mean})
        parts.append(f"{title}\n{table('', named)}\n")
    parts += [prose(f"* {summary['pooled']}")] if "*" in unit else []
    if worse:
        where = "summary.json has" if "fingerprint" in summary else "--json prints"
        how = "baselines have larger MAEs" if worse[1:] else "baseline has a larger MAE"
        them = "them" if worse[1:] else "it"
        parts += [prose(f"{len(worse)} {how} than the {mean}; {where} {them}.")]
    parts += [prose(_scored(summary))] if "scored" in summary else []
    return "\n".join(parts)


def prose(text: str, indent: int = 0) -> str:
    """Wrap a text at the terminal's width, at most 80 columns; indent further lines."""
    return fill(text, _width(), subsequent_indent=" " * indent)


def _width() -> int:
    return min(80, get_terminal_size().columns)


def _scored(summary: Mapping[str, Any]) -> str:
    """Say in a sentence how many samples and points the errors are over."""
    scored = summary["scored"]

    def share(kind: str) -> str:
        num, whole = (
            " to ".join(map(str, count)) if isinstance(count, list) else count
            for count in (scored[kind], scored[f"of_{kind}"])
        )
        if whole is None:
            return f"{num}"
        return f"all {num}" if num == whole else f"{num} of {whole}"

    windows = f"{scored['windows']} windows of " if "windows" in scored else ""
    samples = (
        "the series" if scored["of_samples"] == 1 else f"{share('samples')} samples"
    )
    text = f"Scored {windows}{samples} at {share('points')} points each."
    if scored["tied"]:
        text += f" {summary['model']} is tied to the points of training."
    if scored.get("data_of_run") and scored["part"] == "test":
        text += " The file holds the data of the run: this is the run's test part."
    if num := scored["trained_on"]:
        them = "it" if scored["of_samples"] == 1 else f"{num} of them"
        text += f" The run was trained or validated on {them}."
    return text
