"""Configurations from presets, YAML files and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from nfsgeo.config import RunConfig
from nfsgeo.config.errors import explained, unknown
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.run_paths import find_run

__all__ = ["load_config", "paper_learning_rate", "parse_settings", "read_config"]
__all__ += ["read_yaml"]

ADAM = {"name": "adam", "lr": None, "betas": [0.9, 0.98], "eps": 1e-9}
ADAM_OF_MPPDE = {"name": "adamw", "lr": 1e-4, "betas": [0.9, 0.999], "eps": 1e-8}
STEPS = {"schedule": "step", "step_epochs": 100, "step_factor": 0.5}

# Dotted names of all keys, but for the settings of models.
KEYS = [
    f"{section}.{key}".rstrip(".")
    for section, info in RunConfig.model_fields.items()
    for key in getattr(info.annotation, "model_fields", [""])
]


def load_config(
    file: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> RunConfig:
    """Defaults, under a preset, under a YAML ``file``, under single values.

    These ``overrides`` are by dotted key, ``{"trainer.epochs": 3}``.

    Raises:
        UserError: A key or a value is wrong; names the nearest key that exists.
    """
    given = {} if file is None else read_yaml(file)
    of_file: Any = given.get("model")
    for key, value in (overrides or {}).items():
        for name in reversed(key.split(".")):
            value = {name: value}
        given = merged(given, value)
    model = given.get("model")
    model = model if isinstance(model, dict) else {}
    if start := model.get("start_from"):
        theirs = read_config(find_run(Path(str(start))).config).model
        if model.get("name", theirs.name) == theirs.name:
            # As far as others need not choose it.
            shared = theirs.model_dump(include={"name", "settings", "prediction"})
            model = merged(shared, model)
            given = given | {"model": model}
    name = str(model.get("name", "nfs"))
    other = of_file.get("name", name) if isinstance(of_file, dict) else name
    if other != name and of_file.get("settings"):
        what = f"model {name} with the settings of {other} in {file}"
        todo = f"take them out of the file, or train {other}"
        raise UserError(what, f"settings of {name}", todo)
    if given.get("preset") == "paper":
        given = merged(_paper_preset(name), given)
    fields = MODELS[name].Settings.model_fields if name in MODELS else ()
    with explained(known=[*KEYS, *(f"model.settings.{key}" for key in fields)]):
        config = RunConfig.model_validate(given)
    return _checked(config)


def read_config(file: Path) -> RunConfig:
    """A resolved configuration from ``file``, as :func:`begin_run` saved it.

    Raises:
        UserError: There is none, or it is wrong or cut off.
    """
    given = read_yaml(file)
    if lost := ", ".join(RunConfig.model_fields.keys() - given.keys()):
        todo = "put back the config.yaml that the run had"
        raise UserError(f"{file} without {lost}", "all settings of a run", todo)
    with explained(str(file), KEYS):
        config = RunConfig.model_validate(given)
    return _checked(config)


def _checked(config: RunConfig) -> RunConfig:
    """With known names alone, and all settings of the model."""
    for key, name, names in (
        ("model ", config.model.name, MODELS),
        ("data.mesh=", config.data.mesh or "all", MESH_KINDS),
        ("loss.name=", config.loss.name, LOSSES),
    ):
        if name not in names:
            few = "a known model" if names is MODELS else f"one of {', '.join(names)}"
            raise unknown(f"{key}{name}", few, name, names)
    kind = MODELS[config.model.name].Settings
    known = [f"model.settings.{key}" for key in kind.model_fields]
    with explained("model.settings", known):
        checked = kind.model_validate(config.model.settings)
    settings = checked.model_dump(mode="json")
    return config.changed(model=config.model.changed(settings=settings))


def parse_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """The ``settings`` ``["a.b=1", ...]`` of an ``option``, ``{"a.b": 1}``, by YAML.

    Raises:
        UserError: A setting has no ``=`` or its value is not YAML.
    """
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        try:
            parsed[key] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            key = ""
        if not (equals and key):
            raise UserError(
                f"{option} {setting}", "KEY=VALUE", "put one = between the two"
            )
    return parsed


def _paper_preset(model: str) -> dict[str, Any]:
    """How the paper trains a model; MPPDE as its authors train it: AdamW at 1e-4."""
    own = dict(MODELS[model].paper) if model in MODELS else {}
    adam = ADAM_OF_MPPDE if model == "mppde" else ADAM
    return {
        "data": {"batch_size": 4, "point_sets": 1, "query_points": 0},
        "model": {"prediction": "direct", "settings": own},
        "loss": {"name": "mse", "weighting": "uniform"},
        "optimiser": adam | STEPS | {"gradient_clip": 5.0},
        "trainer": {"epochs": 500, "patience": 100},
    }


def paper_learning_rate(model: str, equation: str) -> float:
    """The paper's first rate: 5e-4 on Burgers and KdV but for graph models, else 1e-3.

    Of a ``model`` on data of an ``equation``.
    """
    slow = equation in ("burgers", "kdv") and not MODELS[model].autoregressive
    return 5e-4 if slow else 1e-3


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file, empty where there is nothing in it."""
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


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of both, at all depths, and the values of ``over`` where it has them."""
    made = dict(under)
    for key, value in over.items():
        below = made.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merged(below, value)
        made[key] = value
    return made
