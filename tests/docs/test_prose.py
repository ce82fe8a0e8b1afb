"""Sentences of the documentation are short, and messages use standard terms."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS = 35
PAGES = [
    str(page.relative_to(ROOT))
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    if page.name != "CHANGELOG.md" and "making" not in page.parts
]

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# After an empty line; an indented line in a list continues the item.
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n+)+")
TAG = re.compile(r"<!--.*?-->|</?[a-z][^>]*>", re.DOTALL)
TABLE_OR_HEADING = re.compile(r"^ *(?:\||#|:::|\$\$).*$", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
CODE_OR_FORMULA = re.compile(r"`[^`]+`|\$[^$]+\$|\\\(.+?\\\)")
BLOCK = re.compile(r"\n\s*\n|^ *(?:[-*] |\d+\. |> )", re.MULTILINE)
END = re.compile(r"(?<![ie]\.[ge])(?<!cf)(?<! al)(?<!vs)[.!?][*_\")]*\s+")


def sentences(text: str) -> list[str]:
    """Returns the sentences of a page; an inline piece of code is one word."""
    for pattern in FENCED, TAG, TABLE_OR_HEADING:
        text = pattern.sub("\n", text)
    text = INDENTED.sub("\n", text)
    text = CODE_OR_FORMULA.sub("CODE", LINK.sub(r"\1", text))
    parts = (part for block in BLOCK.split(text) for part in END.split(block))
    return [" ".join(part.split()) for part in parts if part.strip()]


def words(sentence: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in sentence.split())


def test_what_counts_as_a_sentence():
    page = """\
# A heading

One sentence, e.g. with `some code in it`
over two lines. **Another.** A third [link
text](of/a/target.md) ends here:

- an item
  and its end

    code, indented

| a | table |
|---|---|

```sh
more code
```
"""
    assert [(part[:5], words(part)) for part in sentences(page)] == [
        ("One s", 8),
        ("**Ano", 1),
        ("A thi", 6),
        ("an it", 5),
    ]


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page):
    counts = {part: words(part) for part in sentences((ROOT / page).read_text())}
    long = [f"{n} words: {part}" for part, n in counts.items() if n > MOST_WORDS]
    assert not long, "\n".join([page, *long])


def literals(code: str) -> list[str]:
    """Returns the texts of a module, without its docstrings."""
    nodes = [*ast.walk(ast.parse(code))]
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = (node for node in nodes if isinstance(node, ast.Constant))
    return [
        node.value
        for node in texts
        if isinstance(node.value, str) and id(node) not in docs
    ]


def templates(code: str) -> list[str]:
    """Returns the fixed texts of the warnings that a module logs."""

    def fixed(node: ast.AST) -> str:
        parts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
        return "".join(filter(lambda part: isinstance(part, str), parts))

    found, tree = list[str](), ast.parse(code)
    for scope in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        texts: dict[str, str] = {}
        for node in (*tree.body, *ast.walk(scope)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                texts[node.targets[0].id] = fixed(node.value)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                texts[node.target.id] = texts.get(node.target.id, "") + fixed(node)
            if getattr(getattr(node, "func", None), "attr", "") == "warning":
                named = (getattr(n, "id", "") for n in ast.walk(node.args[0]))
                parts = (texts.get(name, "") for name in named)
                found.append(fixed(node.args[0]) + "".join(parts))
    return found


def test_warnings_are_short():
    """Without names of files and values; the wording is two sentences at most."""
    code = "A = 'a'\nA += 'b'\ndef f():\n  t = 'c'\n  logger.warning(t + A + 'd')"
    assert [*map(sorted, templates(code))] == [["a", "b", "c", "d"]]
    found = [
        text
        for p in (ROOT / "nfsgeo").rglob("*.py")
        for text in templates(p.read_text())
    ]
    assert len(found) > 30
    found = [re.sub(r"%\(\w+\)", "%", text) for text in found]
    assert not [text for text in found if len(text) > 150 or text.count(". ") > 1]


def test_messages_call_nothing_records():
    """They are time steps of a field, and elements of a structured array."""
    assert literals('"""records"""\nprint(f"{1} records of u")') == [" records of u"]
    for folder in ("nfsgeo", "cli"):
        for path in (ROOT / folder).rglob("*.py"):
            for text in literals(path.read_text()):
                assert not re.search(r"(?<!-)\brecords\b .| records\b", text), path
