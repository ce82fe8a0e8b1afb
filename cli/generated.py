"""Options made of the arguments of a function, or of the settings of a run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click

from nfsgeo import errors

TYPES = {"int": int, "float": float, "path": Path}


def keys(names: str) -> dict[str, str]:
    """The argument or setting of each option, as :func:`generated` takes them."""
    pairs = (name.rpartition(":") for name in names.split())
    return {
        option if key else option.rpartition(".")[2]: key or option
        for key, _, option in pairs
    }


def generated(source: str, names: str, **kinds: Any) -> Callable[..., Any]:
    """Gives a command options with the types, docs and defaults of the library.

    They are read from the source, which takes long to import, when they are asked for.
    Those that are not given are not passed on: the defaults are those of the library.

    Args:
        source: The function or the configuration, as ``package.module.name``.
        names: Arguments, or dotted settings, separated by spaces; ``key:option`` where
            the option has another name.
        kinds: Types of some options, in place of those in the library.
    """

    def mark(command: Callable[..., Any]) -> Callable[..., Any]:
        vars(command)["generated"] = (source, names, kinds)
        return command

    return mark


class Command(click.Command):
    """A command that also has the options of :func:`generated`."""

    made: list[click.Option] = []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        marked = vars(self.callback).get("generated")
        if marked and not self.made:
            source, names, kinds = marked
            self.made = [
                _option(option, key, *facts(source, key), kinds.get(option))
                for option, key in keys(names).items()
            ]
            self.params[:0] = self.made
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        unset = [each.name for each in self.made if ctx.params[each.name] in (None, ())]
        ctx.params = {k: v for k, v in ctx.params.items() if k not in unset}
        return super().invoke(ctx)


def facts(source: str, key: str) -> tuple[list[Any], Any, str]:
    """Types, default and description of an argument, or of a setting."""
    module, _, name = source.rpartition(".")
    module, of = _defined(module, name)
    section, _, name = key.rpartition(".")
    if section:
        return facts(f"{module}.{ast.unparse(_annotated(of)[section][0])}", name)
    kind, value = _annotated(of)[name]
    if isinstance(value, ast.Call):  # of pydantic's Field
        value = next(each.value for each in value.keywords if each.arg == "default")
    text = _description(ast.get_docstring(of) or "", name)
    return _alternatives(module, kind), ast.literal_eval(value), text


@cache
def _definitions(module: str) -> dict[str, Any]:
    """The syntax of what a module of nfsgeo defines or imports, by name."""
    path = Path(errors.__file__).parents[1].joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found |= dict.fromkeys((each.name for each in node.names), node)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found[ast.unparse(node.targets[0])] = node.value
    return found


def _defined(module: str, name: str) -> tuple[str, Any]:
    """The module that defines a name of a module, and the syntax; None if not ours."""
    found = _definitions(module).get(name)
    if not isinstance(found, ast.ImportFrom):
        return module, found
    of = str(found.module)
    return _defined(of, name) if of.startswith("nfsgeo.") else (of, None)


def _annotated(of: Any) -> dict[str, tuple[Any, Any]]:
    """Type and default of the attributes of a class, or of arguments that have one."""
    if isinstance(of, ast.ClassDef):
        fields = (each for each in of.body if isinstance(each, ast.AnnAssign))
        return {ast.unparse(of.target): (of.annotation, of.value) for of in fields}
    names = reversed([*of.args.args, *of.args.kwonlyargs])
    values = reversed([*of.args.defaults, *of.args.kw_defaults])
    pairs = zip(names, values, strict=False)
    return {each.arg: (each.annotation, value) for each, value in pairs}


def _alternatives(module: str, kind: Any) -> list[Any]:
    """The types that an annotation names, without aliases and checks."""
    if isinstance(kind, ast.BinOp):
        return _alternatives(module, kind.left) + _alternatives(module, kind.right)
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "Annotated":
        return _alternatives(module, kind.slice.elts[0])  # type: ignore[attr-defined]
    if isinstance(kind, ast.Name):
        of, alias = _defined(module, kind.id)
        if isinstance(alias, ast.expr):
            return _alternatives(of, alias)
    return [kind]


def _description(docs: str, name: str) -> str:
    """The first sentence about a name in a docstring, without its markup."""
    found = re.search(rf"^ +{name}: (.+(?:\n {{8}}.+)*)", docs, re.M)
    assert found, f"{name} is not described"
    text = re.sub(r"\b(None for|when None)\b", "by default", " ".join(found[1].split()))
    text = re.sub(r", see :\w+:`[^`]+`", "", text)
    text = re.sub(r":\w+:`(?:~[\w.]*\.)?([^`]+)`", r"\1", text).replace("``", "")
    return text.partition(". ")[0].removesuffix(".")


def _option(
    option: str, key: str, kinds: list[Any], default: Any, text: str, chosen: Any
) -> click.Option:
    more: dict[str, Any] = {"default": None}
    first = ast.unparse(kinds[0])
    if chosen is not None:
        more["type"] = chosen
    elif first.startswith("Literal["):
        more["type"] = click.Choice(ast.literal_eval(kinds[0].slice))
    elif first == "bool":
        more["is_flag"] = True
    else:
        if isinstance(kinds[0], ast.Subscript):
            more["multiple"] = True
            kinds = getattr(kinds[0].slice, "elts", [kinds[0].slice])
        names = [re.sub("Positive|NonNegative", "", ast.unparse(k)) for k in kinds]
        plain = [TYPES[k.lower()] for k in names if k.lower() in TYPES]
        more["type"] = plain[0] if plain else str
    text += "; repeatable." if "multiple" in more else "."
    shown = "" if default in (None, (), []) else f"  [{default}]"
    name = option if "." in key else key
    return click.Option(
        [f"--{option.replace('_', '-')}", name], help=text + shown, **more
    )
