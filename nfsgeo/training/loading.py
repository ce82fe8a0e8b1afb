"""Configurations from YAML files and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.setting_errors import explained
from nfsgeo.training.config import RunConfig
from nfsgeo.training.presets import paper_preset
from nfsgeo.training.run_paths import find_run

__all__ = ["load_config", "parse_settings", "read_config", "read_yaml"]


def load_config(
    file: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> RunConfig:
    """Defaults, under a preset, under a YAML file, under single values.

    Args:
        file: YAML file with some of the keys of :class:`RunConfig`.
        overrides: Values by dotted key, ``{"trainer.epochs": 3}``.

    Raises:
        UserError: A key or a value is wrong; names the nearest key that exists.
    """
    given = {} if file is None else read_yaml(file)
    for key, value in (overrides or {}).items():
        _put(given, key, value)
    model = given.get("model")
    if isinstance(model, dict) and (start := model.get("start_from")):
        theirs = _model_of(Path(str(start)))
        if model.get("name", theirs["name"]) == theirs["name"]:
            given = _merged({"model": theirs}, given)
            model = given["model"]
    name = model.get("name", "nfs") if isinstance(model, dict) else "nfs"
    if given.get("preset") == "paper":
        given = _merged(paper_preset(str(name)), given)
    known = _leaves(RunConfig)
    if str(name) in MODELS:
        known += [f"model.settings.{key}" for key in MODELS[name].config.model_fields]
    with explained(known=known):
        return RunConfig.model_validate(given)


def read_config(file: Path) -> RunConfig:
    """A resolved configuration from ``file``, as :func:`begin_run` saved it.

    Raises:
        UserError: It is missing or wrong.
    """
    given = read_yaml(file)
    with explained(str(file), _leaves(RunConfig)):
        return RunConfig.model_validate(given)


def parse_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """``["a.b=1", ...]`` as ``{"a.b": 1}``; values are YAML.

    Args:
        settings: What was given.
        option: What it was given as, for the message.

    Raises:
        UserError: A setting has no ``=`` or its value is not YAML.
    """
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        try:
            if not (equals and key):
                raise ValueError("no key or no equals sign")
            parsed[key] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            raise UserError(
                f"{option} {setting}", "KEY=VALUE", "put one = between the two"
            ) from None
    return parsed


def _model_of(run: Path) -> dict[str, Any]:
    """The model of a run to start from, as far as others need not choose it."""
    model = read_config(find_run(run).config).model.model_dump(mode="json")
    return {key: model[key] for key in ("name", "settings", "prediction")}


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        UserError: There is no such file, or it holds something else.
    """
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}", "an existing file", "check the name") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file} ({reason})", "a YAML file", "correct it") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{file}", "keys and values", "see config.yaml of any run")
    return content


def _put(content: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        inner = content.get(section)
        content[section] = dict(inner) if isinstance(inner, dict) else {}
        content = content[section]
    content[last] = value


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merged(below, value)
        merged[key] = value
    return merged


def _leaves(section: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all keys."""
    keys: list[str] = []
    for name, info in section.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += _leaves(kind, f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys
