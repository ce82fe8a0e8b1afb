"""Names of models, losses and meshes, which a test compares with the registries."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "LOSS_NAMES",
    "MESH_NAMES",
    "MODEL_NAMES",
    "LossWeighting",
    "Prediction",
]

MODEL_NAMES = (
    "nfs",
    "fno-spline",
    "nfs-vit",
    "nfs-mlpmixer",
    "nfs-fnet",
    "nfs-gfn",
    "nfs-pfno",
    "gcgru",
    "dcrnn",
    "agcrn",
    "mppde",
    "meshgraphnets",
    "rigno",
    "dse",
    "gino",
    "transolver",
    "flare",
    "fno",
    "neuralop-fno",
    "pfno",
    "vit",
    "mlpmixer",
    "fnet",
    "gfn",
    "deeponet-u",
    "deeponet-v",
)
LOSS_NAMES = ("mse", "relative_l2", "mae")
MESH_NAMES = ("random-subset", "grid", "all", "off-grid", "clustered", "jittered")
LossWeighting = Literal["uniform", "quadrature"]
Prediction = Literal["residual", "damped", "linear", "rate", "direct"]
