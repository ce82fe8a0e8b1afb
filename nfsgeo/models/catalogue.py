"""The models by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.fno import FNOSettings, build_fno
from nfsgeo.models.nfs import NFSSettings, build_nfs
from nfsgeo.models.problem import Problem

__all__ = ["MODELS", "ModelInfo", "build_model", "num_parameters"]

NFS_PAPER = "Non-equispaced Fourier Neural Solvers for PDEs"
FNO_PAPER = "Fourier Neural Operator for Parametric PDEs"


@dataclass(frozen=True)
class ModelInfo:
    """What a model is, and what it accepts.

    Attributes:
        name: as on the command line.
        config: class of its settings, checked on construction.
        build: makes the network for a problem.
        points: whether it takes irregular points, not grids alone.
        unseen_meshes: whether it works on meshes that it was not trained on.
        source: where it comes from.
        parameters_paper: count in the paper's complexity table, where it has one.
        paper: settings that make it the paper's.
    """

    name: str
    config: type[BaseModel]
    build: Callable[[Problem, Any], nn.Module]
    points: bool
    unseen_meshes: bool
    source: str
    parameters_paper: int | None = None
    paper: Mapping[str, Any] = field(default_factory=dict)


MODELS: dict[str, ModelInfo] = {
    "nfs": ModelInfo(
        name="nfs",
        config=NFSSettings,
        build=build_nfs,
        points=True,
        unseen_meshes=True,
        source=NFS_PAPER,
        parameters_paper=37_891_937,
        paper={"kernel": "dense", "norm": "element", "depth": 3},
    ),
    "fno": ModelInfo(
        name="fno",
        config=FNOSettings,
        build=build_fno,
        points=False,
        unseen_meshes=True,
        source=FNO_PAPER,
        parameters_paper=6_299_425,
        paper={"depth": 3},
    ),
}


def build_model(
    name: str,
    problem: Problem,
    settings: BaseModel | Mapping[str, Any] | None = None,
) -> nn.Module:
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
    """Number of trainable parameters; a complex one counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
