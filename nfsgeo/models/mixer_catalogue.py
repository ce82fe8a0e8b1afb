"""The mixers by name: on points, and on grids."""

from __future__ import annotations

from nfsgeo.models.fnet import build_fnet, build_nfs_fnet
from nfsgeo.models.fno import FNOSettings, build_fno
from nfsgeo.models.gfn import build_gfn, build_nfs_gfn
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mlpmixer import build_mlpmixer, build_nfs_mlpmixer
from nfsgeo.models.modes import PAPER_MODES
from nfsgeo.models.nfs import NFSSettings, build_nfs
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings
from nfsgeo.models.pfno import (
    NFSPFNOSettings,
    PFNOSettings,
    build_nfs_pfno,
    build_pfno,
)
from nfsgeo.models.vit import NFSViTSettings, ViTSettings, build_nfs_vit, build_vit

__all__ = ["GRID_MIXERS", "POINT_MIXERS"]

NFS_PAPER = "Non-equispaced Fourier Neural Solvers for PDEs"
FNO_PAPER = "Fourier Neural Operator for Parametric PDEs"
VIT_PAPER = "An Image is Worth 16x16 Words"
MLP_MIXER_PAPER = "MLP-Mixer: An all-MLP Architecture for Vision"
FNET_PAPER = "FNet: Mixing Tokens with Fourier Transforms"
GFN_PAPER = "Global Filter Networks for Image Classification"

# A matrix for every edge, added to the mean of the neighbours.
PAPER_KERNEL = {"kernel": "dense", "base": "mean", "hidden": 64, "back_width": None}
PAPER_NFS = {**PAPER_KERNEL, "depth": 3, "modes": PAPER_MODES, "norm": "element"}
# With so many, errors on other meshes hardly exceed those on the mesh of training; no
# other number was tried.
POINT_SETS = 16
QUERY_POINTS = 16

POINT_MIXERS: dict[str, ModelInfo] = {
    "nfs": ModelInfo(
        name="nfs",
        config=NFSSettings,
        build=build_nfs,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        parameters_paper=37_891_937,
        paper=PAPER_NFS,
    ),
    "nfs-vit": ModelInfo(
        name="nfs-vit",
        config=NFSViTSettings,
        build=build_nfs_vit,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        paper={**PAPER_KERNEL, "depth": 1},
    ),
    "nfs-mlpmixer": ModelInfo(
        name="nfs-mlpmixer",
        config=InterpolatedSettings,
        build=build_nfs_mlpmixer,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        paper={**PAPER_KERNEL, "depth": 3},
    ),
    "nfs-fnet": ModelInfo(
        name="nfs-fnet",
        config=InterpolatedSettings,
        build=build_nfs_fnet,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        paper={**PAPER_KERNEL, "depth": 3},
    ),
    "nfs-gfn": ModelInfo(
        name="nfs-gfn",
        config=InterpolatedSettings,
        build=build_nfs_gfn,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        paper={**PAPER_KERNEL, "depth": 3},
    ),
    "nfs-pfno": ModelInfo(
        name="nfs-pfno",
        config=NFSPFNOSettings,
        build=build_nfs_pfno,
        points=True,
        unseen_meshes=True,
        point_sets=POINT_SETS,
        query_points=QUERY_POINTS,
        loss_weighting="quadrature",
        source=NFS_PAPER,
        paper={**PAPER_KERNEL, "depth": 3, "modes": PAPER_MODES},
    ),
}

GRID_MIXERS: dict[str, ModelInfo] = {
    "fno": ModelInfo(
        name="fno",
        config=FNOSettings,
        build=build_fno,
        points=False,
        unseen_meshes=True,
        source=FNO_PAPER,
        parameters_paper=6_299_425,
        paper={"depth": 3, "modes": PAPER_MODES},
    ),
    "pfno": ModelInfo(
        name="pfno",
        config=PFNOSettings,
        build=build_pfno,
        points=False,
        unseen_meshes=False,
        source=NFS_PAPER,
        parameters_paper=9_742_145,
        paper={"depth": 3, "modes": PAPER_MODES},
    ),
    "vit": ModelInfo(
        name="vit",
        config=ViTSettings,
        build=build_vit,
        points=False,
        unseen_meshes=False,
        source=VIT_PAPER,
        parameters_paper=773_217,
        paper={"depth": 2},
    ),
    "mlpmixer": ModelInfo(
        name="mlpmixer",
        config=PatchSettings,
        build=build_mlpmixer,
        points=False,
        unseen_meshes=False,
        source=MLP_MIXER_PAPER,
        parameters_paper=79_749_953,
        paper={"depth": 3},
    ),
    "fnet": ModelInfo(
        name="fnet",
        config=PatchSettings,
        build=build_fnet,
        points=False,
        unseen_meshes=False,
        source=FNET_PAPER,
        paper={"depth": 3},
    ),
    "gfn": ModelInfo(
        name="gfn",
        config=PatchSettings,
        build=build_gfn,
        points=False,
        unseen_meshes=False,
        source=GFN_PAPER,
        parameters_paper=1_361_729,
        paper={"depth": 3},
    ),
}
