"""Complete networks, one a file.

All of them are called alike: ``model(x, pos, batch=None, *, query_pos=None,
query_batch=None, graphs=None)`` with normalised fields ``x [N, n_t, F]`` at points
``pos [N, d]`` of the samples ``batch [N]``; the result is ``[M, n_t', F']``.
``model.connect(pos, batch, query_pos, query_batch)`` makes the graphs beforehand.

===========================  ========================================================
MODELS                       the models by name, with what each accepts
Model                        their base
LossWeighting                weights of the points in a training loss
build_model                  a model by name, for a problem
Problem                      sizes and domain of what is to be learned
OwnLoss                      what a model has that is trained on a loss of its own
BatchLoss                    a loss of normalised predictions and targets
parameters_at_paper_setting  how large a model is where the paper counts
===========================  ========================================================
"""

from __future__ import annotations

from nfsgeo.models.catalogue import MODELS, build_model, num_parameters
from nfsgeo.models.info import LossWeighting, ModelInfo
from nfsgeo.models.model import Model
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.own_loss import BatchLoss, OwnLoss
from nfsgeo.models.paper_setting import PAPER_PROBLEM, parameters_at_paper_setting
from nfsgeo.models.problem import Problem

__all__ = [
    "MODELS",
    "BatchLoss",
    "LossWeighting",
    "MixerOperator",
    "Model",
    "PAPER_PROBLEM",
    "ModelInfo",
    "OwnLoss",
    "Problem",
    "build_model",
    "num_parameters",
    "parameters_at_paper_setting",
]
