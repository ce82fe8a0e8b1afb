"""Tables of the formats in and out, from the readers and writers themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from nfsgeo.data.formats import FORMATS

__all__ = ["formats_read", "formats_written"]


def formats_read() -> str:
    """One row a format: what a file holds, and the options that decide the rest."""
    rows = ["| format | content | options | packages |", "|---|---|---|---|"]
    for each in FORMATS:
        if each.read is not None:
            options = [f"`--{name}`" for name in each.options]
            cells = [each.name, _content(each.read), ", ".join(options)]
            rows.append(f"| {' | '.join(cells)} | {', '.join(each.needs)} |")
    return "\n".join(rows)


def formats_written() -> str:
    """One row a format: the endings that choose it, and what it holds."""
    rows = ["| format | endings | content | packages |", "|---|---|---|---|"]
    for each in FORMATS:
        if each.write is not None:
            endings = ", ".join(f"`{ending}`" for ending in each.endings)
            cells = [each.name, endings, _content(each.write)]
            rows.append(f"| {' | '.join(cells)} | {', '.join(each.needs)} |")
    return "\n".join(rows)


def _content(function: Callable[..., Any]) -> str:
    """The first paragraph of its docstring, as Markdown in one line."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|")
