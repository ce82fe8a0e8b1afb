"""Settings of a run: typed, checked on construction, and without torch.

========================  ==============================================================
RunConfig                 everything that determines a run, in sections
DataSection, ...          its sections
MODEL_NAMES, ...          names of models, losses and meshes
========================  ==============================================================

They are loaded by :mod:`nfsgeo.training.loading`.
"""

from __future__ import annotations

from nfsgeo.config.names import (
    LOSS_NAMES,
    MESH_NAMES,
    MODEL_NAMES,
    LossWeighting,
    Prediction,
)
from nfsgeo.config.sections import (
    DataSection,
    LossSection,
    ModelSection,
    OptimiserSection,
    RunConfig,
    TrainerSection,
)

__all__ = [
    "LOSS_NAMES",
    "MESH_NAMES",
    "MODEL_NAMES",
    "DataSection",
    "LossSection",
    "LossWeighting",
    "ModelSection",
    "OptimiserSection",
    "Prediction",
    "RunConfig",
    "TrainerSection",
]
