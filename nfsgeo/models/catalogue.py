"""The models by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.deeponet_u import DeepONetUSettings, build_deeponet_u
from nfsgeo.models.deeponet_v import DeepONetVSettings, build_deeponet_v
from nfsgeo.models.graph_catalogue import GRAPH_MODELS, POINT_REFERENCES
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer_catalogue import GRID_MIXERS, POINT_MIXERS
from nfsgeo.models.model import Model
from nfsgeo.models.problem import Problem

__all__ = ["MODELS", "build_model", "num_parameters"]

DEEPONET_PAPER = "Learning nonlinear operators via DeepONet"


MODELS: dict[str, ModelInfo] = {
    **POINT_MIXERS,
    **GRAPH_MODELS,
    **POINT_REFERENCES,
    **GRID_MIXERS,
    "deeponet-u": ModelInfo(
        name="deeponet-u",
        config=DeepONetUSettings,
        build=build_deeponet_u,
        points=False,
        unseen_meshes=True,
        source=DEEPONET_PAPER,
    ),
    "deeponet-v": ModelInfo(
        name="deeponet-v",
        config=DeepONetVSettings,
        build=build_deeponet_v,
        points=False,
        unseen_meshes=True,
        source=DEEPONET_PAPER,
    ),
}


def build_model(
    name: str,
    problem: Problem,
    settings: BaseModel | Mapping[str, Any] | None = None,
) -> Model:
    """Make a model for a problem.

    Args:
        name: a key of :data:`MODELS`.
        problem: sizes and domain of the fields.
        settings: settings of the model, or what differs from their defaults.

    Raises:
        UserError: for an unknown name, or a model that works on grids alone and a
            problem on points.
        pydantic.ValidationError: for a setting that does not fit.
    """
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        raise UserError(
            f"model {name!r}",
            f"one of {', '.join(MODELS)}",
            f"did you mean {near[0]}?" if near else "see nfsgeo models",
        )
    info = MODELS[name]
    if not info.points and problem.grid_shape is None:
        raise UserError(
            f"model {name} with {problem.num_points} irregular points",
            "an equispaced grid, which this model needs",
            "give --grid, or use a model that takes points, such as nfs",
        )
    if not isinstance(settings, info.config):
        settings = info.config.model_validate(dict(settings or {}))
    return info.build(problem, settings)


def num_parameters(model: nn.Module) -> int:
    """Number of trainable parameters of ``model``; a complex one counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
