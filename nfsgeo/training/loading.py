"""Configurations from presets, YAML files and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.config import RunConfig
from nfsgeo.config.bounded_yaml import LONGEST, parse_yaml
from nfsgeo.config.errors import explained, unknown
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.plugins import imported, load_plugins
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.run_paths import find_run

__all__ = ["load_config", "paper_learning_rate", "parse_settings", "read_config"]
__all__ += ["read_yaml"]

ADAM = {"name": "adam", "betas": [0.9, 0.98], "eps": 1e-9}
ADAM_OF_MPPDE = {"name": "adamw", "lr": 1e-4, "betas": [0.9, 0.999], "eps": 1e-8}
STEPS = {"schedule": "step", "step_epochs": 100, "step_factor": 0.5}

# Dotted names of all keys, except for the settings of models.
KEYS = [
    f"{section}.{key}".rstrip(".")
    for section, info in RunConfig.model_fields.items()
    for key in getattr(info.annotation, "model_fields", [""])
]


def load_config(
    file: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> RunConfig:
    """Load a configuration from defaults, a preset, a YAML file and single values.

    Each of these takes precedence over the one before.

    Args:
        file: The YAML file, if any.
        overrides: Single values by dotted key, ``{"trainer.epochs": 3}``.

    Raises:
        UserError: A key or a value is wrong; the message has the nearest key.
    """
    load_plugins()
    settings = {} if file is None else read_yaml(file)
    settings["imports"] = imported() or settings.get("imports", ())
    file_model: Any = settings.get("model")
    for key, value in (overrides or {}).items():
        section = RunConfig.model_fields.get(key)
        names = [*getattr(section and section.annotation, "model_fields", ())]
        if names and not isinstance(value, Mapping):
            todo = f"did you mean {key}.{names[0]}?"
            raise UserError(f"{key}={value!r}", "a section of settings", todo)
        for name in reversed(key.split(".")):
            value = {name: value}
        settings = merged(settings, value)
    model = settings.get("model")
    model = model if isinstance(model, dict) else {}
    if start := model.get("start_from"):
        other = read_config(find_run(Path(str(start))).config).model
        if model.get("name", other.name) == other.name:
            # Inherit only settings that do not depend on the data.
            shared = other.model_dump(include={"name", "settings", "prediction"})
            model = merged(shared, model)
            settings = settings | {"model": model}
    name = str(model.get("name", "nfs"))
    in_file = file_model.get("name", name) if isinstance(file_model, dict) else name
    if in_file != name and file_model.get("settings"):
        what = f"model {name} with the settings of {in_file} in {file}"
        todo = f"take them out of the file, or train {in_file}"
        raise UserError(what, f"settings of {name}", todo)
    if settings.get("preset") == "paper":
        preset = _paper_preset(name)
        trainer = settings.get("trainer")
        if isinstance(trainer, dict) and "budget" in trainer:
            preset["trainer"].pop("epochs")
        settings = merged(preset, settings)
    fields = MODELS[name].Settings.model_fields if name in MODELS else ()
    with explained(keys=[*KEYS, *(f"model.settings.{key}" for key in fields)]):
        config = RunConfig.model_validate(settings)
    return _checked(config)


def read_config(file: Path) -> RunConfig:
    """Read the complete configuration of a run.

    Args:
        file: The ``config.yaml`` of the run folder.

    Raises:
        UserError: There is none, or it is wrong or cut off.
    """
    load_plugins()
    settings = read_yaml(file)
    sections = RunConfig.model_fields.keys() - {"imports"}  # none in earlier runs
    if lost := ", ".join(sections - settings.keys()):
        todo = "put back the config.yaml that the run had"
        raise UserError(f"{file} without {lost}", "all settings of a run", todo)
    with explained(str(file), KEYS):
        config = RunConfig.model_validate(settings)
    return _checked(config)


def _checked(config: RunConfig) -> RunConfig:
    """Check names, and complete the settings of the model."""
    for key, name, names in (
        ("model ", config.model.name, MODELS),
        ("data.mesh=", config.data.mesh or "all", MESH_KINDS),
        ("loss.name=", config.loss.name, LOSSES),
    ):
        if name not in names and config.imports:
            named = " ".join(f"--import {module}" for module in config.imports)
            given = f"{key}{name}, of a run that was made with {named}"
            files = [module for module in config.imports if module.endswith(".py")]
            todo = f"give {named}, or import it in Python"
            if gone := [module for module in files if not Path(module).is_file()]:
                todo = f"{', '.join(gone)} is gone; give --import with its new place"
            raise UserError(given, "that code", todo)
        if name not in names:
            few = "a known model" if names is MODELS else f"one of {', '.join(names)}"
            raise unknown(f"{key}{name}", few, name, names)
    kind = MODELS[config.model.name].Settings
    keys = [f"model.settings.{key}" for key in kind.model_fields]
    with explained("model.settings", keys):
        checked = kind.model_validate(config.model.settings)
    settings = checked.model_dump(mode="json")
    return config.changed(model=config.model.changed(settings=settings))


def parse_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Parse settings of the command line, whose values are YAML.

    Args:
        settings: Settings such as ``["a.b=1"]``.
        option: Name of the option, for messages.

    Returns:
        Values by dotted key, ``{"a.b": 1}``.

    Raises:
        UserError: A setting has no ``=`` or its value is not YAML.
    """
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        try:
            parsed[key] = parse_yaml(value)
        except ValueError:
            key = ""
        if not (equals and key):
            raise UserError(
                f"{option} {setting}", "KEY=VALUE", "put one = between the two"
            )
    return parsed


def _paper_preset(model: str) -> dict[str, Any]:
    """Return the training protocol of the paper, for MPPDE that of its authors."""
    settings = dict(MODELS[model].paper) if model in MODELS else {}
    adam = ADAM_OF_MPPDE if model == "mppde" else ADAM
    return {
        "data": {
            "batch_size": 4,
            "point_sets": 1,
            "query_points": 0,
            "least_fraction": 1.0,
        },
        "model": {"prediction": "direct", "settings": settings},
        "loss": {"name": "mse", "weighting": "uniform"},
        "optimiser": adam | STEPS | {"gradient_clip": 5.0},
        "trainer": {"epochs": 500, "patience": 100},
    }


def paper_learning_rate(model: str, equation: str) -> float:
    """Return the initial learning rate of the paper.

    It is 5e-4 on Burgers and KdV, except for graph models, and 1e-3 otherwise.

    Args:
        model: Name of the model.
        equation: Name of the equation of the data.
    """
    slow = equation in ("burgers", "kdv") and not MODELS[model].autoregressive
    return 5e-4 if slow else 1e-3


def read_yaml(file: Path) -> dict[str, Any]:
    """Read the mapping in a YAML file; an empty file gives an empty one.

    Args:
        file: The file.

    Raises:
        UserError: There is no such file, it is no YAML, or it holds no mapping.
    """
    if not file.is_file():
        raise UserError(f"{file}", "an existing file", "check the name")
    try:
        with file.open(encoding="utf-8") as stream:
            content = parse_yaml(stream.read(LONGEST + 1))
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file} ({reason})", "a YAML file", "correct it") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{file}", "keys and values", "see config.yaml of any run")
    return content


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested mappings.

    Args:
        under: A mapping.
        over: Another, whose values take precedence.
    """
    made = dict(under)
    for key, value in over.items():
        below = made.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merged(below, value)
        made[key] = value
    return made
