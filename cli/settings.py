"""Options of `nfsgeo train`, made from the fields of a run's configuration.

Types, defaults and descriptions are read from the source of
:mod:`nfsgeo.training.config`, which takes milliseconds; its import takes seconds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from nfsgeo import version

CONFIG = Path(version.__file__).parent / "training" / "config.py"
# What options set in the configuration; --set sets what has none.
KEYS = {
    "model": "model.name",
    "start_from": "model.start_from",
    "freeze": "model.freeze",
    "data": "data.file",
    "test_file": "data.test_file",
    "points": "data.points",
    "mesh": "data.mesh",
    "grid": "data.grid",
    "n_in": "data.n_in",
    "n_out": "data.n_out",
    "window_stride": "data.window_stride",
    "epochs": "trainer.epochs",
    "batch_size": "data.batch_size",
    "lr": "optimiser.lr",
    "seed": "seed",
    "preset": "preset",
    "device": "trainer.device",
    "devices": "trainer.devices",
    "precision": "trainer.precision",
    "workers": "data.workers",
}
OTHER_NAMES = {"data": ["--train-file"]}


class Setting(NamedTuple):
    """A field: its annotation, its default, and what the docstring says about it."""

    kind: str
    default: Any
    text: str

    def type(self) -> Any:
        """The type of its option."""
        if self.kind.startswith("Literal"):
            return click.Choice(re.findall("'(.*?)'", self.kind))
        kinds = {"Path": Path, "Int": int, "Float": float}
        return next((of for name, of in kinds.items() if name in self.kind), str)

    def help(self) -> str:
        """The description without markup; a default of None is said in words."""
        text = re.sub(r", see :\w+:`.*?`", "", self.text)
        text = re.sub(r":\w+:`~?(.*?)`", r"\1", text).replace("``", "")
        if self.default not in (None, ()):
            text = re.sub(r"; None for [^.;]*", "", text)
            return f"{text}  [{self.default}]"
        text = re.sub(r"(^|\. )None( for)?", r"\1By default", text)
        return text.replace("None for", "by default")


class WithSettings(click.Command):
    """A command with an option for each of :data:`KEYS` before its own.

    They are made when the command is used: other commands need not wait for them.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if self.params[0].name not in KEYS:
            self.params[:0] = _options()
        return super().get_params(ctx)


def _options() -> Iterator[click.Option]:
    module = ast.parse(CONFIG.read_text(encoding="utf-8"))
    classes = {
        part.name: part for part in module.body if isinstance(part, ast.ClassDef)
    }
    settings = dict(_settings(classes, "RunConfig"))
    for name, key in KEYS.items():
        names = [name, f"--{name.replace('_', '-')}", *OTHER_NAMES.get(name, [])]
        of, several = settings[key], settings[key].kind.startswith("tuple")
        yield click.Option(names, type=of.type(), help=of.help(), multiple=several)


def _settings(
    classes: dict[str, ast.ClassDef], name: str, prefix: str = ""
) -> Iterator[tuple[str, Setting]]:
    """The fields of a class and of its sections, each with its dotted name."""
    entries = re.findall(
        r"^ {4}(\w[\w, ]*): (.+(?:\n {8}.+)*)",
        ast.get_docstring(classes[name]) or "",
        re.MULTILINE,
    )
    texts = {n: " ".join(t.split()) for names, t in entries for n in names.split(", ")}
    for part in classes[name].body:
        if isinstance(part, ast.AnnAssign):
            field, kind = ast.unparse(part.target), ast.unparse(part.annotation)
            if kind in classes:
                yield from _settings(classes, kind, f"{prefix}{field}.")
                continue
            default = part.value
            if isinstance(default, ast.Call):  # Field(default=...)
                default = {each.arg: each.value for each in default.keywords}["default"]
            assert default is not None
            setting = Setting(kind, ast.literal_eval(default), texts[field])
            yield f"{prefix}{field}", setting
