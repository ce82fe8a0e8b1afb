"""A trained model from its run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS, Problem, build_model
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.config import RunConfig
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import Forecaster
from nfsgeo.training.run_paths import RunPaths

__all__ = ["check_model", "check_weights", "restore"]


def restore(paths: RunPaths, config: RunConfig) -> Forecaster:
    """The forecaster with the best weights, on the CPU, ready to predict.

    The data are not needed: a checkpoint knows the problem that it was trained for.

    Args:
        paths: The run's folder.
        config: Its configuration.

    Raises:
        UserError: There is no checkpoint yet, or it is of another model.
    """
    checkpoint = read_checkpoint(paths.best)
    asked = {
        "model": config.model.name,
        "settings": config.model.settings,
        "prediction": config.model.prediction,
    }
    description = check_model(checkpoint, asked, paths.best)
    problem = Problem.from_dict(description["problem"])
    scales = {
        name: FieldNormaliser(
            checkpoint["state_dict"][f"{name}.mean"],
            checkpoint["state_dict"][f"{name}.std"],
        )
        for name in ("inputs", "outputs", *["forcings"] * bool(problem.forcings))
    }
    with torch.random.fork_rng(devices=[]):
        model = build_model(description["model"], problem, description["settings"])
    residual = config.model.is_residual(problem)
    fitted = checkpoint["state_dict"].get("covariance.fitted")
    covariance = None
    if residual and fitted is not None:
        expected = checkpoint["state_dict"]["covariance.expected"]
        domain = problem.domain.normalised
        covariance = StationaryCovariance(domain, fitted, expected)
    forecaster = Forecaster(
        model,
        scales["inputs"],
        scales["outputs"],
        config.optimiser,
        description,
        loss=LOSSES[config.loss.name],
        residual=residual,
        covariance=covariance,
        missing=description.get("missing", False),
        forcings=scales.get("forcings"),
        boundary=description.get("boundary", False),
    )
    check_weights(checkpoint, forecaster, paths.best)
    forecaster.load_state_dict(checkpoint["state_dict"])
    return forecaster.eval()


def check_model(
    checkpoint: dict[str, Any], asked: dict[str, Any], path: Path
) -> dict[str, Any]:
    """The description that a checkpoint carries, if it agrees with what is asked.

    Args:
        checkpoint: As loaded.
        asked: The keys of the description that must agree.
        path: Where the checkpoint came from, for the message.

    Raises:
        UserError: It is of another model, or of none of ours.
    """
    found = checkpoint.get("nfsgeo", {})
    known = found | {"settings": _completed(found)}
    wrong = [key for key, value in asked.items() if known.get(key) != value]
    if wrong:
        raise UserError(
            f"{path} of {found.get('model', 'an unknown model')}",
            f"a checkpoint of {asked['model']} with the same {', '.join(wrong)}",
            "put back the checkpoint, the config.yaml or the data that the run had",
        )
    return found


def check_weights(
    checkpoint: dict[str, Any], forecaster: Forecaster, path: Path
) -> None:
    """Makes sure that weights fit a network of the same model and settings.

    Args:
        checkpoint: As loaded.
        forecaster: With that network.
        path: Where the checkpoint came from, for the message.

    Raises:
        UserError: They do not; another version has made them.
    """
    found, wanted = checkpoint["state_dict"], forecaster.state_dict()
    shapes = {name: value.shape for name, value in wanted.items()}
    if {name: value.shape for name, value in found.items()} != shapes:
        raise UserError(
            f"{path} from another version of nfsgeo",
            f"the {len(shapes)} tensors of {checkpoint['nfsgeo']['model']} as it is "
            "now",
            "train again, or use the version that made it",
        )


def _completed(description: dict[str, Any]) -> Any:
    """Settings with the defaults of those that came after the checkpoint was made."""
    settings = description.get("settings")
    try:
        kind = MODELS[description["model"]].config
        return kind.model_validate(settings).model_dump(mode="json")
    except (KeyError, ValidationError):
        return settings
