"""Generated parts of pages, and formulas and notebooks of the site.

``make pages`` writes the tables of models, settings, formats and errors and the cards
of trained models into the pages, each between ``<!-- begin NAME -->`` and
``<!-- end NAME -->``. The site build calls the functions ``on_...``.
"""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from nfsgeo.data.io import ARRAYS, FORMATS
from nfsgeo.data.writers import WRITERS
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, PAPER_PARAMETERS, Model, Problem
from nfsgeo.pretrained import FOLDER, NAMES

# MkDocs and the tests load this file by its path.
sys.path.append(str(Path(__file__).parent))
from error_tables import PARTS as ERRORS  # noqa: E402
from error_tables import markdown_table  # noqa: E402

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
    return markdown_table(heads, rows)


def _defaults(model: type[Model]) -> dict[str, str]:
    """Defaults of the settings of a model, for problems in time where they differ."""
    completed = {
        f"{dim}-D": model.Settings().completed(
            Problem(Domain.unit(dim), num_points=1024)
        )
        for dim in (1, 2)
    }
    texts = {}
    for key in model.Settings.model_fields:
        values = {title: getattr(s, key) for title, s in completed.items()}
        if len({*values.values()}) == 1:
            texts[key] = f"`{values['1-D']}`"
        else:
            texts[key] = ", ".join(f"`{v}` ({title})" for title, v in values.items())
    return texts


def model_settings() -> str:
    """A folded table per model: its settings and their defaults."""
    parts = []
    for name, model in MODELS.items():
        defaults = _defaults(model)
        rows = [
            [
                f"`{key}`",
                defaults[key],
                f"`{model.paper[key]}`" if key in model.paper else "",
            ]
            for key in model.Settings.model_fields
        ]
        table = markdown_table(["setting", "default", "preset `paper`"], rows)
        summary = f'<details markdown="1">\n<summary>{name}</summary>'
        parts.append(f"{summary}\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


# Options of readers where files do not tell.
ANSWERS = ("at", "columns", "time_axis", "times")


def formats_read() -> str:
    """One row per format: the content of a file, and the options of its reader."""
    rows = []
    for each in (*FORMATS, ARRAYS):
        options = [n.replace("_", "-") for n in ANSWERS if n in each.options]
        content = _content(each.read).removeprefix("Read ")
        content = content[:1].upper() + content[1:]
        needs = ", ".join(each.needs)
        rows.append([each.name, content, _code("--", options), needs])
    return markdown_table(["format", "what is read", "options", "packages"], rows)


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
    return markdown_table(["format", "endings", "content", "packages"], rows)


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
    **ERRORS,
}

if __name__ == "__main__":
    for page in (PAGES.parent / "README.md", *PAGES.rglob("*.md")):
        page.write_text(with_generated_parts(page.read_text("utf-8")), "utf-8")
