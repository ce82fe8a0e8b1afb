"""The transforms around a network; a feature is on if its transform is in the stack.

================  ==================================================================
ImposedValues     known values instead of predictions at points of some node types
Normalise         fields of mean zero and standard deviation one
Ranks             ranks of static inputs that differ by orders of magnitude
Categories        an input for each value of a category, such as a node type
TrainingNoise     noise on the inputs in training
MissingValues     fills in missing values, with an indicator of where they were
LeadTimes         predictions at any requested times, one by one
Forcings          fields that are known ahead of time as inputs
BoundaryInputs    distance and direction to the boundary as inputs
Residual          the last time step is added to what the network predicts
================  ==================================================================

To add one, write its class and name it in :data:`TRANSFORMS`, whose order is that of
the stack: the first is next to the data. Extensions call :func:`add_transform`. A run
has the transforms whose :meth:`~nfsgeo.forecast.transforms.Transform.fit` returns one,
and those of a :class:`BaseForecast`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nfsgeo.errors import UserError
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.categories import Categories
from nfsgeo.forecast.transforms.imposed import ImposedValues, imposed_values
from nfsgeo.forecast.transforms.inputs import (
    BoundaryInputs,
    Forcings,
    LeadTimes,
    TrainingNoise,
)
from nfsgeo.forecast.transforms.ranks import Ranks
from nfsgeo.forecast.transforms.residual import Residual
from nfsgeo.forecast.transforms.transform import (
    BaseForecast,
    ModelInputs,
    Stack,
    Transform,
    TransformOptions,
)
from nfsgeo.forecast.transforms.values import FieldNormaliser, MissingValues, Normalise

__all__ = [
    "TRANSFORMS",
    "BaseForecast",
    "BoundaryInputs",
    "Categories",
    "FieldNormaliser",
    "Forcings",
    "ImposedValues",
    "LeadTimes",
    "MissingValues",
    "ModelInputs",
    "Normalise",
    "Ranks",
    "Residual",
    "Stack",
    "TrainingNoise",
    "Transform",
    "TransformOptions",
    "add_transform",
    "described",
    "fitted",
    "imposed_values",
    "restored",
]

TRANSFORMS: dict[str, type[Transform]] = {
    "imposed_values": ImposedValues,
    "normalise": Normalise,
    "ranks": Ranks,
    "categories": Categories,
    "training_noise": TrainingNoise,
    "missing_values": MissingValues,
    "lead_times": LeadTimes,
    "forcings": Forcings,
    "boundary_inputs": BoundaryInputs,
    "residual": Residual,
}
# Settings of transforms that older checkpoints have, at the values without effect.
RETIRED: dict[str, dict[str, Any]] = {"residual": {"linear": None, "level": True}}


def add_transform(name: str, kind: type[Transform], before: str) -> None:
    """Register a further transform.

    Args:
        name: Name under which checkpoints store it.
        kind: Its class.
        before: Name of the transform that comes next in the stack.
    """
    rest = {key: TRANSFORMS.pop(key) for key in [*TRANSFORMS]}
    for key, following in rest.items():
        if key == before:
            TRANSFORMS[name] = kind
        TRANSFORMS[key] = following


def described(transforms: Iterable[Transform]) -> list[dict[str, Any]]:
    """Return names and settings of transforms, plain types for a checkpoint.

    Args:
        transforms: The transforms.
    """
    names = {kind: name for name, kind in TRANSFORMS.items()}
    return [{"name": names[type(step)], **step.settings} for step in transforms]


def restored(descriptions: Iterable[Mapping[str, Any]]) -> list[Transform]:
    """Build transforms from their descriptions.

    Args:
        descriptions: Result of :func:`described`.

    Raises:
        UserError: A transform is not of nfsgeo, and its code has not been imported.
    """
    transforms = []
    for description in descriptions:
        settings = dict(description)
        if (kind := settings.pop("name")) not in TRANSFORMS:
            todo = "give --import with the file or module that defines it"
            raise UserError(f"the transform {kind}", "one that is registered", todo)
        for name, value in RETIRED.get(kind, {}).items():
            if settings.get(name, value) == value:
                settings.pop(name, None)
        transforms.append(TRANSFORMS[kind](**settings))
    return transforms


def fitted(statistics: Statistics, options: TransformOptions) -> list[Transform]:
    """Fit the transforms of a run, from the data to the network.

    Args:
        statistics: Statistics of the training windows.
        options: Options from the configuration of the run.
    """
    base = options.base_forecast
    base_transforms = {} if base is None else base.transforms
    made = (
        base_transforms.get(name) or kind.fit(statistics, options)
        for name, kind in TRANSFORMS.items()
    )
    return [transform for transform in made if transform is not None]
