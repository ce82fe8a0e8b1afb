"""Docstrings, written in reStructuredText, as the Markdown that the site is made of."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from griffe import AliasResolutionError, Extension, NameResolutionError, Object

sys.path.insert(0, str(Path(__file__).parent))
from pages import mathml  # noqa: E402

__all__ = ["Markdown"]

ROLE = re.compile(r":(?:class|func|meth|attr|mod|data|exc):`(~?)([\w.]+)`")
MATH = re.compile(r":math:`([^`]+)`")
DISPLAY = re.compile(r"^( *)\.\. math::(.*\n(?:\1 +\S.*\n|[ ]*\n(?=\1 +\S))*)", re.M)
EXAMPLE = re.compile(r"^( *)>>> .*\n(?:\1(?:>>>|\.\.\.).*\n)*", re.M)
TABLE = re.compile(r"^(=+(?: +=+)+)\n(?:((?:.*\n)+?)\1\n)?((?:.*\n)+?)\1$", re.M)


class Markdown(Extension):
    """Turns roles into links, formulas into MathML, and tables into tables."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Translate one docstring."""
        if obj.docstring is None:
            return
        text = obj.docstring.value + "\n"
        text = TABLE.sub(lambda m: _table(obj, m), text)
        text = EXAMPLE.sub(lambda m: f"{m[1]}```pycon\n{m[0]}{m[1]}```\n", text)
        text = DISPLAY.sub(lambda m: f"{m[1]}{mathml(m[2], block=True)}\n", text)
        text = MATH.sub(lambda m: mathml(m[1]), text)
        text = ROLE.sub(lambda m: _link(obj, m[2], bool(m[1])), text)
        text = re.sub(r"^(.*\S)::\n", r"\1:\n", text, flags=re.M)
        obj.docstring.value = text.rstrip()


def _link(obj: Object, name: str, short: bool) -> str:
    """A link to an object, plain code where the site does not have it."""
    shown = name.rsplit(".", 1)[-1] if short else name
    try:
        target = obj.resolve(name)
    except (NameResolutionError, AliasResolutionError):
        target = name
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'


def _table(obj: Object, found: re.Match[str]) -> str:
    """A table whose columns lie under rules, as rows between bars, names as links."""
    columns = [m.span() for m in re.finditer("=+", found[1])]
    starts = [start for start, _ in columns]
    ends = [*starts[1:], None]
    first = found[2] or ""

    def cells(line: str) -> list[str]:
        name, *others = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        parts = [
            _link(obj, n, True) if n in obj.members else n for n in name.split(", ")
        ]
        return [", ".join(parts), *others]

    lines = [cells(first) if first.strip() else [""] * len(starts)]
    lines += [["---"] * len(starts)]
    lines += [cells(line) for line in found[3].splitlines() if line.strip()]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
