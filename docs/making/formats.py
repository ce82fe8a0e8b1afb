"""Tables of the formats in and out, from the readers and writers themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from nfsgeo.data.readers import ARRAYS, READERS
from nfsgeo.data.writers import WRITERS

__all__ = ["formats_read", "formats_written"]


def formats_read() -> str:
    """One row a format: what a file holds, and the options that decide the rest."""
    rows = ["| format | content | options | packages |", "|---|---|---|---|"]
    for reader in (*READERS, ARRAYS):
        options = [f"`--{name}`" for name in reader.options]
        cells = [reader.name, _content(reader.load), ", ".join(options)]
        rows.append(f"| {' | '.join(cells)} | {_packages(reader.needs)} |")
    return "\n".join(rows)


def formats_written() -> str:
    """One row a format: the endings that choose it, and what it holds."""
    rows = ["| format | endings | content | packages |", "|---|---|---|---|"]
    for writer in WRITERS:
        endings = ", ".join(f"`{ending}`" for ending in writer.endings)
        cells = [writer.name, endings, _content(writer.write)]
        rows.append(f"| {' | '.join(cells)} | {_packages(writer.needs)} |")
    return "\n".join(rows)


def _content(function: Callable[..., Any]) -> str:
    """The first paragraph of its docstring, as Markdown in one line."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|")


def _packages(names: Sequence[str]) -> str:
    return ", ".join(names)
