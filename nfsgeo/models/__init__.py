"""Complete networks, and the registry of all of them.

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

To add a model, write its class and name it here: an import, ``__all__`` and ``MODELS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models.base import Model
from nfsgeo.models.deeponet import DeepONetU, DeepONetV
from nfsgeo.models.dse import DSE
from nfsgeo.models.flare import FLARE
from nfsgeo.models.fno import FNO
from nfsgeo.models.fno_spline import FNOSpline
from nfsgeo.models.info import BatchLoss, LossWeighting, ModelInfo, OwnLoss
from nfsgeo.models.mixer import MixerOperator
from nfsgeo.models.mppde import MPPDE
from nfsgeo.models.neuraloperator import GINO, NeuralopFNO
from nfsgeo.models.nfs import NFS
from nfsgeo.models.patch_mixers import (
    GFN,
    NFSGFN,
    NFSPFNO,
    PFNO,
    FNet,
    MLPMixer,
    NFSFNet,
    NFSMLPMixer,
    NFSViT,
    ViT,
)
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import AGCRN, DCRNN, GCGRU
from nfsgeo.models.settings import PAPER_MODES, ModelSettings
from nfsgeo.models.task import Task
from nfsgeo.models.transolver import Transolver
from nfsgeo.nn import PointSpectralConv, SpectralConv
from nfsgeo.setting_errors import unknown

__all__ = [
    "AGCRN",
    "DCRNN",
    "DSE",
    "FLARE",
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
    "FNOSpline",
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

NFS_PAPER = "Non-equispaced Fourier Neural Solvers for PDEs"
FNO_PAPER = "Fourier Neural Operator for Parametric PDEs"
DEEPONET_PAPER = "Learning nonlinear operators via DeepONet"
# With so many point sets, errors on other meshes hardly exceed those on the mesh of
# training; no other number was tried.
POINTS: dict[str, Any] = {"point_sets": 16, "query_points": 16}
POINTS |= {"source": NFS_PAPER, "loss_weighting": "quadrature"}
GRAPH: dict[str, Any] = {"family": "graph", "autoregressive": True}
GRID: dict[str, Any] = {"points": False}
PATCHES = GRID | {"unseen_meshes": False}
DEEPONET = GRID | {"source": DEEPONET_PAPER, "family": "deeponet"}
# The paper's settings. Its kernel is a matrix for every edge, added to the mean of the
# neighbours, its radius that on the unit box, whatever the number of points.
DEEP: dict[str, Any] = {"depth": 3}
FOURIER = DEEP | {"modes": PAPER_MODES}
KERNEL = {"kernel": "dense", "base": "mean", "hidden": 64, "back_width": None}
NFS_SETTINGS = KERNEL | FOURIER | {"width": 32, "norm": "element", "time": "tokens"}
RADIUS: dict[str, Any] = {"radius": 0.05}
DIRECT: dict[str, Any] = {"residual": False}

MODELS: dict[str, ModelInfo] = {
    info.name: info
    for info in (
        ModelInfo(
            "nfs", NFS, paper=NFS_SETTINGS, parameters_paper=37_891_937, **POINTS
        ),
        ModelInfo("fno-spline", FNOSpline, paper=FOURIER, **POINTS),
        ModelInfo("nfs-vit", NFSViT, paper=KERNEL, **POINTS),
        ModelInfo("nfs-mlpmixer", NFSMLPMixer, paper=KERNEL | DEEP, **POINTS),
        ModelInfo("nfs-fnet", NFSFNet, paper=KERNEL | DEEP, **POINTS),
        ModelInfo("nfs-gfn", NFSGFN, paper=KERNEL | DEEP, **POINTS),
        ModelInfo("nfs-pfno", NFSPFNO, paper=KERNEL | FOURIER, **POINTS),
        ModelInfo(
            "gcgru",
            GCGRU,
            "Structured Sequence Modeling with Graph Convolutional Recurrent Networks",
            RADIUS | DIRECT,
            74_945,
            **GRAPH,
        ),
        ModelInfo(
            "dcrnn",
            DCRNN,
            "Diffusion Convolutional Recurrent Neural Network",
            RADIUS | DIRECT,
            148_673,
            **GRAPH,
        ),
        ModelInfo(
            "agcrn",
            AGCRN,
            "Adaptive Graph Convolutional Recurrent Network",
            DIRECT,
            unseen_meshes=False,
            **GRAPH,
        ),
        ModelInfo(
            "mppde",
            MPPDE,
            "Message Passing Neural PDE Solvers",
            RADIUS,
            622_161,
            **GRAPH,
        ),
        ModelInfo(
            "dse", DSE, "Beyond Regular Grids: Fourier-Based Neural Operators", FOURIER
        ),
        ModelInfo("gino", GINO, "Geometry-Informed Neural Operator (neuraloperator)"),
        ModelInfo(
            "transolver",
            Transolver,
            "Transolver: A Fast Transformer Solver for PDEs on General Geometries",
        ),
        ModelInfo("flare", FLARE, "FLARE: Fast Low-rank Attention Routing Engine"),
        ModelInfo("fno", FNO, FNO_PAPER, FOURIER, 6_299_425, **GRID),
        ModelInfo("neuralop-fno", NeuralopFNO, f"{FNO_PAPER} (neuraloperator)", **GRID),
        ModelInfo("pfno", PFNO, NFS_PAPER, FOURIER, 9_742_145, **PATCHES),
        ModelInfo(
            "vit",
            ViT,
            "An Image is Worth 16x16 Words",
            {"depth": 2},
            773_217,
            **PATCHES,
        ),
        ModelInfo(
            "mlpmixer",
            MLPMixer,
            "MLP-Mixer: An all-MLP Architecture for Vision",
            DEEP,
            79_749_953,
            **PATCHES,
        ),
        ModelInfo(
            "fnet", FNet, "FNet: Mixing Tokens with Fourier Transforms", DEEP, **PATCHES
        ),
        ModelInfo(
            "gfn",
            GFN,
            "Global Filter Networks for Image Classification",
            DEEP,
            1_361_729,
            **PATCHES,
        ),
        ModelInfo("deeponet-u", DeepONetU, **DEEPONET),
        ModelInfo("deeponet-v", DeepONetV, **DEEPONET),
    )
}

# Navier-Stokes, r = 64, n_t = 10, n'_t = 40: the paper's complexity table.
PAPER_PROBLEM = Problem(Domain.unit(2), 1, 1, 10, 40, 64**2, (64, 64), has_time=True)


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
