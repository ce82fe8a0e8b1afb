"""Advice before a training, from the data, and at its end, from the errors.

docs/choosing.md gives the reasons and figures of the advice.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nfsgeo.errors import columns_text, option, said
from nfsgeo_cli.settings import OPTIONS
from nfsgeo_cli.terminal import prose

if TYPE_CHECKING:
    from nfsgeo.config import RunConfig
    from nfsgeo.data import Fields
    from nfsgeo.training import Experiment, RunPaths

LATE, FALL = 0.25, 0.05  # last part of the epochs, and least fall of the error there
LEAST_EPOCHS = 3  # by which a fall is judged
GAP = 2.0  # validation loss over training loss, or unobserved error over observed
LONGER = 4  # times as many epochs
WIDTH = 80  # columns of a printed command

# Ends of the names of advised runs, which are not repeated.
OTHERS = ("dse", "nfs", "transolver")
SUFFIX = re.compile(rf"-(longer|smaller|denser|tuned|{'|'.join(OTHERS)})(-\d+)?$")
# Settings that belong to a model, and are left to another one.
OF_MODEL = ("model.", "optimiser.")


def hints(file: Fields, sample: int) -> list[str]:
    """Return advice on inputs, from the names and the mesh of a ``sample``."""
    from nfsgeo.data.boundary import boundary_kinds

    known = re.search("dist|sdf", " ".join(file.input_names).lower())
    if known or not file.own_meshes or file.domain.region is not None:
        return []
    text = "add distances to the boundary: "
    text = said(text + option("data.boundary_inputs", "true"))
    return [] if boundary_kinds(file, [sample]) is None else [text]


def next_steps(
    experiment: Experiment,
    paths: RunPaths,
    summary: Mapping[str, Any],
    given: Mapping[str, Any] | None,
) -> list[dict[str, str]]:
    """Return what to do next, each with a reason, ``why``, and a ``command``.

    Args:
        experiment: The experiment that trained the run.
        paths: The run.
        summary: Its ``summary.json``.
        given: Settings of the user by dotted key; None where they are in files.
    """
    from nfsgeo.models import MODELS
    from nfsgeo.training.trainer import read_history

    config, file, run = experiment.config, experiment.file, _nearby(paths.root)
    data, name, task = config.data, config.model.name, experiment.task
    source, model = _nearby(data.test_file or data.file or file.path), MODELS[name]
    code = [word for module in config.imports for word in ("--import", module)]
    target = f"{paths.root.resolve().name}-predicted.nc"
    words = ["--input", source, "--output", target, *code]
    words += ["--first", "0"] if file.forcing_names else []
    onwards = task.has_time and not file.forcing_names
    why = "Predict the time steps after the data" if onwards else "Predict the data"
    steps = [(why, [["predict", run, *words]])]
    num, most = summary["scored"]["points"], summary["scored"]["of_points"]
    if isinstance(num, int) and isinstance(most, int) and 2 * num <= most:
        new = most - len(experiment.used.trained_points(0))  # never seen in training
        if model.any_mesh and num <= new:
            why = "Evaluate on meshes with twice as many points"
            steps += [(why, [["evaluate", run, "--unseen", "2", *code]])]
    elif task.has_time and not data.lead_times:
        ahead = 2 * task.n_out
        if data.first_step + data.length(task.n_in + ahead) <= len(file.times):
            words = ["--steps", str(ahead), *code]
            why = "Evaluate twice as many time steps, by a rollout"
            steps += [(why, [["evaluate", run, *words]])]
    others = [m for m in OTHERS if m != name]
    other = next(m for m in others if MODELS[m].spheres or not file.domain.curved)
    if given is not None:
        bands, out = ["--bands"] * config.model.bands, _free(run, other)
        words = [*_options(given, OF_MODEL), *bands, *code, "--out", out]
        train = ["train", "--model", other, *words]
        why = f"Train {other} as well, and compare both"
        steps += [(why, [train, ["compare", run, out]])]
    again = ["train", "--config", _nearby(paths.config)]
    for why, change, suffix in remarks(read_history(paths.metrics), summary, config):
        words = [*code, "--out", _free(run, suffix)]
        command = [*again, *change, *words]
        if suffix == "tuned" and given is not None:
            models = ["--data", source, "--model", name, "--model", other]
            left_out = (*OF_MODEL, "trainer.epochs", "trainer.budget", "data.file")
            command = ["tune", *models, *_options(given, left_out), *words]
        steps += [(why, [command] if change or command[0] == "tune" else [])]
    return [
        {
            "why": why,
            "command": " && ".join(f"nfsgeo {shlex.join(c)}" for c in commands),
        }
        for why, commands in steps
    ]


def remarks(
    history: Sequence[Mapping[str, float]],
    summary: Mapping[str, Any],
    config: RunConfig,
) -> list[tuple[str, list[str], str]]:
    """Return what could be better, options of a further training, and its suffix.

    Args:
        history: Rows of ``metrics.csv``.
        summary: Content of ``summary.json``.
        config: The complete configuration.
    """
    suggestions: list[tuple[str, list[str], str]] = []
    if not history:
        return suggestions
    num, last = len(history), history[-1]
    late = max(LEAST_EPOCHS - 1, round(LATE * num))
    before = history[-1 - late]["valid_rmse"] if num > late else 0
    fall = 1 - last["valid_rmse"] / before if before else 0.0
    if last["valid_loss"] > GAP * last["train_loss"] > 0:
        times = last["valid_loss"] / last["train_loss"]
        why = f"The validation loss is {times:.2g} times the training loss. "
        why += "Add training samples, or try a smaller network"
        sizes = {key: config.model.settings.get(key) or 1 for key in ("depth", "width")}
        halves = [f"model.settings.{k}={n // 2}" for k, n in sizes.items() if n > 1]
        suggestions += [(why, ["--set", halves[0]] if halves else [], "smaller")]
    elif fall > FALL and not summary["stopped_early"]:
        epochs = LONGER * config.trainer.epochs
        minutes = max(1, round(epochs * summary["seconds_per_epoch"] / 60))
        why = f"The validation RMSE fell by {fall:.0%} after epoch {num - late}. "
        why += f"Train longer, for about {minutes} min"
        suggestions += [(why, ["--epochs", str(epochs)], "longer")]
    test, maes = summary["test"]["mae"], dict[str, float]()
    for name, errors in summary["baselines"].items():
        maes |= {name: errors["mae"]} if errors["mae"] <= test else {}
    if best := min(maes, key=lambda name: maes[name], default=""):
        why = f"The baseline {best.replace('_', ' ')} has a test MAE of "
        why += f"{maes[best]:.3g}, the model {test:.3g}. "
        why += "Use the baseline, or search for better settings"
        suggestions += [(why, [], "tuned")]
    away, data = summary.get("unobserved", {}).get("mae", 0), config.data
    most, drawn = summary["scored"]["of_points"], data.points
    alike = data.mesh == "random-subset" and not data.hold_out
    if drawn and alike and isinstance(most, int) and away > GAP * test > 0:
        why = f"At points that are not observed the MAE is {away / test:.2g} times as "
        why += "large. Observe more points"
        suggestions += [(why, ["--points", str(min(2 * drawn, most))], "denser")]
    return suggestions


def text_of(steps: Iterable[Mapping[str, str]]) -> list[str]:
    """Return lines that show the steps, with each command on a line of its own.

    Args:
        steps: Those of :func:`next_steps`.
    """
    lines = ["", "What to do next (docs/choosing.md says why):"]
    for step in steps:
        lines += [prose(step["why"] + (":" if step["command"] else "."))]
        for command in filter(None, step["command"].split(" && ")):
            lines += _folded(command)
    return lines


def _folded(command: str) -> list[str]:
    """Return lines of a command in 80 columns, longer only for a longer word."""
    first, *words = map(shlex.quote, shlex.split(command))
    lines = [f"  {first}"]
    for word in words:
        if len(lines[-1]) + len(word) + len("  \\") > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _options(given: Mapping[str, Any], left_out: tuple[str, ...]) -> list[str]:
    """Return the words of a command line that give these settings again."""
    words, names = list[str](), {key: name for name, key in OPTIONS.items()}
    for key, value in given.items():
        flag = f"--{names.get(key, '').replace('_', '-')}"
        if key.startswith(left_out):
            continue
        if key == "data.columns" and value and (text := columns_text(value)):
            words += ["--columns", text]
        elif key in names and isinstance(value, (str, int, float, Path)):
            words += [flag] if value is True else [flag, _nearby(value)]
        else:
            words += ["--set", f"{key}={json.dumps(value, default=str)}"]
    return words


def _nearby(value: object) -> str:
    """Return a value as text, a path below the current folder from there."""
    text, here = str(value), Path.cwd()
    below = os.path.isabs(text) and Path(text).is_relative_to(here)
    return str(Path(text).relative_to(here)) if below else text


def _free(run: str, suffix: str) -> str:
    """Return a folder that does not exist, of the name of a run with another suffix."""
    stem = f"{SUFFIX.sub('', run)}-{suffix}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if not Path(name).exists())
