"""The models by name that work on the points themselves, without a grid."""

from __future__ import annotations

from nfsgeo.models.agcrn import AGCRNSettings, build_agcrn
from nfsgeo.models.dcrnn import build_dcrnn
from nfsgeo.models.dse import DSE, DSESettings
from nfsgeo.models.gcgru import build_gcgru
from nfsgeo.models.gino import GINO, GINOSettings
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.modes import PAPER_MODES
from nfsgeo.models.mppde import MPPDE, MPPDESettings
from nfsgeo.models.recurrent_settings import RecurrentSettings
from nfsgeo.models.transolver import Transolver, TransolverSettings

__all__ = ["GRAPH_MODELS", "POINT_REFERENCES"]

# The paper's radius on the unit box, whatever the number of points.
RADIUS = 0.05

GRAPH_MODELS: dict[str, ModelInfo] = {
    "gcgru": ModelInfo(
        name="gcgru",
        config=RecurrentSettings,
        build=build_gcgru,
        points=True,
        unseen_meshes=True,
        source="Structured Sequence Modeling with Graph Convolutional Recurrent "
        "Networks",
        feeds_back=True,
        parameters_paper=74_945,
        paper={"radius": RADIUS, "residual": False},
    ),
    "dcrnn": ModelInfo(
        name="dcrnn",
        config=RecurrentSettings,
        build=build_dcrnn,
        points=True,
        unseen_meshes=True,
        source="Diffusion Convolutional Recurrent Neural Network",
        feeds_back=True,
        parameters_paper=148_673,
        paper={"radius": RADIUS, "residual": False},
    ),
    "agcrn": ModelInfo(
        name="agcrn",
        config=AGCRNSettings,
        build=build_agcrn,
        points=True,
        unseen_meshes=False,
        source="Adaptive Graph Convolutional Recurrent Network",
        feeds_back=True,
        paper={"residual": False},
    ),
    "mppde": ModelInfo(
        name="mppde",
        config=MPPDESettings,
        build=MPPDE,
        points=True,
        unseen_meshes=True,
        source="Message Passing Neural PDE Solvers",
        feeds_back=True,
        parameters_paper=622_161,
        paper={"radius": RADIUS},
    ),
}

POINT_REFERENCES: dict[str, ModelInfo] = {
    "dse": ModelInfo(
        name="dse",
        config=DSESettings,
        build=DSE,
        points=True,
        unseen_meshes=True,
        source="Beyond Regular Grids: Fourier-Based Neural Operators",
        paper={"depth": 3, "modes": PAPER_MODES},
    ),
    "gino": ModelInfo(
        name="gino",
        config=GINOSettings,
        build=GINO,
        points=True,
        unseen_meshes=True,
        source="Geometry-Informed Neural Operator (neuraloperator)",
    ),
    "transolver": ModelInfo(
        name="transolver",
        config=TransolverSettings,
        build=Transolver,
        points=True,
        unseen_meshes=True,
        source="Transolver: A Fast Transformer Solver for PDEs on General Geometries",
    ),
}
