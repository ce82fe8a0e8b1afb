"""The learning problem that a file and a configuration pose to a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from nfsgeo.data import FieldFile, WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models import Problem
from nfsgeo.training.config import DataSection, ModelSection
from nfsgeo.training.observation import Observation, mesh_of

__all__ = [
    "check_time_steps",
    "is_residual",
    "problem_from_dict",
    "problem_of",
    "problem_to_dict",
]


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


def is_residual(model: ModelSection, problem: Problem) -> bool:
    """Whether a model predicts changes since the last record, not fields."""
    return problem.has_time and model.prediction == "residual"


def check_time_steps(windows: WindowDataset) -> None:
    """Makes sure that the snapshots of a window are equally far apart.

    Raises:
        UserError: They are not; a model would learn a step that is none.
    """
    steps = np.diff(windows.times)
    unequal = np.flatnonzero(~np.isclose(steps, steps[:1], rtol=1e-3, atol=0))
    if unequal.size:
        at = unequal[0]
        before, here, after = windows.times[[at - 1, at, at + 1]]
        raise UserError(
            f"{windows.file.path} with unequal time steps, {steps[at - 1]:g} from t = "
            f"{before:g} and {steps[at]:g} from t = {here:g} to {after:g}",
            f"equal steps among the {len(windows.times)} snapshots of a window",
            "choose others by data.first_step and data.time_stride, or interpolate "
            "the file in time",
        )


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
