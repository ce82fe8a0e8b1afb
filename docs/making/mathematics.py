"""Formulas as MathML, which browsers draw without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

__all__ = ["display", "formulas", "inline"]


def inline(latex: str) -> str:
    """A formula within a line, as HTML that Markdown leaves alone."""
    # At the start of a line, a bare <math> would be a paragraph of its own.
    return f"<span>{_mathml(latex, 'inline')}</span>"


def display(latex: str) -> str:
    """A formula on lines of its own, as a block of HTML."""
    return f'<div class="formula">{_mathml(latex, "block")}</div>'


def formulas(markdown: str) -> str:
    r"""A page with its ``\( ... \)`` and ``$$ ... $$`` turned into MathML."""
    markdown = re.sub(
        r"^\$\$(.+?)\$\$$",
        lambda found: display(found[1]),
        markdown,
        flags=re.MULTILINE | re.DOTALL,
    )
    return re.sub(r"\\\((.+?)\\\)", lambda found: inline(found[1]), markdown)


def _mathml(latex: str, kind: str) -> str:
    rows = " ".join(latex.split())
    if "&" in rows:
        rows = rf"\begin{{align}}{rows}\end{{align}}"
    made = convert(rows, display=kind)
    return made.replace("*", "&#42;").replace("_", "&#95;").replace("\n", "")
