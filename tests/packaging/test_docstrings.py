"""Docstrings of everything public: errors, fields, for layers shapes and source.

Arguments are checked by ruff.
"""

import ast
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import nfsgeo

ROOT = Path(__file__).parents[2]
HERE = Path(nfsgeo.__file__).parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages(nfsgeo.__path__, "nfsgeo.")
    if not module.name.endswith("__main__")
]

# Layers that come from no paper: what they are is all that can be said.
PLAIN = {"GridResampling", "InterpolationKernel", "Lift", "Pointwise", "RealPart"}
PLAIN |= {"Resampling", "SplitComplex"}


def public(modules: list[str]) -> dict[str, Any]:
    """The classes and functions of ours that the ``__all__`` of modules list, once."""
    found = {}
    for module in map(import_module, modules):
        for name in getattr(module, "__all__", ()):
            each = getattr(module, name)
            ours = getattr(each, "__module__", "").startswith("nfsgeo")
            if ours and (inspect.isclass(each) or inspect.isfunction(each)):
                found[f"{each.__module__}.{each.__qualname__}"] = each
    return found


PUBLIC = public(MODULES)
PAGES = [page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")]
# What the site shows: this is what others call.
SHOWN = public(re.findall(r"^::: (\S+)$", "\n".join(PAGES), re.MULTILINE))
LAYERS = [n for n in SHOWN if n.startswith("nfsgeo.nn.") and inspect.isclass(SHOWN[n])]


def own(each: Any) -> str:
    """Its docstring, without that of a class it extends or that dataclasses make."""
    text = vars(each).get("__doc__") if inspect.isclass(each) else each.__doc__
    made = inspect.isclass(each) and (text or "").startswith(f"{each.__name__}(")
    return "" if made else inspect.cleandoc(text or "")


def functions(each: Any) -> Iterator[Any]:
    """A function, or the methods of a class that it has itself."""
    for part in vars(each).values() if inspect.isclass(each) else [each]:
        for inner in ("__func__", "fget", "func"):  # of methods and properties
            part = getattr(part, inner, part)
        part = inspect.unwrap(part) if callable(part) else part
        # Those of a dataclass and of PyTorch Geometric's propagation are made.
        if inspect.isfunction(part):
            file = Path(part.__code__.co_filename)
            if file.is_file() and file.is_relative_to(HERE):
                yield part


def everything(each: Any) -> str:
    """What a reader is told, also by the classes that a class extends."""
    classes = inspect.getmro(each) if inspect.isclass(each) else [each]
    ours = [one for one in classes if one.__module__.startswith("nfsgeo")]
    return "\n".join(
        text
        for one in ours
        for text in [own(one), *(inspect.getdoc(part) or "" for part in functions(one))]
    )


def unmentioned(names: list[str], text: str) -> list[str]:
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


def raised(function: Any) -> set[str]:
    """Names of the exceptions that a function raises itself and does not catch."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tries = [n for n in ast.walk(tree) if isinstance(n, ast.Try) and n.handlers]
    caught = {n for part in tries for line in part.body for n in ast.walk(line)}
    left = [n.exc for n in {*ast.walk(tree)} - caught if isinstance(n, ast.Raise)]
    names = [ast.unparse(each.func) for each in left if isinstance(each, ast.Call)]
    return {name for name in names if name[0].isupper()}


def test_modules_and_everything_public_have_docstrings():
    assert not [module for module in MODULES if not import_module(module).__doc__]
    assert not [name for name, each in PUBLIC.items() if not own(each)]


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_errors_and_fields_are_told(name):
    each, text = SHOWN[name], everything(SHOWN[name])
    named = "\n".join(re.findall(r"Raises:\n((?:\s+.*\n?)+)", text))
    for function in functions(each):
        hidden = function.__name__[0] == "_"
        if not hidden or function.__name__ == "__init__":
            assert not [error for error in raised(function) if error not in named]
    # Buffers of modules and states of metrics are annotated, and nobody else's matter.
    if inspect.isclass(each) and not re.search("nfsgeo.nn|metrics", name):
        kinds = vars(each).get("__annotations__", {})
        names = [n for n, kind in kinds.items() if n[0] != "_" and kind != "Tensor"]
        names = [name for name in names if name != "model_config"]
        assert not unmentioned(names, text)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layers_tell_shapes_and_their_source(name):
    text = everything(SHOWN[name])
    assert re.search(r"``\[[^\]]+\]``", text)
    # A title in quotes; the paper that all of this is about may be called just that.
    told = re.search(r'"[A-Z][^"]{15,}"|\b[Pp]aper', text)
    assert bool(told) != (SHOWN[name].__name__ in PLAIN)
