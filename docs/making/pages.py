"""What pages hold that is made when the site is built: tables, cards and formulas."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nfsgeo.data.io import FORMATS
from nfsgeo.data.writers import WRITERS
from nfsgeo.models import MODELS, PAPER_PARAMETERS
from nfsgeo.pretrained import FOLDER, NAMES

__all__ = [
    "formats_read",
    "formats_written",
    "mathml",
    "model_settings",
    "model_table",
    "on_page_markdown",
]


def on_page_markdown(markdown: str, **_: Any) -> str:
    r"""Fills in a page: ``<!-- name -->``, ``\( ... \)`` and ``$$ ... $$``."""
    for name, make in {
        "models": model_table,
        "settings": model_settings,
        "formats read": formats_read,
        "formats written": formats_written,
        "cards": _cards,
    }.items():
        if f"<!-- {name} -->" in markdown:
            markdown = markdown.replace(f"<!-- {name} -->", make())
    block = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
    markdown = block.sub(lambda found: mathml(found[1], block=True), markdown)
    return re.sub(r"\\\((.+?)\\\)", lambda found: mathml(found[1]), markdown)


def model_table() -> str:
    """One row a model: what it takes, how large the paper's is, where it is from."""
    heads = ["name", "any points", "other meshes than trained on", "paper", "source"]
    rows = []
    for name, model in MODELS.items():
        takes = model.points, model.unseen_meshes
        marks = ["yes" if each else "no" for each in takes]
        size = PAPER_PARAMETERS.get(name)
        count = "" if size is None else f"{size:,}"
        rows.append([f"`{name}`", *marks, count, model.source])
    return _table(heads, rows)


def model_settings() -> str:
    """A folded list a model: its settings and their defaults."""
    parts = []
    for name, model in MODELS.items():
        rows = [
            [
                f"`{key}`",
                f"`{field.default}`",
                f"`{model.paper[key]}`" if key in model.paper else "",
            ]
            for key, field in model.Settings.model_fields.items()
        ]
        table = _table(["setting", "default", "the paper's"], rows)
        parts.append(f'??? info "{name}"\n\n' + re.sub("^", "    ", table, flags=re.M))
    return "\n\n".join(parts)


def formats_read() -> str:
    """One row a format: what a file holds, and the options that decide the rest."""
    rows = [
        [
            each.name,
            _content(each.read),
            _code("--", sorted(each.options)),
            ", ".join(each.needs),
        ]
        for each in FORMATS
    ]
    return _table(["format", "content", "options", "packages"], rows)


def formats_written() -> str:
    """One row a format: the endings that choose it, and what it holds."""
    rows = [
        [
            each.name,
            _code("", each.endings),
            _content(each.write),
            ", ".join(each.needs),
        ]
        for each in WRITERS
    ]
    return _table(["format", "endings", "content", "packages"], rows)


def mathml(latex: str, block: bool = False) -> str:
    """A formula as MathML, within a line or as a block, which Markdown leaves alone."""
    from latex2mathml.converter import convert  # of the extra docs

    rows = " ".join(latex.split())
    if "&" in rows:
        rows = rf"\begin{{align}}{rows}\end{{align}}"
    made = convert(rows, display="block" if block else "inline")
    made = made.replace("*", "&#42;").replace("_", "&#95;").replace("\n", "")
    # At the start of a line, a bare <math> would be a paragraph of its own.
    return f'<div class="formula">{made}</div>' if block else f"<span>{made}</span>"


def _cards() -> str:
    cards = [(FOLDER / name / "card.md").read_text() for name in NAMES]
    return "\n".join(re.sub(r"^# ", "## ", card) for card in cards)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(before: str, names: Iterable[str]) -> str:
    return ", ".join(f"`{before}{name}`" for name in names)


def _content(function: Callable[..., Any]) -> str:
    """The first paragraph of its docstring, as Markdown in one line."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|")
