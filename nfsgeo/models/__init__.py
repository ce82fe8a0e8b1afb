"""Complete networks, and the registry of all of them.

Each model is a class, built with its settings as keyword arguments,
``NFS(problem, width=64, modes=12)``, or by name with :func:`build_model`. Its
attributes tell its abilities and its source. All models are called alike:
``model(x, pos, batch=None, *, query_pos=None, query_batch=None, graphs=None)`` with
normalised fields ``x [N, n_t, F]`` at points ``pos [N, d]`` of the samples
``batch [N]``; the result is ``[M, n_t', F']``.
``model.connect(pos, batch, query_pos, query_batch)`` makes the graphs beforehand.

===========================  ========================================================
MODELS                       the classes by their names on the command line
build_model                  builds a model by name
Problem                      sizes and domain of the fields that a network maps
Task                         names, units, domain and time steps of a forecast
Model, MixerOperator         base classes of all models, and of all mixers
ModelSettings                base of the models' settings
BatchLoss                    type of a training loss
parameters_at_paper_setting  number of parameters at the paper's setting
===========================  ========================================================

To add a model, write its class and add it here: an import, ``__all__`` and ``MODELS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from nfsgeo.config.errors import unknown
from nfsgeo.errors import UserError, option
from nfsgeo.geometry import Domain
from nfsgeo.models.base import BatchLoss, Model
from nfsgeo.models.deeponet import DeepONetU, DeepONetV
from nfsgeo.models.fourier import DSE, FNO, NFS, FNOSpline
from nfsgeo.models.meshgraphnets import MeshGraphNets
from nfsgeo.models.mixer import MixerOperator
from nfsgeo.models.mppde import MPPDE
from nfsgeo.models.neuraloperator import GINO, NeuralopFNO
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
from nfsgeo.models.recurrent import AGCRN, DCRNN, GCGRU
from nfsgeo.models.rigno import RIGNO
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem, Task
from nfsgeo.models.transformers import FLARE, Transolver
from nfsgeo.nn import PointSpectralConv, SpectralConv

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
    "PAPER_PARAMETERS",
    "PAPER_PROBLEM",
    "PFNO",
    "RIGNO",
    "BatchLoss",
    "DeepONetU",
    "DeepONetV",
    "FNOSpline",
    "FNet",
    "MLPMixer",
    "MeshGraphNets",
    "MixerOperator",
    "Model",
    "ModelSettings",
    "NFSFNet",
    "NFSMLPMixer",
    "NFSViT",
    "NeuralopFNO",
    "Problem",
    "Task",
    "Transolver",
    "ViT",
    "build_model",
    "num_parameters",
    "parameters_at_paper_setting",
]

MODELS: dict[str, type[Model]] = {
    "nfs": NFS,
    "fno-spline": FNOSpline,
    "nfs-vit": NFSViT,
    "nfs-mlpmixer": NFSMLPMixer,
    "nfs-fnet": NFSFNet,
    "nfs-gfn": NFSGFN,
    "nfs-pfno": NFSPFNO,
    "gcgru": GCGRU,
    "dcrnn": DCRNN,
    "agcrn": AGCRN,
    "mppde": MPPDE,
    "meshgraphnets": MeshGraphNets,
    "rigno": RIGNO,
    "dse": DSE,
    "gino": GINO,
    "transolver": Transolver,
    "flare": FLARE,
    "fno": FNO,
    "neuralop-fno": NeuralopFNO,
    "pfno": PFNO,
    "vit": ViT,
    "mlpmixer": MLPMixer,
    "fnet": FNet,
    "gfn": GFN,
    "deeponet-u": DeepONetU,
    "deeponet-v": DeepONetV,
}

# Setting and numbers of parameters of the paper's complexity table: Navier-Stokes with
# r = 64, n_t = 10, n'_t = 40. Models on patches include a layer of 33,792 parameters
# that the authors count but never use.
PAPER_PROBLEM = Problem(Domain.unit(2), 1, 1, 10, 40, 64**2, (64, 64), has_time=True)
PAPER_PARAMETERS = {
    "nfs": 37_891_937,
    "fno": 6_299_425,
    "pfno": 9_742_145,
    "vit": 773_217,
    "mlpmixer": 79_749_953,
    "gfn": 1_361_729,
    "gcgru": 74_945,
    "dcrnn": 148_673,
    "mppde": 622_161,
}


def build_model(
    name: str,
    problem: Problem,
    settings: BaseModel | Mapping[str, Any] | None = None,
) -> Model:
    """Build a model by name.

    Args:
        name: a key of :data:`MODELS`.
        problem: sizes and domain of the fields.
        settings: settings that differ from their defaults, or an instance of the
            model's settings class.

    Raises:
        UserError: for an unknown name, a setting that does not fit, or a model that
            needs a grid and a problem on irregular points.
    """
    if name not in MODELS:
        raise unknown(f"model {name!r}", f"one of {', '.join(MODELS)}", name, MODELS)
    if not MODELS[name].points and problem.grid_shape is None:
        raise UserError(
            f"model {name} with {problem.num_points} irregular points",
            "an equispaced grid, which this model needs",
            f"give {option('grid', 'N')}, or use a model that takes points, "
            "such as nfs",
        )
    return MODELS[name](problem, **dict(settings or {}))


def num_parameters(model: nn.Module) -> int:
    """Return the number of trainable parameters; a complex one counts once.

    Spectral layers store complex weights as pairs of real numbers.
    """
    spectral = (SpectralConv, PointSpectralConv)
    layers = [layer for layer in model.modules() if isinstance(layer, spectral)]
    pairs = [layer.weight.numel() for layer in layers if layer.weight.requires_grad]
    trained = [p.numel() for p in model.parameters() if p.requires_grad]
    return sum(trained) - sum(pairs) // 2


def parameters_at_paper_setting(name: str) -> int:
    """Return the number of parameters of the model ``name`` at the paper's setting.

    Compare it with :data:`PAPER_PARAMETERS`. No memory is allocated.
    """
    with torch.device("meta"):
        return num_parameters(build_model(name, PAPER_PROBLEM, MODELS[name].paper))
