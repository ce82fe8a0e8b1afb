"""Whether a file holds what a trained model takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfsgeo.data import FieldFile
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.training import Forecaster

__all__ = ["check_fields", "check_times"]


def check_fields(forecaster: Forecaster, file: FieldFile) -> None:
    """Makes sure that a file holds the kind of fields that a model was trained on.

    Raises:
        UserError: A static input is missing or superfluous, or the components or the
            domain are others.
    """
    problem = forecaster.description["problem"]
    trained = problem["out_components"]
    _check_static(forecaster, file)
    if problem["has_time"] and file.components != trained:
        names = ", ".join(file.component_names)
        raise UserError(
            f"{file.path} with {_components(file.components)} ({names})",
            f"{_components(trained)}, as in training",
            "use data of the kind that the model was trained on",
        )
    if file.domain.to_dict() != problem["domain"]:
        raise UserError(
            f"{file.path} on {_box(file.domain.to_dict())}",
            f"{_box(problem['domain'])}, as in training",
            "use data on that domain, or set it: nfsgeo convert FILE --out NEW.h5 "
            f"{_axes(problem['domain'])}",
        )


def check_times(forecaster: Forecaster, windows: WindowDataset) -> None:
    """Makes sure that the time steps of a file are those of training.

    Raises:
        UserError: They are longer or shorter.
    """
    found = np.diff(windows[0].times.numpy())
    usual = np.diff(np.array(forecaster.description["times"]))
    if not np.allclose(found, usual, rtol=1e-3, atol=0):
        raise UserError(
            f"{windows.file.path} with time steps of {found.mean():g}",
            f"time steps of {usual.mean():g}, as in training",
            "use data with the same time steps",
        )


def _check_static(forecaster: Forecaster, file: FieldFile) -> None:
    problem, model = forecaster.description["problem"], forecaster.description["model"]
    fields = problem["out_components"] if problem["has_time"] else 0
    trained = problem["in_components"] - fields
    found = file.static_components if file.static_role == "coefficient" else 0
    if found == trained:
        return
    if not found:
        other = f", only an {file.static_role}" if file.static_role else ""
        raise UserError(
            f"{file.path} without a static input{other}",
            f"the coefficient that {model} was trained with, {_components(trained)}",
            "add it to the file as the training data had it",
        )
    names = ", ".join(file.static_names)
    given = f"{file.path} with a static input of {_components(found)} ({names})"
    if not trained:
        raise UserError(
            given, f"none, as {model} was trained", "leave it out of the file"
        )
    raise UserError(
        given,
        f"{_components(trained)}, as {model} was trained with",
        "use the coefficient of the training data",
    )


def _components(number: int) -> str:
    return f"{number} component{'s' * (number != 1)}"


def _box(domain: dict[str, Any]) -> str:
    """A domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain["lower"], domain["upper"], strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    periodic = [
        name for name, wraps in zip("xyz", domain["periodic"], strict=False) if wraps
    ]
    return f"{text}, " + (
        f"periodic along {', '.join(periodic)}" if periodic else "not periodic"
    )


def _axes(domain: dict[str, Any]) -> str:
    """The options that give `nfsgeo convert` a domain, to the last digit."""
    axes = zip(domain["lower"], domain["upper"], domain["periodic"], strict=True)
    return " ".join(
        f"--axis {low!r}:{high!r}{':periodic' * wraps}" for low, high, wraps in axes
    )
