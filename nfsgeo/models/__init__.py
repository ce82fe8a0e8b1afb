"""Complete networks, one a file, and the registry of all of them.

Each is a class, built with its settings as keyword arguments,
``NFS(problem, width=64, modes=12)``, or by name with :func:`build_model`. All of them
are called alike: ``model(x, pos, batch=None, *, query_pos=None, query_batch=None,
graphs=None)`` with normalised fields ``x [N, n_t, F]`` at points ``pos [N, d]`` of the
samples ``batch [N]``; the result is ``[M, n_t', F']``.
``model.connect(pos, batch, query_pos, query_batch)`` makes the graphs beforehand.

===========================  ========================================================
MODELS                       facts about each model, by its name
build_model                  a model by name, for a problem
Problem                      sizes and domain of the fields that a network maps
Task                         what a model maps: names, units, domain, time steps
Model, MixerOperator         base classes of all models, and of all mixers
ModelSettings                base of the models' settings
ModelInfo, LossWeighting     what a model accepts and how it is trained
OwnLoss, BatchLoss           models that choose their training windows themselves
parameters_at_paper_setting  number of parameters at the paper's setting
===========================  ========================================================

To add a model, write its file and name it here: an import, ``__all__`` and ``MODELS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models.agcrn import AGCRN, AGCRN_INFO
from nfsgeo.models.base import Model, ModelSettings
from nfsgeo.models.dcrnn import DCRNN, DCRNN_INFO
from nfsgeo.models.deeponet import (
    DEEPONET_U_INFO,
    DEEPONET_V_INFO,
    DeepONetU,
    DeepONetV,
)
from nfsgeo.models.dse import DSE, DSE_INFO
from nfsgeo.models.fnet import FNET_INFO, NFS_FNET_INFO, FNet, NFSFNet
from nfsgeo.models.fno import FNO, FNO_INFO
from nfsgeo.models.gcgru import GCGRU, GCGRU_INFO
from nfsgeo.models.gfn import GFN, GFN_INFO, NFS_GFN_INFO, NFSGFN
from nfsgeo.models.gino import GINO, GINO_INFO
from nfsgeo.models.info import BatchLoss, LossWeighting, ModelInfo, OwnLoss
from nfsgeo.models.mixer import MixerOperator
from nfsgeo.models.mlpmixer import (
    MLPMIXER_INFO,
    NFS_MLPMIXER_INFO,
    MLPMixer,
    NFSMLPMixer,
)
from nfsgeo.models.mppde import MPPDE, MPPDE_INFO
from nfsgeo.models.neuralop_fno import NEURALOP_FNO_INFO, NeuralopFNO
from nfsgeo.models.nfs import NFS, NFS_INFO
from nfsgeo.models.pfno import NFS_PFNO_INFO, NFSPFNO, PFNO, PFNO_INFO
from nfsgeo.models.problem import Problem
from nfsgeo.models.task import Task
from nfsgeo.models.transolver import TRANSOLVER_INFO, Transolver
from nfsgeo.models.vit import NFS_VIT_INFO, VIT_INFO, NFSViT, ViT
from nfsgeo.nn import PointSpectralConv, SpectralConv
from nfsgeo.setting_errors import unknown

__all__ = [
    "AGCRN",
    "DCRNN",
    "DSE",
    "FNO",
    "GCGRU",
    "GFN",
    "GINO",
    "MODELS",
    "MPPDE",
    "NFS",
    "NFSGFN",
    "NFSPFNO",
    "PAPER_PROBLEM",
    "PFNO",
    "BatchLoss",
    "DeepONetU",
    "DeepONetV",
    "FNet",
    "LossWeighting",
    "MLPMixer",
    "MixerOperator",
    "Model",
    "ModelInfo",
    "ModelSettings",
    "NFSFNet",
    "NFSMLPMixer",
    "NFSViT",
    "NeuralopFNO",
    "OwnLoss",
    "Problem",
    "Task",
    "Transolver",
    "ViT",
    "build_model",
    "num_parameters",
    "parameters_at_paper_setting",
]

MODELS: dict[str, ModelInfo] = {
    "nfs": NFS_INFO,
    "nfs-vit": NFS_VIT_INFO,
    "nfs-mlpmixer": NFS_MLPMIXER_INFO,
    "nfs-fnet": NFS_FNET_INFO,
    "nfs-gfn": NFS_GFN_INFO,
    "nfs-pfno": NFS_PFNO_INFO,
    "gcgru": GCGRU_INFO,
    "dcrnn": DCRNN_INFO,
    "agcrn": AGCRN_INFO,
    "mppde": MPPDE_INFO,
    "dse": DSE_INFO,
    "gino": GINO_INFO,
    "transolver": TRANSOLVER_INFO,
    "fno": FNO_INFO,
    "neuralop-fno": NEURALOP_FNO_INFO,
    "pfno": PFNO_INFO,
    "vit": VIT_INFO,
    "mlpmixer": MLPMIXER_INFO,
    "fnet": FNET_INFO,
    "gfn": GFN_INFO,
    "deeponet-u": DEEPONET_U_INFO,
    "deeponet-v": DEEPONET_V_INFO,
}

# Navier-Stokes, r = 64, n_t = 10, n'_t = 40: the paper's complexity table.
PAPER_PROBLEM = Problem(
    domain=Domain.unit(2),
    in_components=1,
    out_components=1,
    n_in=10,
    n_out=40,
    num_points=64**2,
    grid_shape=(64, 64),
    has_time=True,
)


def build_model(
    name: str,
    problem: Problem,
    settings: BaseModel | Mapping[str, Any] | None = None,
) -> Model:
    """Build a model by name.

    Args:
        name: a key of :data:`MODELS`.
        problem: sizes and domain of the fields.
        settings: an instance of the model's settings class, or the settings that differ
            from their defaults.

    Raises:
        UserError: for an unknown name, a setting that does not fit, or a model that
            needs a grid and a problem on irregular points.
    """
    if name not in MODELS:
        raise unknown(f"model {name!r}", f"one of {', '.join(MODELS)}", name, MODELS)
    info = MODELS[name]
    if not info.points and problem.grid_shape is None:
        raise UserError(
            f"model {name} with {problem.num_points} irregular points",
            "an equispaced grid, which this model needs",
            "give --grid, or use a model that takes points, such as nfs",
        )
    if isinstance(settings, BaseModel):
        return info.model(problem, settings)
    return info.model(problem, **(settings or {}))


def num_parameters(model: nn.Module) -> int:
    """Number of trainable parameters of ``model``; a complex one counts once.

    Spectral layers hold complex weights as pairs of real numbers.
    """
    spectral = (SpectralConv, PointSpectralConv)
    layers = [each for each in model.modules() if isinstance(each, spectral)]
    pairs = [each.weight.numel() for each in layers if each.weight.requires_grad]
    trained = [p.numel() for p in model.parameters() if p.requires_grad]
    return sum(trained) - sum(pairs) // 2


def parameters_at_paper_setting(name: str) -> int:
    """Number of parameters of the model ``name`` with the paper's settings.

    To compare with :attr:`ModelInfo.parameters_paper`, which for the four models on
    patches includes a layer of 33,792 parameters that the authors build and never use.
    Nothing is allocated.
    """
    with torch.device("meta"):
        return num_parameters(build_model(name, PAPER_PROBLEM, MODELS[name].paper))
