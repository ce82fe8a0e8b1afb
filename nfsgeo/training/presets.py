"""The protocol of the paper, as differences from the default configuration."""

from __future__ import annotations

from typing import Any

from nfsgeo.models import MODELS

__all__ = ["paper_learning_rate", "paper_preset"]

SLOW_EQUATIONS = frozenset({"burgers", "kdv"})


def paper_preset(model: str) -> dict[str, Any]:
    """How the paper trains a model: section by section, only what differs.

    Adam, the rate of :func:`paper_learning_rate` halved every 100 epochs, 500 epochs,
    stopped after 100 without a better validation RMSE, batches of 4, and the model's
    own settings. MPPDE trains as its authors train it: AdamW at 1e-4.
    """
    optimiser: dict[str, Any] = {
        "name": "adam",
        "lr": None,
        "betas": [0.9, 0.98],
        "eps": 1e-9,
        "gradient_clip": 5.0,
        "schedule": "step",
        "step_epochs": 100,
        "step_factor": 0.5,
    }
    if model == "mppde":
        optimiser |= {"name": "adamw", "lr": 1e-4, "betas": [0.9, 0.999], "eps": 1e-8}
    return {
        "data": {"batch_size": 4, "point_sets": 1, "query_points": 0},
        "model": {
            "prediction": "direct",
            "settings": dict(MODELS[model].paper) if model in MODELS else {},
        },
        "loss": {"name": "mse", "weighting": "uniform"},
        "optimiser": optimiser,
        "trainer": {"epochs": 500, "patience": 100},
    }


def paper_learning_rate(model: str, equation: str) -> float:
    """The first learning rate of the step schedule.

    1e-3, but 5e-4 on Burgers and KdV for all but the graph models; see
    :attr:`nfsgeo.models.ModelInfo.family`.
    """
    slow = equation in SLOW_EQUATIONS and MODELS[model].family != "graph"
    return 5e-4 if slow else 1e-3
