"""The learning problem that a file and a configuration pose to a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nfsgeo.data import FieldFile
from nfsgeo.geometry import Domain
from nfsgeo.models import Problem
from nfsgeo.training.config import DataSection, ModelSection
from nfsgeo.training.observation import Observation, mesh_of

__all__ = ["changes_in", "problem_from_dict", "problem_of", "problem_to_dict"]


def problem_of(data: DataSection, file: FieldFile, mesh: Observation) -> Problem:
    """Sizes and domain of the fields that a model will see.

    Where the samples have meshes of their own, the first one's size stands for all.
    """
    observed = mesh_of(mesh, int(file.split["train"][0]))
    n_in, n_out = data.n_in or 0, data.n_out or 1
    coefficients = file.static_components if file.static_role == "coefficient" else 0
    return Problem(
        domain=file.domain,
        in_components=coefficients + (file.components if n_in else 0),
        out_components=file.components,
        n_in=max(1, n_in),
        n_out=n_out,
        num_points=len(observed),
        grid_shape=observed.grid_shape,
        has_time=n_in > 0,
    )


def changes_in(model: ModelSection, problem: Problem) -> Domain | None:
    """Where a model predicts changes since the last record; None if fields."""
    changes = problem.has_time and model.predicts == "change"
    return problem.domain if changes else None


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Plain types, for a checkpoint."""
    shape = problem.grid_shape
    return asdict(problem) | {
        "domain": problem.domain.to_dict(),
        "grid_shape": None if shape is None else list(shape),
    }


def problem_from_dict(content: dict[str, Any]) -> Problem:
    """The inverse of :func:`problem_to_dict`."""
    shape = content["grid_shape"]
    return Problem(
        **content
        | {
            "domain": Domain.from_dict(content["domain"]),
            "grid_shape": None if shape is None else tuple(shape),
        }
    )
