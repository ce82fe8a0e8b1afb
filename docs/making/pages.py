"""Generated parts of pages, and formulas and notebooks of the site.

``make pages`` writes the tables of models, settings and formats and the cards of
trained models into the pages, each between ``<!-- begin NAME -->`` and
``<!-- end NAME -->``. The site build calls the functions ``on_...``.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from nfsgeo.data.io import FORMATS
from nfsgeo.data.writers import WRITERS
from nfsgeo.models import MODELS, PAPER_PARAMETERS
from nfsgeo.pretrained import FOLDER, NAMES

__all__ = ["mathml", "on_files", "on_page_content", "on_page_markdown"]
__all__ += ["with_generated_parts"]

PAGES = Path(__file__).parents[1]
PART = re.compile(r"(<!-- begin ([\w ]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
# The output of pymdownx.arithmatex for $...$ and $$...$$.
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[\[(](.+?)\\[\])]</\1>', re.DOTALL
)


def with_generated_parts(markdown: str) -> str:
    """Return a page whose generated parts are current."""
    return PART.sub(
        lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", markdown
    )


def on_files(files: Any, config: Any) -> Any:
    """Replace each notebook by a page of its text, code and outputs."""
    from mkdocs.structure.files import File
    from nbconvert import MarkdownExporter

    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = PurePosixPath(notebook.src_uri)
        content, more = MarkdownExporter().from_filename(
            notebook.abs_src_path, {"unique_key": page.stem}
        )
        made = {page.with_suffix(".md").name: content, **more["outputs"]}
        files.remove(notebook)
        for name, part in made.items():
            uri = str(page.with_name(name))
            files.append(File.generated(config, uri, content=part))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Link to the pages that replace notebooks."""
    return markdown.replace(".ipynb)", ".md)")


def on_page_content(content: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML, when MkDocs has rendered it."""
    return FORMULA.sub(
        lambda formula: mathml(html.unescape(formula[2]), block=formula[1] == "div"),
        content,
    )


def model_table() -> str:
    """One row per model: the meshes it takes, the size of the paper's, its source."""
    heads = ["name", "any points", "unseen meshes", "parameters in the paper", "source"]
    rows = []
    for name, model in MODELS.items():
        takes = model.points, model.unseen_meshes
        marks = ["yes" if each else "no" for each in takes]
        size = PAPER_PARAMETERS.get(name)
        count = "" if size is None else f"{size:,}"
        rows.append([f"`{name}`", *marks, count, model.source])
    return _table(heads, rows)


def model_settings() -> str:
    """A folded table per model: its settings and their defaults."""
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
        summary = f'<details markdown="1">\n<summary>{name}</summary>'
        parts.append(f"{summary}\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


def formats_read() -> str:
    """One row per format: the content of a file, and the options for the rest."""
    rows = [
        [
            each.name,
            _content(each.read),
            _code("--", sorted(option.replace("_", "-") for option in each.options)),
            ", ".join(each.needs),
        ]
        for each in FORMATS
    ]
    return _table(["format", "content", "options", "packages"], rows)


def formats_written() -> str:
    """One row per format: the endings that choose it, and its content."""
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
    """The cards of the trained models, one section each."""
    cards = [(FOLDER / name / "card.md").read_text() for name in NAMES]
    return "\n\n".join(re.sub(r"^# ", "## ", card.strip()) for card in cards)


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


PARTS: dict[str, Callable[[], str]] = {
    "models": model_table,
    "settings": model_settings,
    "formats read": formats_read,
    "formats written": formats_written,
    "cards": _cards,
}

if __name__ == "__main__":
    for page in PAGES.rglob("*.md"):
        page.write_text(with_generated_parts(page.read_text("utf-8")), "utf-8")
