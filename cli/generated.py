"""Options made of the arguments of a function, or of the settings of a run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click


def keys(names: str) -> dict[str, str]:
    """The argument or setting of each option, as :func:`generated` takes them."""
    pairs = (name.rpartition(":") for name in names.split())
    return {
        option if key else option.rpartition(".")[2]: key or option
        for key, _, option in pairs
    }


def generated(source: str, names: str, **kinds: Any) -> Callable[..., Any]:
    """Gives a command options with the types, docs and defaults of the library.

    They are made when they are asked for, since their source takes long to import.
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
        if marked := vars(self.callback).pop("generated", None):
            source, names, kinds = marked
            module, _, name = source.rpartition(".")
            of = getattr(import_module(module), name)
            self.made = [
                _option(option, key, *_facts(of, key), kinds.get(option))
                for option, key in keys(names).items()
            ]
            self.params[:0] = self.made
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        unset = [each.name for each in self.made if ctx.params[each.name] in (None, ())]
        ctx.params = {k: v for k, v in ctx.params.items() if k not in unset}
        return super().invoke(ctx)


def _facts(of: Any, key: str) -> tuple[Any, Any, str]:
    """Type, default and description of an argument, or of a setting."""
    section, _, name = key.rpartition(".")
    if not hasattr(of, "model_fields"):
        default = inspect.signature(of).parameters[name].default
        return get_type_hints(of)[name], default, _description(of, name)
    of = of.model_fields[section].annotation if section else of
    field = of.model_fields[name]
    return field.annotation, field.default, _description(of, name)


def _description(of: Any, name: str) -> str:
    """The first sentence about a name in a docstring, without its markup."""
    found = re.search(
        rf"^ +{name}: (.+(?:\n {{8}}.+)*)", inspect.getdoc(of) or "", re.M
    )
    assert found, f"{name} is not described"
    text = re.sub(r"\b(None for|when None)\b", "by default", " ".join(found[1].split()))
    text = re.sub(r", see :\w+:`[^`]+`", "", text)
    text = re.sub(r":\w+:`(?:~[\w.]*\.)?([^`]+)`", r"\1", text).replace("``", "")
    return text.partition(". ")[0].removesuffix(".")


def _option(
    option: str, key: str, kind: Any, default: Any, text: str, chosen: Any
) -> click.Option:
    more: dict[str, Any] = {"default": None}
    union = get_origin(kind) in (Union, UnionType)
    kinds = [of for of in get_args(kind) if of is not NoneType] if union else [kind]
    if get_origin(kinds[0]) is Annotated:
        kinds = [kinds[0].__origin__]
    if chosen is not None:
        more["type"] = chosen
    elif get_origin(kinds[0]) is Literal:
        more["type"] = click.Choice(get_args(kinds[0]))
    elif kinds[0] is bool:
        more["is_flag"] = True
    elif get_origin(kinds[0]) is not None:
        more |= {"type": get_args(kinds[0])[0], "multiple": True}
    else:
        plain = [each for each in kinds if each in (int, float, Path)]
        more["type"] = plain[0] if plain else str
    text += "; repeatable." if "multiple" in more else "."
    shown = "" if default in (None, (), []) else f"  [{default}]"
    name = option if "." in key else key
    return click.Option(
        [f"--{option.replace('_', '-')}", name], help=text + shown, **more
    )
