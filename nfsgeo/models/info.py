"""What a model is, and what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from nfsgeo.models.model import Model
from nfsgeo.models.problem import Problem

__all__ = ["LossWeighting", "ModelInfo"]

LossWeighting = Literal["uniform", "quadrature"]


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
        point_sets: number of point sets that training samples cycle through by default,
            where points are drawn.
        query_points: unobserved points of the file at which training asks for a
            prediction, for each sample, where nothing else is asked for; 0 for a model
            that predicts at the observed points alone.
        loss_weighting: weights of the points in its training loss, where points are
            drawn evenly from a grid and nothing else is asked for; elsewhere uniform.
        feeds_back: whether its predictions are inputs of its own, and therefore fields
            in the scale of the input.
        parameters_paper: count in the paper's complexity table, where it has one.
        paper: settings that make it the paper's.
    """

    name: str
    config: type[BaseModel]
    build: Callable[[Problem, Any], Model]
    points: bool
    unseen_meshes: bool
    source: str
    point_sets: int = 1
    query_points: int = 0
    loss_weighting: LossWeighting = "uniform"
    feeds_back: bool = False
    parameters_paper: int | None = None
    paper: Mapping[str, Any] = field(default_factory=dict)
