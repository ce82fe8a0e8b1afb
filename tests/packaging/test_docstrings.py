"""Docstrings of everything public: arguments, errors, and for layers shapes and source.

Read from the sources, so that nothing needs to be imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Definition = ast.FunctionDef | ast.ClassDef

# Layers that come from no paper: what they are is all that can be said.
PLAIN = {
    "BaseInterpolation",
    "GridResampling",
    "InterpolationKernel",
    "Lift",
    "Points",
    "Pointwise",
    "RealPart",
    "Resampling",
    "SplitComplex",
}


@cache
def parsed(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    package = path / "__init__.py"
    return ast.parse(
        (package if package.exists() else path.with_suffix(".py")).read_text()
    )


def public_names(module: str) -> list[str]:
    for node in parsed(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


@cache
def definition(module: str, name: str) -> tuple[str, Definition] | None:
    """Where a name is defined, through the imports that lead there; None if a value."""
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "nfsgeo"
        ):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module or "", alias.name)
    return None


def modules() -> list[str]:
    paths = [p for p in (ROOT / "nfsgeo").rglob("*.py") if p.name != "__main__.py"]
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths]
    return sorted(name.removesuffix(".__init__") for name in names)


def public(among: list[str]) -> dict[str, Definition]:
    """What the ``__all__`` of some modules list, once, by where it is defined."""
    found = {}
    for module in among:
        for name in public_names(module):
            where = definition(module, name)
            if where is not None:
                found[f"{where[0]}.{where[1].name}"] = where[1]
    return found


PUBLIC = public(modules())
# What the site shows: this is what others call.
SHOWN = public(
    re.findall(
        r"^::: (\S+)$",
        "\n".join(p.read_text() for p in (ROOT / "docs/reference").glob("*.md")),
        re.MULTILINE,
    )
)
LAYERS = {
    name: node
    for name, node in SHOWN.items()
    if name.startswith("nfsgeo.nn.") and isinstance(node, ast.ClassDef)
}


def doc(node: Definition) -> str:
    return ast.get_docstring(node) or ""


def methods(node: Definition) -> Iterator[ast.FunctionDef]:
    if isinstance(node, ast.ClassDef):
        yield from (part for part in node.body if isinstance(part, ast.FunctionDef))


def arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return [name for name in names if name not in ("self", "cls") and name[0] != "_"]


def fields(node: ast.ClassDef) -> list[str]:
    """Public fields of a dataclass, a configuration or an abstract class."""
    annotated = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    # Tensors are buffers of modules, or states of metrics.
    names = [
        ast.unparse(part.target)
        for part in annotated
        if ast.unparse(part.annotation) != "Tensor"
    ]
    return [name for name in names if name[0] != "_" and name != "model_config"]


def inherited(node: ast.ClassDef) -> str:
    """Docstrings of the classes of ours that a class extends."""
    texts = []
    for base in node.bases:
        name = ast.unparse(base).split("[")[0].split(".")[-1]
        for known, other in PUBLIC.items():
            if known.endswith(f".{name}") and isinstance(other, ast.ClassDef):
                texts += [doc(other), inherited(other)]
                texts += [doc(method) for method in methods(other)]
    return "\n".join(texts)


def everything(node: Definition) -> str:
    """What a reader of the class, or of the function, is told."""
    texts = [doc(node), *(doc(method) for method in methods(node))]
    if isinstance(node, ast.ClassDef):
        texts.append(inherited(node))
    return "\n".join(texts)


def raised(node: Definition) -> set[str]:
    """Names of the exceptions that the public part of a definition raises itself."""
    bodies = [m for m in methods(node) if m.name[0] != "_" or m.name == "__init__"]
    names = set()
    for body in bodies or [node]:
        caught = {
            inner
            for part in ast.walk(body)
            if isinstance(part, ast.Try) and part.handlers
            for statement in part.body
            for inner in ast.walk(statement)
        }
        for part in ast.walk(body):
            if part in caught:
                continue
            if isinstance(part, ast.Raise) and isinstance(part.exc, ast.Call):
                name = ast.unparse(part.exc.func)
                if name[0].isupper():
                    names.add(name)
    return names


def unmentioned(names: list[str], text: str) -> list[str]:
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("module", modules())
def test_modules_have_docstrings(module: str) -> None:
    assert ast.get_docstring(parsed(module))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_everything_public_has_a_docstring(name: str) -> None:
    assert doc(PUBLIC[name])


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_arguments_are_told(name: str) -> None:
    node, text, wrong = SHOWN[name], everything(SHOWN[name]), {}
    if isinstance(node, ast.FunctionDef):
        wrong[name] = unmentioned(arguments(node), text)
    else:
        # What a framework calls has no docstring, and its arguments are not ours.
        for method in methods(node):
            shown = doc(method) and method.name[0] != "_"
            ours = shown or method.name in ("__init__", "__call__")
            # The only input of a layer is in the shapes.
            if ours and arguments(method) not in (["x"], ["h"]):
                wrong[method.name] = unmentioned(arguments(method), text)
    assert not {key: value for key, value in wrong.items() if value}


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_each_argument_has_an_entry_of_its_own(name: str) -> None:
    """The site's builder refuses an entry for several arguments."""
    node = SHOWN[name]
    for part in [node, *methods(node)]:
        for text in re.findall(r"^Args:\n((?:[ ].*\n?|\n)+)", doc(part), re.MULTILINE):
            entries = re.findall(r"^ {4}([^ :][^:]*):", text, re.MULTILINE)
            assert entries and not [entry for entry in entries if "," in entry]


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_fields_are_told(name: str) -> None:
    node = SHOWN[name]
    # Buffers of modules and states of metrics are annotated, and nobody else's matter.
    if isinstance(node, ast.ClassDef) and not re.search("nfsgeo.nn|metrics", name):
        assert not unmentioned(fields(node), everything(node))


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_errors_are_told(name: str) -> None:
    text = everything(SHOWN[name])
    named = "\n".join(re.findall(r"Raises:\n((?:\s+.*\n?)+)", text))
    assert not [error for error in raised(SHOWN[name]) if error not in named]


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layers_tell_shapes(name: str) -> None:
    assert re.search(r"``\[[^\]]+\]``", everything(LAYERS[name]))


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layers_name_their_source(name: str) -> None:
    # A title in quotes; the paper that all of this is about may be called just that.
    text = everything(LAYERS[name])
    told = re.search(r'"[A-Z][^"]{15,}"|\b[Pp]aper', text)
    assert bool(told) != (LAYERS[name].name in PLAIN)


def test_the_checks_can_fail() -> None:
    source = '''
def f(x, radius):
    """Takes x."""
    raise ValueError("no")
'''
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    assert unmentioned(arguments(node), everything(node)) == ["radius"]
    assert raised(node) == {"ValueError"}
