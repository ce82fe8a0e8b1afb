"""Options of `nfsgeo train` that are settings of a run."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click

from nfsgeo_cli.terminal import REPEATED_COLUMNS, GroupedCommand

# Settings that have options; all others are set by --set.
SETTINGS = (
    *("model.name", "model.start_from", "model.freeze", "data.file", "data.columns"),
    "data.graph",
    *("data.test_file", "data.points", "data.mesh", "data.grid", "data.hold_out"),
    *("data.n_in", "data.n_out", "data.window_stride", "trainer.epochs"),
    "trainer.budget",
    *("data.batch_size", "optimiser.lr", "model.bands", "seed", "preset"),
    *("trainer.device", "trainer.devices", "trainer.precision", "data.workers"),
)
RENAMED = {"name": "model", "file": "data", "hold_out": "hold_out_stations"}
# The setting of each option.
OPTIONS = {
    RENAMED.get(name, name): key for key in SETTINGS for name in [key.split(".")[-1]]
}

# Options of training that are settings of other sections.
OF_TRAINING = {"batch_size", "workers", "seed", "preset"}
SECTIONS = {"data": "Data", "model": "Model"}


class Name(click.Choice):
    """One of many names, which the shell completes and the help does not list."""

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "NAME"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value  # perhaps of a plugin; the settings are checked as a whole


class SettingsCommand(GroupedCommand):
    """A command that also has the options :data:`OPTIONS`, unless they are its own.

    They are made when they are asked for: importing the settings takes 0.1 seconds.
    """

    groups = {head: set[str]() for head in ("Search", "Data", "Model", "Training")}
    for name, key in OPTIONS.items():
        is_training = name in OF_TRAINING
        head = "" if is_training else SECTIONS.get(key.partition(".")[0], "")
        groups[head or "Training"].add(name)
    groups |= {
        "Search": {"trials", "space", "jobs"},
        "Other settings": {"config", "set"},
        "Run folder": {"out", "resume"},
        "General": {"as_json"},
    }

    @cached_property
    def settings(self) -> list[click.Parameter]:
        """The options that are settings."""
        from nfsgeo.config import MESH_NAMES, MODEL_NAMES

        names = {"model": Name(MODEL_NAMES), "mesh": Name(MESH_NAMES)}
        kinds: dict[str, dict[str, Any]] = {k: {"type": v} for k, v in names.items()}
        kinds["columns"] = REPEATED_COLUMNS
        return [_option(name, key, kinds.get(name)) for name, key in OPTIONS.items()]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*{param.name: param for param in [*self.settings, *params]}.values()]


def _option(name: str, key: str, kind: dict[str, Any] | None) -> click.Option:
    """The option of a setting: its type and default, and the first sentence on it."""
    from nfsgeo.config import RunConfig

    section, _, last = key.rpartition(".")
    owner: Any = RunConfig.model_fields[section].annotation if section else RunConfig
    setting = owner.model_fields[last]
    plain = _plain_type(setting.annotation)
    more = dict(kind or {"type": plain})
    if get_origin(plain) is Literal:
        more["type"] = click.Choice(get_args(plain))
    elif get_origin(plain) is tuple:
        more |= {"type": get_args(plain)[0], "multiple": True}
    elif plain is bool:
        more = {"is_flag": True}
    text = _first_sentence(inspect.getdoc(owner) or "", last)
    text += "; repeatable." if "multiple" in more else "."
    default = setting.get_default(call_default_factory=True)
    if default is not None and default != () and plain is not bool:
        text += f"  [default: {default}]"
    flag = f"--{name.replace('_', '-')}"
    return click.Option([flag, name], default=None, help=text, **more)


def _plain_type(annotation: Any) -> Any:
    """The type that a setting has where it is neither None nor further constrained."""
    if get_origin(annotation) in (Union, UnionType):
        return _plain_type(get_args(annotation)[0])
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    return annotation


def _first_sentence(docs: str, name: str) -> str:
    """The first sentence about an attribute in a docstring, without its markup."""
    match = re.search(rf"^ +{name}: (.+(?:\n {{8}}.+)*)", docs, re.M)
    assert match, f"{name} is not described"
    text = re.sub(r"\bNone for\b", "by default", " ".join(match[1].split()))
    text = re.sub(r", see :\w+:`[^`]+`", "", text)
    text = re.sub(r":\w+:`(?:~[\w.]*\.)?([^`]+)`", r"\1", text).replace("``", "")
    return text.partition(". ")[0].removesuffix(".")
